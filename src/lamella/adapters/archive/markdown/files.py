"""Archives on disk: the conversation's id decides the file, and no file that knows more is written over."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from lamella.adapters.archive.markdown.archive import (
    Held,
    fold_in_edits,
    fold_log,
    parse_archive,
    read_additions,
    read_written,
    render_archive,
    unify_lines,
)
from lamella.adapters.archive.markdown.front import split_front
from lamella.adapters.archive.markdown.names import name_file, refuse_file, same_file
from lamella.adapters.archive.markdown.page.messages import show_log
from lamella.adapters.files.reading import open_plain, read_plain
from lamella.adapters.files.writing import make_folder, replace_file, write_new
from lamella.core.log.records import Record
from lamella.core.text.content import encode_text
from lamella.errors import (
    BadInputError,
    DivergedError,
    SourceMissingError,
    SourceUnreadableError,
    StoreUnavailableError,
)
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
        raise type(error)(f"{path.name}: {error.message}", hint=error.advice) from error


def save_archive(
    chronicle: Chronicle, folder: Path, *, file: str | None = None, sources: Sources | None = None
) -> Path:
    """Write a conversation into a folder: into the file that has its id, whatever it is called by now, else a new one.

    With ``file`` it is that one. A file that has something which the conversation does not know is left as it is, and
    an error says how to go on. With ``sources``, files that they do not give as they were ride along.
    """
    with _disk_errors(f"The archive cannot be written to {folder}"):
        make_folder(folder)
        found = _find(folder, chronicle) if file is None else _find_named(folder / file, chronicle)
        if not found:
            text = encode_text(render_archive(chronicle, sources=sources))
            if file is None:
                return _write_first_free(folder, chronicle.title, text)
            write_new(folder / file, text)
            return folder / file
    path, before = _choose(found, chronicle)
    text = encode_text(render_archive(chronicle, sources=sources, additions=read_additions(before)))
    if text != encode_text(before):
        with _disk_errors(f"{path} cannot be written"):
            replace_file(path, text)
    return path


def _find(folder: Path, chronicle: Chronicle) -> list[Path]:
    """The files that have the conversation's id, the one that its title names before others."""
    named = name_file(chronicle.title)
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() == _ENDING and path.is_file())
    found = [path for path in files if is_same_conversation(_read_id(path), chronicle)]
    return sorted(found, key=lambda path: path.name != named)


def _find_named(path: Path, chronicle: Chronicle) -> list[Path]:
    """A file that is named, if it is there; one that holds something else is refused."""
    if not path.exists():
        return []
    if not is_same_conversation(_read_id(path), chronicle):
        raise refuse_file(path)
    return [path]


def is_same_conversation(written: str | None, chronicle: Chronicle) -> bool:
    """Whether the id that an archive has is that of a conversation."""
    return written == chronicle.conversation


def _read_id(path: Path) -> str | None:
    """The conversation a file says it holds; a file that is not ours, or cannot be read, holds none."""
    try:
        # A pipe would be waited for, and may take the place of a file that was listed a moment ago.
        with open_plain(path) as file:
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


def _choose(found: Sequence[Path], chronicle: Chronicle) -> tuple[Path, str]:
    """The first file that may be written over, with its text; where there is none, why not the first of them."""
    refused: BadInputError | None = None
    for path in found:
        text = _read_text(path)
        try:
            _check_known(path, text, chronicle)
        except BadInputError as error:
            refused = refused or error
        else:
            return path, text
    assert refused is not None
    raise refused


def _check_known(path: Path, text: str, chronicle: Chronicle) -> None:
    """Refuse to write over what a file has and the conversation does not know: events, or what somebody wrote in it."""
    front, body = split_front(unify_lines(text))
    try:
        visible, written, _ = read_written(front, body)
        there = fold_in_edits(front, written, visible)
    except BadInputError as error:
        raise BadInputError(
            f"{path.name} has the conversation's id and cannot be read: {error.message}",
            hint="Move the file away, then export again.",
        ) from error
    _check_events(path, written.records, chronicle)
    if there.warnings and not _knows(chronicle, there):
        raise BadInputError(
            f"{path.name} was edited by hand since it was written.",
            hint="Import it first, so that the edits become part of the conversation; or move it away.",
        )


def _check_events(path: Path, there: Sequence[Record], chronicle: Chronicle) -> None:
    ours, called = chronicle.records, chronicle.name or chronicle.conversation
    shared = next((at for at, (one, other) in enumerate(zip(there, ours, strict=False)) if one != other), None)
    if shared == 0:
        raise DivergedError(
            f"{path.name} holds another conversation that is called {called}, too.",
            hint="Export into another folder to have both, or move the file away.",
        )
    if shared is not None:
        raise DivergedError(
            f"{path.name} has {called} with another history from event {shared + 1:,} on.",
            hint="Neither has all of the other. Export into another folder to have both, or import the file into a "
            "store of its own.",
        )
    if len(there) > len(ours):
        raise DivergedError(
            f"{path.name} has {len(there):,} events of {called}; the store knows {len(ours):,}.",
            hint="Import the file first: that adds the others to the store. Then export again.",
        )


def _knows(chronicle: Chronicle, edited: Chronicle) -> bool:
    """Whether the conversation has the edits of a file: as its events, or as what it shows."""
    if chronicle.records[: len(edited.records)] == edited.records:
        return True
    shown, wanted = (
        [(m.role, m.text) for m in show_log(fold_log(one.conversation, one.records))] for one in (chronicle, edited)
    )
    return shown[: len(wanted)] == wanted


def _write_first_free(folder: Path, title: str, text: bytes) -> Path:
    taken = {same_file(path.name) for path in folder.iterdir()}
    for number in count(1):
        path = folder / name_file(title, number)
        if same_file(path.name) in taken:
            continue
        try:
            write_new(path, text)
        except FileExistsError:
            continue
        return path
    raise AssertionError("count never ends")


def _read_text(path: Path) -> str:
    try:
        data = read_plain(path)
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
