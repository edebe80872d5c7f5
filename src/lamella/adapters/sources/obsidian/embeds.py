"""Embeds: a note with what it embeds of other notes in its text, each once, in a frame that names its source."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from lamella.adapters.sources.markdown.model import NoteLink, ParsedNote
from lamella.adapters.sources.markdown.note import parse_note
from lamella.adapters.sources.markdown.sections import find_part
from lamella.core.artifacts.kinds import KINDS, Embeds, kind_of_file
from lamella.core.text.content import escape_line
from lamella.errors import BadInputError

# What finds the notes that a link in a note can mean, by its target and the path of that note; and what reads one.
Finder = Callable[[str, str], Sequence[str]]
TextReader = Callable[[str], str]

MOST_EMBEDS = 200
DEEPEST_EMBED = 5
_MOST_LOOKUPS = 1_000
_MOST_CHARACTERS = 2_000_000
_NAMED = 3
_OPENING = "<embedded_note "
_FRAME = re.compile(r"<(/?\s*embedded_note)", re.IGNORECASE)
_BLOCK_NAME = re.compile(r"[ \t\n]*\^[A-Za-z0-9-]+[ \t]*$")


class EmbedExpansion:
    """One note on its way to its whole text. What is embedded a second time is named and not repeated."""

    def __init__(self, path: str, *, find: Finder, read: TextReader) -> None:
        self._path, self._find, self._read = path, find, read
        self._left = _MOST_CHARACTERS
        self._notes: dict[str, tuple[str, ParsedNote]] = {}
        self._found: dict[tuple[str, str], Sequence[str]] = {}
        self._above = {path}
        self.sources: list[str] = []

    def expand(self, text: str) -> str:
        """The text with its embeds, as far as they can be found and bounds allow; the rest stays as it is written."""
        return self._expand(text, parse_note(text).embeds, path=self._path, depth=1)

    def _expand(self, text: str, embeds: Sequence[NoteLink], *, path: str, depth: int) -> str:
        parts: list[str] = []
        at = 0
        for embed in embeds:
            # What stands in the words of another embed was dealt with by that.
            if embed.start < at or not _names_note(embed):
                continue
            shown = self._show(embed, text[embed.start : embed.end], path=path, depth=depth)
            parts += (_break_frames(text[at : embed.start]), _on_lines(shown, text, embed))
            at = embed.end
        return "".join((*parts, _break_frames(text[at:])))

    def _show(self, embed: NoteLink, written: str, *, path: str, depth: int) -> str:
        paths = self._look_up(embed.target, path) if embed.target else (path,)
        if len(paths) != 1:
            return written if not paths else f"{written} ({_tell_several(embed.target, paths)})"
        name = f"{paths[0]}{embed.subpath}"
        if name in self._above or paths[0] in self._above:
            return f"{written} (already here: {escape_line(name)})"
        if depth > DEEPEST_EMBED:
            return f"{written} (not embedded: more than {DEEPEST_EMBED} notes deep)"
        if len(self.sources) >= MOST_EMBEDS or self._left <= 0:
            return f"{written} (not embedded: there is too much in this note already)"
        try:
            return self._embed(embed, name=name, path=paths[0], depth=depth) or written
        except BadInputError as error:
            return f"{written} (not embedded: {error.message})"

    def _look_up(self, target: str, path: str) -> Sequence[str]:
        """What a target means in a note. Each is looked for once, and after many that were looked for no other is."""
        wanted = (target, path)
        if wanted not in self._found and len(self._found) < _MOST_LOOKUPS:
            self._found[wanted] = self._find(target, path)
        return self._found.get(wanted, ())

    def _embed(self, embed: NoteLink, *, name: str, path: str, depth: int) -> str:
        """What is embedded in its frame; nothing where the note has no such part."""
        text, note = self._open(path)
        place = find_part(note, embed.subpath, length=len(text)) if embed.subpath else (note.body_offset, len(text))
        if place is None:
            return ""
        start, end = place
        self._left -= end - start
        self._above.add(name)
        self.sources.append(name)
        inner = [_move(one, start) for one in note.embeds if start <= one.start and one.end <= end]
        body = self._expand(text[start:end], inner, path=path, depth=depth + 1)
        if embed.subpath.startswith("#^"):
            body = _BLOCK_NAME.sub("", body)
        return f"{_OPENING}path={_quote(name)}>\n{body.strip()}\n</embedded_note>"

    def _open(self, path: str) -> tuple[str, ParsedNote]:
        if path not in self._notes:
            text = self._read(path)
            self._notes[path] = (text, parse_note(text))
        return self._notes[path]


def _names_note(embed: NoteLink) -> bool:
    """Whether a note is embedded, not a picture or another file; a dot in a name is not always an ending."""
    kind = kind_of_file(embed.target)
    return not embed.is_external and (kind is None or KINDS[kind].embeds is not Embeds.NONE)


def _move(embed: NoteLink, start: int) -> NoteLink:
    return replace(embed, start=embed.start - start, end=embed.end - start)


def _on_lines(shown: str, text: str, embed: NoteLink) -> str:
    """A frame on lines of its own; words stay in theirs."""
    if not shown.startswith(_OPENING):
        return shown
    before = "" if embed.start == 0 or text[embed.start - 1] == "\n" else "\n"
    after = "" if text[embed.end : embed.end + 1] in ("", "\n") else "\n"
    return f"{before}{shown}{after}"


def _tell_several(target: str, paths: Sequence[str]) -> str:
    some = ", ".join(escape_line(path) for path in paths[:_NAMED])
    return f"not embedded: {len(paths):,} notes are called {target}: {some}"


def _break_frames(text: str) -> str:
    """Text as it may stand in a frame: nothing in it opens or closes one."""
    return _FRAME.sub(r"<\\\1", text) if "<" in text else text


def _quote(name: str) -> str:
    """A name as the value of an attribute, which it cannot leave."""
    escaped = escape_line(name).replace('"', "&quot;")
    return f'"{escaped}"'
