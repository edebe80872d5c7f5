"""The page about the server tells true: its requests work, and it has every address, setting and scope."""

import re
import subprocess
from collections.abc import Iterator

import pytest
from tests.contracts.places import doc
from tests.contracts.tables import rows
from tests.server.running import RunningServer, running

from lamella.faces.server.app import make_app
from lamella.settings import ServeSettings
from lamella.settings.tokens import TokenScope
from lamella.testing import ScriptedProvider

ADDRESS = "http://127.0.0.1:8765"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running("memory:", ScriptedProvider(*["In March."] * 9)) as one:
        yield one


def test_every_request_that_the_page_shows_is_answered(server: RunningServer) -> None:
    shown = re.findall(r"^curl .*$", doc("server.md"), re.MULTILINE)
    assert len(shown) >= 4
    for line in shown:
        told = subprocess.run(
            ["bash", "-c", line.replace(ADDRESS, server.url)], capture_output=True, text=True, check=True
        ).stdout
        assert '"error"' not in told, line
        assert "In March." in told or '"lamella"' in told


def test_every_address_is_told(server: RunningServer) -> None:
    told = {name for cells in rows(doc("server.md"), under="Addresses") for name in re.findall(r"`([^`]+)`", cells[0])}
    missing = []
    for path, operations in make_app(server.state).openapi()["paths"].items():
        for method in operations:
            short = path.removeprefix("/v1/conversations/{conversation}").lstrip("/")
            inner = path.startswith("/v1/conversations/{conversation}")
            name = f"{method.upper()} {short if inner else path}".strip()
            if name not in told:
                missing.append(name)
    assert missing == []


def test_every_setting_of_the_server_is_told_with_its_default() -> None:
    told = {cells[0].strip("`"): cells[1].strip("`") for cells in rows(doc("server.md"), under="Settings")}

    def tell(value: object) -> str:
        return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    usual = ServeSettings()
    assert told == {name: tell(getattr(usual, name)) for name in ServeSettings.__struct_fields__}


def test_every_scope_is_told() -> None:
    assert [cells[0].strip("`") for cells in rows(doc("server.md"), under="Who may come in")] == list(TokenScope)
