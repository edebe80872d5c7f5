"""The page about the server tells true: its requests work, and it has every address, setting and scope."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.contracts.console import blocks
from tests.contracts.places import ROOT, doc
from tests.contracts.tables import rows
from tests.server.processes import COMMAND, wait_ready
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


def find_lines(page: str, command: str) -> list[list[str]]:
    """The lines of a page that begin so, as a shell would split them."""
    return [shlex.split(line)[1:] for line in re.findall(rf"^lamella {command}.*$", doc(page), re.MULTILINE)]


@pytest.mark.parametrize("page", ["server.md", "doors.md", "deploy.md"])
def test_the_server_starts_as_the_page_starts_it(page: str, tmp_path: Path) -> None:
    lines = [line for line in find_lines(page, "serve") if "--workers" not in line]
    assert lines or page == "deploy.md"
    own = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-of-a-test"}
    for line in lines:
        words = [*COMMAND, *line, "--port", "0"]
        with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True, env={**os.environ, **own}) as process:
            assert process.stderr is not None
            with httpx2.Client(base_url=json.loads(process.stderr.readline())["address"]) as client:
                wait_ready(client)
                assert client.get("/v1/models").json()["data"][0]["id"] == "anthropic:claude-opus-5-5"
            process.terminate()
            process.communicate(timeout=30)


@pytest.mark.parametrize("page", ["server.md", "deploy.md"])
def test_tokens_are_given_out_listed_and_taken_back_as_the_page_does_it(page: str, tmp_path: Path) -> None:
    own = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    lines = find_lines(page, "tokens")
    assert lines
    for line in lines:
        told = subprocess.run([*COMMAND, *line], env={**os.environ, **own}, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stderr


def test_the_error_that_the_page_shows_is_what_is_told() -> None:
    (shown,) = [block.body for block in blocks(doc("server.md")) if block.language == "json"]
    with running("memory:", ScriptedProvider()) as server:
        assert server.client.get("/v1/conversations/garden").json() == json.loads(shown)


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
