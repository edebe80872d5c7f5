"""The page about the doors tells true: its programs run, and it has every door."""

import re

from tests.contracts.console import blocks
from tests.contracts.places import doc
from tests.contracts.tables import rows
from tests.server.running import running

from lamella.faces.server.doors.routers import DOORS
from lamella.testing import ScriptedProvider


def test_every_program_that_the_page_shows_gets_its_answer() -> None:
    programs = [block.body for block in blocks(doc("doors.md")) if block.language == "py"]
    assert len(programs) == 2
    with running("memory:", ScriptedProvider("In March.", "In March.")) as server:
        for body in programs:
            told: list[str] = []
            program = body.replace("http://127.0.0.1:8765", server.url)
            names: dict[str, object] = {"print": told.append}
            exec(compile(program, "page", "exec"), names)
            getattr(names["client"], "close")()  # noqa: B009 - of a client whose type only the page knows
            assert told == ["In March."]


def test_every_door_is_told() -> None:
    told = {name for cells in rows(doc("doors.md")) for name in re.findall(r"`(\w+ /[^`]+)`", cells[0])}
    paths = {f"POST {route.path}" for router in DOORS for route in router.routes if hasattr(route, "path")}
    assert paths <= told
    assert "GET /v1/models" in told
