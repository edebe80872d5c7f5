"""The files that can be chosen: those of a folder on a disk, or those that somebody gives with their contents."""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from lamella.adapters.files.reading import make_state, read_plain
from lamella.adapters.sources.code.repository.contents import MOST_BYTES
from lamella.adapters.sources.code.repository.git import GitFolder
from lamella.adapters.sources.code.repository.names import find_fault
from lamella.adapters.sources.code.repository.walking import IGNORED, CodeWalk
from lamella.adapters.sources.obsidian.rules import RULES_FILE
from lamella.errors import LamellaError, SourceMissingError, SourceUnreadableError

Hides = Callable[[str], bool]
_LINK = "it is a link, and links are not followed"


class CodeState(NamedTuple):
    """What tells one state of a file from another, and whether a file that changes again shows it."""

    stamp: str
    settled: bool


class CodeListing(NamedTuple):
    """Files that can be chosen, by their paths in order; and why each of the others cannot."""

    states: Mapping[str, CodeState]
    left_out: tuple[tuple[str, str], ...] = ()
    told: tuple[str, ...] = ()


class CodeFiles(Protocol):
    """Where files come from."""

    def survey(self, *, now: int) -> CodeListing:
        """What is there; ``now`` is the time in nanoseconds."""
        ...

    def read(self, path: str) -> bytes:
        """What a file holds. ``OSError``, or one of ours, says why it cannot be had."""
        ...


class FolderFiles:
    """The files of a folder, by git's rules where git knows it; ``hides`` says of a path that it is never read."""

    def __init__(self, root: Path, *, hides: Hides | None = None) -> None:
        self._hides = hides
        try:
            self.root = root.resolve()
            found = self.root.stat()
        except (OSError, RuntimeError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise SourceMissingError(f"There is no folder {root}: {why}.", hint="Name a folder of code.") from error
        if not stat.S_ISDIR(found.st_mode):
            raise SourceMissingError(f"{root} is a file, not a folder.", hint="Name the folder that it is in.")
        self.git = GitFolder(self.root)
        self._inside: dict[str, bool] = {}

    def survey(self, *, now: int) -> CodeListing:
        self._inside.clear()
        told: list[str] = []
        paths, left_out = self._list(told)
        states: dict[str, CodeState] = {}
        for raw in paths:
            path, why = _read_name(raw)
            if why is None and self._hides is not None and self._hides(path):
                why = f"{RULES_FILE} leaves it out"
            state, fault = (None, why) if why else self._look(path, now)
            if state is None:
                left_out.append((path, fault or "it is gone"))
            else:
                states[path] = state
        return CodeListing(states, tuple(sorted(left_out)), tuple(told))

    def read(self, path: str) -> bytes:
        return read_plain(Path(self._place(path)), limit=MOST_BYTES, name=path)

    def _list(self, told: list[str]) -> tuple[list[bytes], list[tuple[str, str]]]:
        """Paths that no rule ignores, and what is ignored: a folder whose files all are stands for them."""
        if self.git.holds():
            found = self.git.list_files()
            ignored = self.git.list_paths("--others", "--ignored", "--exclude-standard", "--directory")
            if found is not None:
                paths, closed = found
                left_out = [(_read_name(one)[0], f"it cannot be read ({why})") for one, why in closed]
                return paths, left_out + [(_read_name(one)[0], IGNORED) for one in ignored or ()]
        walk = CodeWalk(self.root)
        paths = walk.list_paths()
        told += walk.told
        return paths, [(_read_name(one)[0], why) for one, why in walk.left_out]

    def _look(self, path: str, now: int) -> tuple[CodeState | None, str | None]:
        try:
            found = os.lstat(self._place(path))
        except (OSError, ValueError) as error:
            return None, f"it cannot be looked at ({getattr(error, 'strerror', None) or error})"
        except SourceUnreadableError:
            return None, _LINK
        fault = _judge_state(found)
        if fault is not None:
            return None, fault
        state = make_state(found)
        return CodeState(" ".join(map(str, state.lasting)), state.is_settled(now)), None

    def _place(self, path: str) -> str:
        """Where a file is. A folder on the way may have become a link that leads out since git was told of it."""
        folder = path.rpartition("/")[0]
        if folder not in self._inside:
            real = os.path.realpath(f"{self.root}{os.sep}{os.fsdecode(folder.encode())}")
            self._inside[folder] = Path(real).is_relative_to(self.root)
        if not self._inside[folder]:
            raise SourceUnreadableError(f"{path} leads out of the folder.", hint="Name the folder that it is in.")
        return f"{self.root}{os.sep}{os.fsdecode(path.encode())}"


class GivenFiles:
    """Files that came with their contents, by path."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def survey(self, *, now: int) -> CodeListing:
        faults = {path: _judge_given(path, text) for path, text in self._files.items()}
        states = {path: CodeState("", settled=True) for path in sorted(faults) if faults[path] is None}
        return CodeListing(states, tuple(sorted((path, why) for path, why in faults.items() if why)))

    def read(self, path: str) -> bytes:
        return self._files[path].encode()


def read_code(files: CodeFiles, path: str) -> tuple[bytes, str | None]:
    """The bytes of a file, or why they cannot be had."""
    try:
        return files.read(path), None
    except LamellaError as error:
        return b"", error.message.rstrip(".")
    except (OSError, ValueError) as error:
        return b"", f"it cannot be read ({getattr(error, 'strerror', None) or error})"


def _judge_given(path: str, text: str) -> str | None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "its text cannot be written as UTF-8"
    return _read_name(path.encode("utf-8", "surrogateescape"))[1] or (_tell_size(size) if size > MOST_BYTES else None)


def _read_name(raw: bytes) -> tuple[str, str | None]:
    """A path as text, and what its name says against it."""
    try:
        path = raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace"), "its name is not UTF-8"
    return path, find_fault(path)


def _judge_state(found: os.stat_result) -> str | None:
    if stat.S_ISLNK(found.st_mode):
        return _LINK
    if stat.S_ISDIR(found.st_mode):
        return "it is a repository of its own"
    if not stat.S_ISREG(found.st_mode):
        return "it is not a plain file"
    return _tell_size(found.st_size) if found.st_size > MOST_BYTES else None


def _tell_size(size: int) -> str:
    return f"it has {size:,} bytes; files of up to {MOST_BYTES:,} are looked at"
