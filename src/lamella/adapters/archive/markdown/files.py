"""Archives on disk: the conversation's id decides the file, and a file is replaced whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import mkstemp

from lamella.adapters.archive.markdown.archive import (
    Held,
    fold_log,
    parse_archive,
    read_additions,
    read_own,
    render_archive,
    unify_lines,
)
from lamella.adapters.archive.markdown.front import split_front
from lamella.adapters.archive.markdown.names import name_file, same_file
from lamella.adapters.archive.markdown.page.messages import show_log
from lamella.core.text.content import encode_text
from lamella.errors import BadInputError, SourceMissingError, SourceUnreadableError, StoreUnavailableError
from lamella.holdings import Chronicle
from lamella.ports import Sources

_ENDING = ".md"
_USUAL_FRONT = 4_096
_LONGEST_FRONT = 1_000_000


def load_archive(path: Path, sources: Sources | None, *, held: Held | None = None) -> Chronicle:
    """The conversation in a file. ``held`` is as a store's ``read_contents``: what it has is read from no file."""
    text = _read_text(path)
    try:
        return parse_archive(text, sources=sources, held=held)
    except BadInputError as error:
        raise type(error)(f"{path.name}: {error.message}", hint=error.hint) from error


def save_archive(chronicle: Chronicle, folder: Path, *, sources: Sources | None = None) -> Path:
    """Write a conversation into a folder: into the file that has its id, whatever it is called by now, else a new one.

    With ``sources``, files that they do not give as they were ride along.
    """
    with _disk_errors(f"The archive cannot be written to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        path = _find(folder, chronicle)
        if path is None:
            text = encode_text(render_archive(chronicle, sources=sources))
            return _write_new(folder, chronicle.title, text)
    before = _read_text(path)
    _check_unedited(path, before, chronicle)
    text = encode_text(render_archive(chronicle, sources=sources, additions=read_additions(before)))
    if text != encode_text(before):
        with _disk_errors(f"{path} cannot be written"):
            _replace(path, text)
    return path


def _find(folder: Path, chronicle: Chronicle) -> Path | None:
    """The file that has the conversation's id; of several, the one that its title names."""
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() == _ENDING and path.is_file())
    found = [path for path in files if _conversation(path) == chronicle.conversation]
    named = name_file(chronicle.title)
    return next((path for path in found if path.name == named), found[0] if found else None)


def _conversation(path: Path) -> str | None:
    """The conversation a file says it holds; a file that is not ours, or cannot be read, holds none."""
    try:
        with path.open("rb") as file:
            head = file.read(_USUAL_FRONT)
            if not head.removeprefix(b"\xef\xbb\xbf").startswith(b"---"):
                return None
            front, _ = split_front(unify_lines(head.decode(errors="replace")))
            if not front.fields:
                head += file.read(_LONGEST_FRONT)
                front, _ = split_front(unify_lines(head.decode(errors="replace")))
    except (OSError, BadInputError):
        return None
    return front.fields.get("conversation") if front.is_ours else None


def _check_unedited(path: Path, text: str, chronicle: Chronicle) -> None:
    """Refuse to write over what somebody wrote into the file, unless the conversation knows it."""
    front, body = split_front(unify_lines(text))
    try:
        there, _ = read_own(front, body)
    except BadInputError as error:
        raise BadInputError(
            f"{path.name} has the conversation's id and cannot be read: {error.message}",
            hint="Move the file away, then export again.",
        ) from error
    if there.warnings and not _knows(chronicle, there):
        raise BadInputError(
            f"{path.name} was edited by hand since it was written.",
            hint="Import it first, so that the edits become part of the conversation; or move it away.",
        )


def _knows(chronicle: Chronicle, edited: Chronicle) -> bool:
    """Whether the conversation has the edits of a file: as its events, or as what it shows."""
    if chronicle.records[: len(edited.records)] == edited.records:
        return True
    shown, wanted = (
        [(m.role, m.text) for m in show_log(fold_log(one.conversation, one.records))] for one in (chronicle, edited)
    )
    return shown[: len(wanted)] == wanted


def _write_new(folder: Path, title: str, text: bytes) -> Path:
    taken = {same_file(path.name) for path in folder.iterdir()}
    for number in count(1):
        path = folder / name_file(title, number)
        if same_file(path.name) in taken:
            continue
        try:
            # Whoever makes the file first has the name.
            path.open("xb").close()
        except FileExistsError:
            continue
        try:
            _replace(path, text)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return path
    raise AssertionError("count never ends")


def _replace(path: Path, text: bytes) -> None:
    """Put a new text in place of a file: after a crash it is the old one or the new one."""
    target = path.resolve()
    handle, name = mkstemp(dir=target.parent, prefix=".lamella-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, name)
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name last as well; systems that open no folders do so by themselves."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise SourceMissingError(f"There is no archive {path}.", hint="Check the path.") from error
    except OSError as error:
        raise SourceUnreadableError(
            f"{path} cannot be read: {error.strerror or error}.", hint="Check the file and its permissions."
        ) from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SourceUnreadableError(
            f"{path} is not UTF-8: byte {error.start + 1:,} is 0x{data[error.start]:02x}.",
            hint="Save the file as UTF-8.",
        ) from error


@contextmanager
def _disk_errors(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailableError(
            f"{what}: {error.strerror or error}.",
            hint="Check that the folder can be written to and that the disk has room, then export again.",
        ) from error
