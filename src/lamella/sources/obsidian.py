"""Obsidian's own formats: canvases, embedded notes and ignore rules.

``render_canvas`` renders a canvas as text: its cards in reading order, the cards of each group, and the connections.
``EmbedExpander`` inserts each embedded note once, in a tag that names its source. ``read_ignore_rules`` reads the
ignore rules of a vault: ``.lamellaignore`` hides files, Obsidian's exclusions only remove them from lists.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lamella.core.artifacts.kinds import kind_of_file
from lamella.core.artifacts.model import ArtifactKind
from lamella.core.text.content import escape_line
from lamella.errors import BadInputError, SourceUnreadableError
from lamella.files import read_first_bytes
from lamella.sources.markdown import NoteLink, ParsedNote, find_section_range, parse_note

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


class _CanvasNode(NamedTuple):
    """A node of a canvas with its position and size (x, y, width, height)."""

    id: str
    kind: str
    node: Mapping[str, object]
    box: tuple[float, float, float, float]


def render_canvas(source: str, name: str) -> str:
    """Return the text of a canvas file, which is JSON.

    Raises:
        SourceUnreadableError: The file is not a valid canvas.
    """
    nodes, edges = _read_canvas(source, name)
    cards = sorted((_make_canvas_node(node) for node in nodes), key=lambda card: (card.box[1], card.box[0], card.id))
    groups = [card for card in cards if card.kind == "group"]
    shown = [card for card in cards if card.kind != "group"]
    numbers = {card.id: f"[{number}]" for number, card in enumerate(shown, start=1)}
    called = {**numbers, **{group.id: f'group "{_get_node_text(group, "label")}"' for group in groups}}
    parts = [
        f"Canvas: {_format_count(shown, 'card')}, {_format_count(groups, 'group')}, {_format_count(edges, 'connection')}."
    ]
    parts += [f"{numbers[card.id]} {_describe_node(card)}" for card in shown]
    parts += [_render_group(group, shown, numbers) for group in groups]
    lines = [line for edge in edges if (line := _render_edge(edge, called))]
    return "\n\n".join((*parts, "\n".join(lines))).rstrip() + "\n"


def _read_canvas(source: str, name: str) -> tuple[Sequence[Mapping[str, object]], Sequence[Mapping[str, object]]]:
    try:
        # Obsidian saves a canvas without content as an empty file.
        found = json.loads(source) if source.strip() else {}
    except json.JSONDecodeError as error:
        raise _invalid_canvas_error(name, f"line {error.lineno:,}, column {error.colno:,}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise _invalid_canvas_error(name, "it is nested too deep, or has a number too long") from error
    if not isinstance(found, dict):
        raise _invalid_canvas_error(name, "it is JSON, and no object with nodes and edges")
    return _as_objects(found.get("nodes")), _as_objects(found.get("edges"))


def _invalid_canvas_error(name: str, why: str) -> SourceUnreadableError:
    return SourceUnreadableError(f"{name} is not a canvas: {why}.", hint="Open and save it in Obsidian, or detach it.")


def _as_objects(found: object) -> list[Mapping[str, object]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _make_canvas_node(node: Mapping[str, object]) -> _CanvasNode:
    x, y, width, height = (_as_number(node.get(side)) for side in ("x", "y", "width", "height"))
    return _CanvasNode(str(node.get("id", "")), str(node.get("type", "")), node, (x, y, width, height))


def _as_number(found: object) -> float:
    return float(found) if isinstance(found, int | float) and abs(found) < 1e15 else 0.0


def _get_node_text(card: _CanvasNode, field: str) -> str:
    found = card.node.get(field)
    return found.strip() if isinstance(found, str) else ""


def _format_count(things: Sequence[object], word: str) -> str:
    return f"{len(things):,} {word}{'' if len(things) == 1 else 's'}"


def _describe_node(card: _CanvasNode) -> str:
    match card.kind:
        case "text":
            return f"text\n{_get_node_text(card, 'text')}"
        case "file":
            return f"file {_get_node_text(card, 'file')}{_get_node_text(card, 'subpath')}"
        case "link":
            return f"link {_get_node_text(card, 'url')}"
    return f"{card.kind or 'card'} of a kind that is not known"


def _render_group(group: _CanvasNode, cards: Sequence[_CanvasNode], numbers: Mapping[str, str]) -> str:
    card_numbers = " ".join(numbers[card.id] for card in cards if _contains_node(group, card))
    return f'Group "{_get_node_text(group, "label")}": {card_numbers or "empty"}'


def _contains_node(group: _CanvasNode, card: _CanvasNode) -> bool:
    """Return whether a card belongs to a group, that is, whether its centre lies in it."""
    x, y, width, height = group.box
    across, down = card.box[0] + card.box[2] / 2, card.box[1] + card.box[3] / 2
    return x <= across <= x + width and y <= down <= y + height


def _render_edge(edge: Mapping[str, object], card_labels: Mapping[str, str]) -> str:
    one, other = card_labels.get(str(edge.get("fromNode"))), card_labels.get(str(edge.get("toNode")))
    if one is None or other is None:
        return ""
    ends = (edge.get("fromEnd") == "arrow", edge.get("toEnd", "arrow") == "arrow")
    arrow = {(False, True): "→", (True, False): "←", (True, True): "↔", (False, False): "—"}[ends]
    label = edge.get("label")
    words = f": {label.strip()}" if isinstance(label, str) and label.strip() else ""
    return f"{one} {arrow} {other}{words}"


# Embedded notes.

# ``FindNotes`` returns the notes that a link target can mean in the note at a path. ``ReadText`` reads a note.
FindNotes = Callable[[str, str], Sequence[str]]
ReadText = Callable[[str], str]

MOST_EMBEDS = 200
DEEPEST_EMBED = 5
_MAX_LOOKUPS = 1_000
_MAX_EMBEDDED_CHARACTERS = 2_000_000
_MAX_NAMED_NOTES = 3
_EMBED_TAG_START = "<embedded_note "
_EMBED_TAG = re.compile(r"<(/?\s*embedded_note)", re.IGNORECASE)
# A run of blanks is tried once, from its beginning.
_BLOCK_NAME = re.compile(r"(?<![ \t\n])[ \t\n]*+\^[A-Za-z0-9-]+[ \t]*$")


class EmbedExpander:
    """Expands the embeds of one note. A note that is embedded a second time is named and not repeated.

    ``sources`` lists what was embedded, in order.
    """

    def __init__(self, path: str, *, find_notes: FindNotes, read_text: ReadText) -> None:
        self._path, self._find_notes, self._read_text = path, find_notes, read_text
        self._characters_left = _MAX_EMBEDDED_CHARACTERS
        self._notes: dict[str, tuple[str, ParsedNote]] = {}
        self._lookups: dict[tuple[str, str], Sequence[str]] = {}
        self._embedded_names = {path}
        self.sources: list[str] = []

    def expand(self, text: str) -> str:
        """Return the text with its embeds expanded; embeds that are not found or exceed a limit stay as written."""
        return self._expand(text, parse_note(text).embeds, path=self._path, depth=1)

    def _expand(self, text: str, embeds: Sequence[NoteLink], *, path: str, depth: int) -> str:
        parts: list[str] = []
        at = 0
        for embed in embeds:
            # An embed inside the text of another embed was handled together with that one.
            if embed.start < at or not _is_note_embed(embed):
                continue
            shown = self._expand_embed(embed, text[embed.start : embed.end], path=path, depth=depth)
            parts += (_escape_embed_tags(text[at : embed.start]), _put_on_own_lines(shown, text, embed))
            at = embed.end
        return "".join((*parts, _escape_embed_tags(text[at:])))

    def _expand_embed(self, embed: NoteLink, written: str, *, path: str, depth: int) -> str:
        paths = self._resolve_target(embed.target, path) if embed.target else (path,)
        if len(paths) != 1:
            return written if not paths else f"{written} ({_format_ambiguous_target(embed.target, paths)})"
        name = f"{paths[0]}{embed.subpath}"
        if name in self._embedded_names or paths[0] in self._embedded_names:
            return f"{written} (already here: {escape_line(name)})"
        if depth > DEEPEST_EMBED:
            return f"{written} (not embedded: more than {DEEPEST_EMBED} notes deep)"
        if len(self.sources) >= MOST_EMBEDS or self._characters_left <= 0:
            return f"{written} (not embedded: there is too much in this note already)"
        try:
            return self._render_embed(name, paths[0], embed, depth=depth) or written
        except BadInputError as error:
            return f"{written} (not embedded: {error.message})"

    def _resolve_target(self, target: str, path: str) -> Sequence[str]:
        """Return the notes that a target can mean in the note at ``path``.

        Each pair is looked up once. After the limit of lookups, further targets give no notes.
        """
        link = (target, path)
        if link not in self._lookups and len(self._lookups) < _MAX_LOOKUPS:
            self._lookups[link] = self._find_notes(target, path)
        return self._lookups.get(link, ())

    def _render_embed(self, name: str, path: str, embed: NoteLink, *, depth: int) -> str:
        """Return the embedded text in its tag; empty if the note has no such part."""
        text, note = self._load_note(path)
        location = (
            find_section_range(note, embed.subpath, length=len(text))
            if embed.subpath
            else (note.body_offset, len(text))
        )
        if location is None:
            return ""
        start, end = location
        self._characters_left -= end - start
        self._embedded_names.add(name)
        self.sources.append(name)
        inner = [_shift_embed(one, start) for one in note.embeds if start <= one.start and one.end <= end]
        body = self._expand(text[start:end], inner, path=path, depth=depth + 1)
        if embed.subpath.startswith("#^"):
            body = _BLOCK_NAME.sub("", body)
        return f"{_EMBED_TAG_START}path={_quote_attribute(name)}>\n{body.strip()}\n</embedded_note>"

    def _load_note(self, path: str) -> tuple[str, ParsedNote]:
        if path not in self._notes:
            text = self._read_text(path)
            self._notes[path] = (text, parse_note(text))
        return self._notes[path]


def _is_note_embed(embed: NoteLink) -> bool:
    """Return whether an embed is of a note, not of an image or another file.

    A dot in a name is not always an ending, so an unknown ending counts as a note.
    """
    return not embed.is_external and kind_of_file(embed.target) in (None, ArtifactKind.NOTE)


def _shift_embed(embed: NoteLink, start: int) -> NoteLink:
    return replace(embed, start=embed.start - start, end=embed.end - start)


def _put_on_own_lines(shown: str, text: str, embed: NoteLink) -> str:
    """Put an expanded embed on lines of its own; other replacements stay within their line."""
    if not shown.startswith(_EMBED_TAG_START):
        return shown
    before = "" if embed.start == 0 or text[embed.start - 1] == "\n" else "\n"
    after = "" if text[embed.end : embed.end + 1] in ("", "\n") else "\n"
    return f"{before}{shown}{after}"


def _format_ambiguous_target(target: str, paths: Sequence[str]) -> str:
    some = ", ".join(escape_line(path) for path in paths[:_MAX_NAMED_NOTES])
    return f"not embedded: {len(paths):,} notes are called {target}: {some}"


def _escape_embed_tags(text: str) -> str:
    """Escape embed tags in a text, so that the text cannot open or close one."""
    return _EMBED_TAG.sub(r"<\\\1", text) if "<" in text else text


def _quote_attribute(name: str) -> str:
    """Return a name as a quoted attribute value, with quotation marks escaped."""
    escaped = escape_line(name).replace('"', "&quot;")
    return f'"{escaped}"'


# Ignore rules.

IGNORE_FILE = ".lamellaignore"
# Obsidian's settings of a vault.
OBSIDIAN_SETTINGS_FILE = ".obsidian/app.json"
IGNORE_RULE_FILES = (IGNORE_FILE, OBSIDIAN_SETTINGS_FILE)
_MAX_RULES_FILE_BYTES = 1_000_000
_MOST_RULES = 1_000
_LONGEST_RULE = 200
# Matching tries every position for each star. With three stars, one rule takes ten milliseconds per path (measured
# 2026-11-17).
_MOST_STARS = 2
# A repetition of a repetition, or a back reference, can take exponential time.
_SLOW_PATTERN = re.compile(r"\)[*+{]|\\\d")
_REPETITION = re.compile(r"(?<!\\)[*+{]")


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreRules:
    """The ignore rules of a vault.

    Files that match ``spec`` are never read. Files that match ``exclusion_filters`` are not listed. ``warnings``
    describes the rules that are not applied.
    """

    spec: "GitIgnoreSpec | None" = None
    exclusion_filters: tuple[Callable[[str], bool], ...] = ()
    warnings: tuple[str, ...] = ()

    def is_hidden(self, path: str) -> bool:
        """Return whether a file is never read. The path of a folder ends in a slash."""
        return self.spec is not None and self.spec.match_file(path)

    def is_unlisted(self, path: str) -> bool:
        """Return whether a file is in no list, so that it is found at most by its exact path."""
        return self.is_hidden(path) or any(excludes(path) for excludes in self.exclusion_filters)


def read_ignore_rules(root: Path) -> IgnoreRules:
    """Return the rules of a vault. Rules that cannot be read are reported in ``warnings``."""
    warnings: list[str] = []
    lines = [
        line
        for line in _read_rules_file(root / IGNORE_FILE, warnings).splitlines()
        if line.strip() and not line.startswith("#")
    ]
    excluded = [_make_filter(one, warnings) for one in _read_filters(root / OBSIDIAN_SETTINGS_FILE, warnings)]
    return IgnoreRules(
        spec=_make_spec(lines, warnings) if lines else None,
        exclusion_filters=tuple(one for one in excluded if one is not None),
        warnings=tuple(warnings),
    )


def _read_rules_file(file: Path, warnings: list[str]) -> str:
    try:
        return read_first_bytes(file, limit=_MAX_RULES_FILE_BYTES).decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        warnings.append(f"The rules in {file.name} are not followed: it cannot be read ({_read_error_reason(error)}).")
        return ""


def _read_error_reason(error: OSError | UnicodeDecodeError) -> str:
    return str(error.strerror or error) if isinstance(error, OSError) else "it is not UTF-8"


def _make_spec(lines: list[str], warnings: list[str]) -> "GitIgnoreSpec":
    # Imported only if there are rules, because the import takes longer than a walk through the vault.
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore import GitIgnorePatternError

    usable = []
    for line in lines[:_MOST_RULES]:
        try:
            if _may_match_slowly(line):
                raise GitIgnorePatternError
            GitIgnoreSpec.from_lines([line])
        except GitIgnorePatternError:
            warnings.append(f"A rule in {IGNORE_FILE} is not followed: {line[:60]}")
        else:
            usable.append(line)
    return GitIgnoreSpec.from_lines(usable)


def _may_match_slowly(line: str) -> bool:
    names = line.split("/")
    most = max(name.replace("**", "").count("*") for name in names)
    return len(line) > _LONGEST_RULE or most > _MOST_STARS or line.count("**") > _MOST_STARS


def _read_filters(file: Path, warnings: list[str]) -> Iterable[str]:
    text = _read_rules_file(file, warnings)
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        warnings.append("What Obsidian excludes is not followed: .obsidian/app.json is not JSON.")
        return []
    filters = found.get("userIgnoreFilters") if isinstance(found, dict) else None
    return [one for one in filters if isinstance(one, str) and one] if isinstance(filters, list) else []


def _make_filter(exclusion: str, warnings: list[str]) -> Callable[[str], bool] | None:
    """Return a filter for one Obsidian exclusion; None if it cannot be applied.

    An exclusion between slashes is a regular expression that is searched in the path. Any other is a path prefix.
    """
    if not (len(exclusion) > 1 and exclusion.startswith("/") and exclusion.endswith("/")):
        return lambda path: path.startswith(exclusion)
    inner = exclusion[1:-1]
    try:
        if len(inner) > _LONGEST_RULE or _SLOW_PATTERN.search(inner) or len(_REPETITION.findall(inner)) > _MOST_STARS:
            raise re.error("too slow")
        pattern = re.compile(inner)
    except (re.error, RecursionError, OverflowError):
        warnings.append(
            f"What Obsidian excludes by {exclusion[:60]} is not left out: the expression cannot be followed."
        )
        return None
    return lambda path: pattern.search(path) is not None
