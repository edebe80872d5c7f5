"""The guides to the server work: their requests, programs, commands and settings."""

import json
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.contracts.console import blocks
from tests.contracts.repository import ROOT, doc
from tests.server.processes import COMMAND, wait_ready
from tests.server.running import RunningServer, running
from tests.unit.pictures import png
from tests.waiting import HANG_SECONDS

from lamella.settings import HttpServerSettings
from lamella.settings.model import validate_settings
from lamella.testing import ScriptedProvider

ADDRESS = "http://127.0.0.1:8765"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running("memory:", ScriptedProvider(*["In March."] * 9)) as one:
        yield one


def test_every_request_that_the_page_shows_is_answered(server: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "plan.png").write_bytes(png(4, 3))
    (tmp_path / "list.txt").write_text("Beans\n", encoding="utf-8")
    shown = re.findall(r"^curl .*$", doc("how-to/run-the-server.md"), re.MULTILINE)
    assert len(shown) >= 3
    for line in shown:
        told = subprocess.run(
            ["bash", "-c", line.replace(ADDRESS, server.url)], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        assert '"error"' not in told, line
        assert "In March." in told or '"lamella"' in told


def find_lines(page: str, command: str) -> list[list[str]]:
    """The lines of a page that begin so, as a shell would split them."""
    return [shlex.split(line)[1:] for line in re.findall(rf"^lamella {command}.*$", doc(page), re.MULTILINE)]


@pytest.mark.parametrize("page", ["how-to/run-the-server.md", "how-to/existing-clients.md"])
def test_documented_serve_command_starts_server(page: str, tmp_path: Path) -> None:
    lines = [line for line in find_lines(page, "serve") if "--model" in line]
    assert lines
    own = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-of-a-test"}
    for line in lines:
        words = [*COMMAND, *line, "--port", "0"]
        with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True, env={**os.environ, **own}) as process:
            assert process.stderr is not None
            with httpx2.Client(base_url=json.loads(process.stderr.readline())["address"]) as client:
                wait_ready(client)
                assert client.get("/v1/models").json()["data"][0]["id"] == "anthropic:claude-opus-5-5"
            process.terminate()
            process.communicate(timeout=HANG_SECONDS)


def test_token_commands_of_the_guide_succeed(tmp_path: Path) -> None:
    own = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    lines = find_lines("how-to/run-the-server.md", "tokens")
    assert lines
    for line in lines:
        told = subprocess.run([*COMMAND, *line], env={**os.environ, **own}, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stderr


def test_error_of_the_guide_is_the_error_of_the_server() -> None:
    (shown,) = [block.body for block in blocks(doc("how-to/run-the-server.md")) if block.language == "json"]
    with running("memory:", ScriptedProvider()) as server:
        assert server.client.get("/v1/conversations/garden").json() == json.loads(shown)


def test_settings_of_the_guide_are_valid() -> None:
    (shown,) = [block.body for block in blocks(doc("how-to/run-the-server.md")) if block.language == "toml"]
    assert validate_settings(tomllib.loads(shown)).serve != HttpServerSettings()


def test_documented_clients_get_an_answer() -> None:
    shown = [block.body for block in blocks(doc("how-to/existing-clients.md")) if block.language == "py"]
    programs = [body for body in shown if body.startswith("import")]
    assert len(programs) == 2
    with running("memory:", ScriptedProvider("In March.", "In March.")) as server:
        for body in programs:
            printed: list[str] = []
            names: dict[str, object] = {"print": printed.append}
            exec(compile(body.replace(ADDRESS, server.url), "page", "exec"), names)
            getattr(names["client"], "close")()  # noqa: B009 - of a client whose type only the page knows
            assert printed == ["In March."]
