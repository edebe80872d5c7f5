"""Which reader reads what, with a vault and without one."""

from pathlib import Path

import pytest

from lamella.adapters.sources.conversions import Conversions
from lamella.adapters.sources.opening import open_sources
from lamella.core.artifacts.kinds import Medium
from lamella.core.artifacts.model import Kind
from lamella.core.artifacts.wanted import Wanted
from lamella.errors import NotAvailableError, SourceMissingError


def test_a_vault_that_is_not_there_is_said_when_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(SourceMissingError, match="no vault folder"):
        open_sources(tmp_path / "nowhere")


def test_each_look_sees_the_vault_as_it_is_then(tmp_path: Path) -> None:
    look = open_sources(tmp_path)
    before = look().catalog
    assert before is not None
    assert before.find_note("new") == []
    (tmp_path / "new.md").write_text("New", encoding="utf-8")
    assert before.find_note("new") == []
    now = look().catalog
    assert now is not None
    assert now.find_note("new") == ["new.md"]


@pytest.mark.parametrize("kind", [Kind.PDF, Kind.OFFICE, Kind.URL, Kind.YOUTUBE])
def test_without_conversions_nothing_is_converted_or_fetched(tmp_path: Path, kind: Kind) -> None:
    with pytest.raises(NotAvailableError, match=rf"Nothing here reads {kind}: a\.x"):
        open_sources(tmp_path)().read(Wanted(kind=kind, name="a.x"))


def test_with_conversions_pages_are_read_anywhere_and_documents_of_a_vault(tmp_path: Path) -> None:
    web = {Medium.PAGE, Medium.VIDEO}
    assert web < open_sources(None, _never)().readers.keys()
    assert {*web, Medium.PDF, Medium.OFFICE} < open_sources(tmp_path, _never)().readers.keys()


def _never() -> Conversions:
    raise AssertionError("nothing is read here")


def test_without_a_vault_only_bytes_that_are_given_are_read() -> None:
    sources = open_sources(None)()
    assert (list(sources.readers), sources.catalog) == ([Medium.PICTURE], None)
    with pytest.raises(SourceMissingError, match=r"a\.md has no text, and there is no vault"):
        sources.read(Wanted(kind=Kind.NOTE, name="a.md"))
