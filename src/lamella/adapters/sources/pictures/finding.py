"""Finding the file that a note embeds, where a vault of Obsidian's would: never by a guess, never outside."""

import json
from collections.abc import Callable, Iterator, Sequence
from posixpath import basename, dirname, normpath
from urllib.parse import unquote

from lamella.adapters.sources.obsidian.rules import APP_SETTINGS
from lamella.errors import BadInputError, SourceMissingError

_NAMED = 3


def find_embedded(
    target: str,
    *,
    beside: str,
    has_file: Callable[[str], bool],
    find_named: Callable[[str], Sequence[str]],
    find_kept: Callable[[], str],
) -> str:
    """The path of what a note embeds: beside the note, from the root, in the folder for attachments, by a unique name.

    ``find_named`` gives files by their name alone, in any case; ``find_kept`` the folder for attachments as the vault's
    settings have it: from the root, or with ``./`` from the note.
    """
    names, folder = tuple(_read_names(target)), dirname(beside)
    for find_parents in (lambda: (folder, ""), lambda: (_join(folder, find_kept()),)):
        for path in _list_places(names, find_parents()):
            if has_file(path):
                return path
    found = next(filter(None, (_find_ending(name, find_named(basename(name))) for name in names)), ())
    if len(found) == 1:
        return found[0]
    if found:
        raise SourceMissingError(
            f"{target} is in the vault {len(found)} times: {', '.join(found[:_NAMED])}.",
            hint="Embed it by a path that names one file.",
        )
    raise SourceMissingError(f"{target} is not in the vault.", hint="Embed a file that is there, by its name or path.")


def read_kept(read_text: Callable[[str], str]) -> str:
    """The folder that the vault keeps attachments in; the root where its settings say nothing that can be read."""
    try:
        found = json.loads(read_text(APP_SETTINGS))
    except (BadInputError, ValueError, RecursionError):
        return ""
    kept = found.get("attachmentFolderPath") if isinstance(found, dict) else None
    return kept if isinstance(kept, str) else ""


def _read_names(target: str) -> Iterator[str]:
    """A target as it is written, as markdown encodes it, and without what only a browser takes."""
    plain = target.partition("?")[0].partition("#")[0]
    yield from dict.fromkeys(name for name in (target, unquote(target), plain, unquote(plain)) if name)


def _join(folder: str, kept: str) -> str:
    return f"{folder}/{kept}" if kept.startswith(".") else kept


def _list_places(names: Sequence[str], parents: Sequence[str]) -> Iterator[str]:
    for name in names:
        for parent in ("",) if name.startswith("/") else parents:
            path = normpath(f"{parent}/{name}".lstrip("/"))
            if not path.startswith("../"):
                yield path


def _find_ending(name: str, files: Sequence[str]) -> Sequence[str]:
    """Of files of one name those whose path ends as the target does; all of them where none does: it was moved."""
    wanted = f"/{normpath(name).lstrip('./').casefold()}"
    return [path for path in files if f"/{path.casefold()}".endswith(wanted)] or files
