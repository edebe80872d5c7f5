"""Files with conversations are readable by their owner alone, with any umask and in existing folders."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import spawn
from tests.journeys.terminal import ENTER, Terminal

import lamella


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """A umask that lets everybody read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_to_all(folder: Path) -> dict[str, str]:
    """Everything below a folder that somebody else may read or enter."""
    return {str(path): oct(mode(path)) for path in [folder, *folder.rglob("*")] if mode(path) & 0o077}


def test_own_folder_and_its_contents_are_private(home: Mapping[str, str], script: Callable[..., str]) -> None:
    own = Path(home["HOME"]) / ".lamella"
    own.mkdir(mode=0o755)
    with lamella.open(f"sqlite:///{own}/chats.db") as engine:
        engine.chat("old").ask("hello")
    (own / "chats.db").chmod(0o644)
    assert spawn("ask", "hi", "--chat", "new", "--model", script("One."), environment=home).exit == 0
    assert open_to_all(own) == {}


def test_new_store_is_private_and_existing_one_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    for _ in range(2):
        with lamella.open(f"sqlite:///{folder}/chats.db") as engine:
            engine.chat("talk").ask("hello")
            assert {path.name for path in folder.iterdir()} == {"chats.db", "chats.db-wal", "chats.db-shm"}
            assert {mode(path) for path in folder.iterdir()} == {0o600}
    assert mode(folder) == 0o755
    (folder / "chats.db").chmod(0o640)
    with lamella.open(f"sqlite:///{folder}/chats.db") as engine:
        engine.chat("talk")
    assert mode(folder / "chats.db") == 0o640


def test_own_folder_is_private_however_named_and_link_changes_nothing(
    home: Mapping[str, str], script: Callable[..., str], tmp_path: Path
) -> None:
    own, shared = Path(home["HOME"]) / ".lamella", tmp_path / "shared"
    own.mkdir(mode=0o755)
    (tmp_path / "way").symlink_to(own)
    shared.mkdir()
    (tmp_path / "link.db").symlink_to(shared / "chats.db")
    for url in (f"sqlite:///{tmp_path}/way/chats.db", f"sqlite:///{tmp_path}/link.db"):
        words = ("--chat", "talk", "--model", script("One."), "--store", url)
        assert spawn("ask", "hi", *words, environment=home).exit == 0
    assert open_to_all(own) == {}
    assert mode(shared / "chats.db") == 0o600


@pytest.mark.parametrize("form", [(), ("--transcript",)])
def test_exports_are_private_in_old_and_new_folders(
    home: Mapping[str, str], script: Callable[..., str], tmp_path: Path, form: tuple[str, ...]
) -> None:
    assert spawn("ask", "hi", "--chat", "talk", "--model", script("One."), environment=home).exit == 0
    there, new = tmp_path / "there", tmp_path / "new"
    there.mkdir(mode=0o755)
    for folder in (there, new):
        assert spawn("chats", "export", "talk", *form, "--to", str(folder), environment=home).exit == 0
    assert (open_to_all(new), mode(there), open_to_all(there)) == ({}, 0o755, {str(there): oct(0o755)})
    # Whoever lets others read a file has it stay so.
    [file] = there.iterdir()
    file.chmod(0o644)
    assert spawn("chats", "export", "talk", *form, "--to", str(there), environment=home).exit == 0
    assert mode(file) == 0o644


def test_input_history_is_private_in_existing_folder(home: Mapping[str, str], script: Callable[..., str]) -> None:
    state = Path(home["XDG_STATE_HOME"]) / "lamella"
    state.mkdir(parents=True)
    (state / "history").touch(mode=0o644)
    with Terminal(["chat", "talk", "--model", script("One.")], home) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("hi", ENTER)
        terminal.wait_for("One.")
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0
    assert open_to_all(state) == {}
    assert open_to_all(Path(home["XDG_CONFIG_HOME"]) / "lamella") == {}
