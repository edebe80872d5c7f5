"""``list_files`` and ``read_note``: what a vault has, and what stands in it."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from lamella.adapters.sources.inventory import is_note
from lamella.adapters.sources.markdown.note import parse_note
from lamella.adapters.sources.markdown.sections import find_part
from lamella.adapters.sources.vault import Vault
from lamella.adapters.tools.schema import Arguments, ToolParameter, make_tool
from lamella.adapters.tools.stretches import START, cut_stretch, list_stretch
from lamella.attach import Picture, Tool, describe_file
from lamella.core.artifacts.wanted import Wanted
from lamella.core.text.content import normalise
from lamella.errors import SourceMissingError, SourceUnreadableError

_LISTED = 500
_LINES = re.compile(r"\s*(\d{1,9})\s*(?:[-:]\s*(\d{1,9})\s*)?")
_LINK = re.compile(r"!?\[\[([^\[\]\n]+)\]\]")


def make_list_tool(vault: Vault) -> Tool:
    """The files of a vault as a tool."""

    def list_files(given: Arguments) -> str:
        folder = str(given.get("folder", "")).strip().strip("/")
        pattern = str(given.get("pattern", "*"))
        start = given.get("start", 0)
        assert isinstance(start, int)
        files = vault.glance().list_files()
        found = [path for path in files if _is_below(path, folder) and _fits(path, pattern)]
        if not found:
            return f"No file of the vault is there. The vault has {len(files):,} files in all."
        return list_stretch(found, start, title="files", most=_LISTED)

    return make_tool(
        "list_files",
        "List the files of the user's vault by their paths, all or those of a folder or a pattern.",
        parameters=(
            ToolParameter("folder", "Only what is in this folder and below it."),
            ToolParameter("pattern", "Only files whose name or path fits, such as *.md or 2026-*."),
            ToolParameter("start", "The file to begin at, to go on where an earlier list ended.", "integer", least=0),
        ),
        run=list_files,
    )


def make_read_tool(vault: Vault, *, note_read: Callable[[str], None] | None = None) -> Tool:
    """Notes and other files of a vault as a tool; ``note_read`` is told which note somebody was shown."""

    def read(given: Arguments) -> str:
        look = vault.glance()
        path = find_file(look, str(given["path"]))
        text = _read_text(vault, look, path)
        if note_read is not None:
            note_read(path)
        part, title = _choose_part(text, path, given)
        start = given.get("start", 0)
        assert isinstance(start, int)
        return cut_stretch(part, start, title=title)

    return make_tool(
        "read_note",
        "Read a note or another file of the user's vault, whole, below a heading, or by its lines.",
        parameters=(
            ToolParameter("path", "Its path in the vault, or the name of a note.", required=True),
            ToolParameter("heading", "Only what stands below this heading; Above#Below goes down two steps."),
            ToolParameter("lines", "Only these lines, such as 10-40."),
            START,
        ),
        run=read,
    )


def find_file(look: Vault, name: str) -> str:
    """The path of a file as a model names it; hidden files are nobody's to read."""
    link = _LINK.fullmatch(name.strip())
    plain = (re.split(r"[#|]", link[1])[0] if link else name).strip().removeprefix("./")
    if any(part.startswith(".") for part in PurePosixPath(plain).parts):
        raise SourceMissingError(f"{name[:80]!r} is no file that is shown.", hint="Give the path of a note.")
    if look.has_file(plain):
        return plain
    found = look.find_note(plain)
    if len(found) > 1:
        some = ", ".join(found[:10])
        raise SourceMissingError(f"{plain} may be one of {len(found):,} notes: {some}.", hint="Give the whole path.")
    return found[0] if found else plain


def _read_text(vault: Vault, look: Vault, path: str) -> str:
    """A note as it is written, since that is what an edit has to name; anything else as it would be attached."""
    if is_note(path):
        return normalise(look.read_text(path))
    described = describe_file(path)
    wanted = described.attachment()
    if isinstance(described, Picture) or not isinstance(wanted, Wanted):
        raise SourceUnreadableError(f"{path} is a picture.", hint="Ask the user to attach it.")
    return vault.look().read(wanted).text


def _choose_part(text: str, path: str, given: Arguments) -> tuple[str, str]:
    """The part that is asked for, and what it is called."""
    if heading := str(given.get("heading", "")).strip():
        found = find_part(parse_note(text), heading, length=len(text))
        if found is None:
            there = ", ".join(one.text for one in parse_note(text).headings[:30]) or "none"
            raise SourceMissingError(f"{path} has no heading {heading[:80]!r}.", hint=f"Its headings are: {there}.")
        return text[slice(*found)], f"{path}, below {heading}"
    if lines := str(given.get("lines", "")).strip():
        match = _LINES.fullmatch(lines)
        rows = text.split("\n")
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last or first > len(rows):
            raise ValueError(f"lines is {lines[:40]!r}; {path} has {len(rows):,} lines, named as in 10-40")
        last = min(last, len(rows))
        return "\n".join(rows[first - 1 : last]), f"{path}, lines {first} to {last} of {len(rows)}"
    return text, path


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.casefold().startswith(f"{folder.casefold()}/")


def _fits(path: str, pattern: str) -> bool:
    wanted = pattern.casefold()
    return fnmatchcase(path.casefold(), wanted) or fnmatchcase(PurePosixPath(path).name.casefold(), wanted)
