"""Request bodies are byte for byte what was reviewed. After an intended change: ``python -m tests.wire.cases``."""

import pytest
from tests.wire.cases import GOLDEN, cases, golden_path, sent, written
from tests.wire.kinds import WIRES, Wire

EVERY = [pytest.param(wire, name, id=f"{wire.name}.{name}") for wire in WIRES for name in cases(wire)]


@pytest.mark.parametrize(("wire", "name"), EVERY)
def test_body_is_the_golden_one(wire: Wire, name: str) -> None:
    body = sent(wire, cases(wire)[name])
    assert written(body) == golden_path(wire, name).read_text(encoding="utf-8")


def test_every_golden_file_has_its_case() -> None:
    expected = {golden_path(wire, name) for wire in WIRES for name in cases(wire)}
    assert set(GOLDEN.glob("*.json")) == expected
