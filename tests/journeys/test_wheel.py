"""The wheel: built from the clone and installed elsewhere, it has everything that it needs beside its dependencies."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.journeys.running import run
from tests.waiting import HANG_SECONDS

import lamella

ROOT = Path(__file__).parents[2]
SECONDS = HANG_SECONDS


class Installed:
    """An environment with the wheel alone in it. What the wheel depends on is read where this test finds it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        _do([*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), str(ROOT)])
        (self.wheel,) = folder.glob("lamella-*.whl")
        venv.create(folder / "env", with_pip=False)
        _do([*pip, "--python", str(self.program("python")), "install", "--no-deps", "--no-index", str(self.wheel)])
        (site,) = (folder / "env").glob("lib/python3*/site-packages")
        # A path in such a file comes after the environment itself, and links of editable installs are not followed.
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")

    def program(self, name: str) -> Path:
        return self.folder / "env" / "bin" / name

    def run(self, *words: str) -> str:
        return _do([str(self.program("lamella")), *words], cwd=self.folder)


def _do(words: list[str], *, cwd: Path | None = None) -> str:
    environment: Mapping[str, str] = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("wheel"))


def test_command_is_that_of_the_wheel(installed: Installed) -> None:
    assert lamella.__version__ in installed.run("--version")
    where = _do(
        [str(installed.program("python")), "-c", "import lamella; print(lamella.__file__)"], cwd=installed.folder
    )
    assert Path(where.strip()).is_relative_to(installed.folder / "env")


def test_replay_is_the_same_as_from_the_clone(installed: Installed) -> None:
    transcript = str(ROOT / "examples" / "walkthrough.json")
    assert installed.run("replay", transcript, "--json") == run("replay", transcript, "--json").out


def test_installed_wheel_creates_and_reads_store(installed: Installed) -> None:
    script = installed.folder / "script.json"
    script.write_text('["It is there."]', encoding="utf-8")
    told = installed.run("ask", "Is it?", "--model", f"scripted:{script}", "--chat", "one", "--store", "sqlite:///a.db")
    assert "It is there." in told
    assert "one" in installed.run("chats", "list", "--store", "sqlite:///a.db")


def test_page_of_the_server_is_in_the_wheel(installed: Installed) -> None:
    """Users need no Node: the built files are installed."""
    with zipfile.ZipFile(installed.wheel) as wheel:
        inside = set(wheel.namelist())
    built = ROOT / "src" / "lamella" / "server" / "static"
    assert {path.relative_to(ROOT / "src").as_posix() for path in built.rglob("*") if path.is_file()} <= inside
    assert "lamella/server/static/index.html" in inside
