"""Import archives of Obsidian Copilot, and other files of ``**user**: `` and ``**ai**: `` messages.

``parse_legacy`` parses a file that is not an archive of Lamella. Context lines name notes without their text, so each
note is read as it is now (``ContextLineReader``). Older exports have the text itself in the message; then that text is
used. ``strip_reasoning_and_tool_banners`` removes markers that another program left in its replies: they are not part of the reply, and a
model must not see them as its own words.

``extract_blocks`` is the only code that parses text back into artifacts. It removes a block from the message only if
it is certain that the text is one. A block with an unknown tag becomes an ``unknown`` artifact with its text verbatim.
"""

import logging
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from html import unescape
from itertools import chain, count

from lamella.archive.markdown.page import (
    MessagePair,
    VisibleMessage,
    pair_messages,
    parse_archive_time,
    parse_context_line,
    parse_epoch_milliseconds,
    parse_page,
)
from lamella.archive.markdown.payload import EventAppender, FrontMatter
from lamella.archive.markdown.recovery import FileLookup
from lamella.core.artifacts.kinds import KINDS, TEXT_KINDS, BlockFormat, SourceMedium, kind_of_file, make_artifact
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, UnresolvedAttachment
from lamella.core.log.events.artifact import contents_of_artifacts
from lamella.core.log.events.message import make_unplaced_question_event
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import Turn
from lamella.core.text.content import encode_text, is_web_address, iter_lines_with_code_flag, make_title
from lamella.errors import BadInputError, SourceNotFoundError
from lamella.ports import ConversationExport, SourceReaders

__all__ = ["parse_legacy"]

# Blocks that name the source of their text. Query results are excluded: their blocks lack fields that the kind needs.
_KIND_BY_TAG = {
    spec.tag: kind
    for kind, spec in KINDS.items()
    if spec.block_format is BlockFormat.LOCATED and "query" not in spec.fields
} | {
    "active_web_tab": ArtifactKind.WEB_TAB,
    "embedded_note": ArtifactKind.NOTE,
    "embedded_pdf": ArtifactKind.PDF,
    "twitter_content": ArtifactKind.URL,
    "vault_note": ArtifactKind.NOTE,
}
# Obsidian Copilot shortened attachments of earlier turns to a block with this tag.
_SHORTENED_TAG = "prior_context"
_KIND_BY_SHORTENED_TYPE = {
    "note": ArtifactKind.NOTE,
    "pdf": ArtifactKind.PDF,
    "url": ArtifactKind.URL,
    "youtube": ArtifactKind.YOUTUBE,
}
# Results of the tools of Obsidian Copilot are in a tag with the name of the tool.
_TOOL_TAGS = frozenset(
    {
        "convertTimeBetweenTimezones", "fetchUrl", "getCurrentTime", "getFileTree", "getTagList", "getTimeInfoByEpoch",
        "getTimeRangeMs", "indexVault", "localSearch", "readNote", "updateMemory", "webSearch", "youtubeTranscription",
    }
)  # fmt: skip
# All tags that Obsidian Copilot wrote itself. Only such blocks are removed from a reply: others are the model's words.
_KNOWN_TAGS = _TOOL_TAGS.union(
    _KIND_BY_TAG,
    {
        "active_note_error", "active_web_tab", "additionalMatches", "embedded_note", "embedded_pdf",
        "note_context_error", "prior_context", "prior_context_note", "retrieved_document", "twitter_content",
        "use_tool", "variable", "vault_note",
    },
)  # fmt: skip
# No HTML element has an underscore in its name, so a tag with one is not something the user typed about a web page.
_TAGS_WITHOUT_UNDERSCORE = "|".join(sorted(name for name in _KNOWN_TAGS if "_" not in name))
_BLOCK_TAG = re.compile(rf"<([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+|{_TAGS_WITHOUT_UNDERSCORE})(?: [^<>]*)?>")
_OPENING_TAG = re.compile(r"<(\w+)[ >]")
# A closing tag counts at the beginning or the end of a line. Between other words it is a quotation.
_CLOSING_TAG = re.compile(r"</(\w+)>\s*$")
_CLOSING_TAG_AT_START = re.compile(r"\s*</(\w+)>")
_TOOL_RESULT_LABEL = re.compile(rf"Tool '({'|'.join(sorted(_TOOL_TAGS))})' result: ")
_CONTENT_START, _CONTENT_END = "<content>", "</content>"
_FIELD_TAG = re.compile(r"<(title|path|url|name|start_line|end_line)>")
# The text after the opening tag of a block that is not closed. Without it the tag may be something the user wrote about.
_BLOCK_BODY_START = re.compile(r"\s*<(?:title|path|url|name|content)>")
_SOURCE_ATTRIBUTE = re.compile(r'<\w+ [^<>]*?\bsource="([^"<>]*)"')
_TYPE_ATTRIBUTE = re.compile(r'<\w+ [^<>]*?\btype="([^"<>]*)"')
_MAX_LINE_DIGITS = 9
_QUERY_LABEL = "[User query]:"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnparsedBlock:
    """A block that could not be parsed: its tag, the source that it names, and the artifact with its whole text."""

    tag: str
    source: str
    artifact: Artifact


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedBlocks:
    """The text of a message without blocks, and the artifacts made of the blocks, including unparsed ones.

    ``shortened`` are the artifacts whose text the message has only in part.
    """

    remaining_text: str
    artifacts: tuple[Artifact, ...]
    unparsed: tuple[UnparsedBlock, ...] = ()
    shortened: tuple[Artifact, ...] = ()


def extract_blocks(text: str, *, is_answer: bool = False) -> ExtractedBlocks:
    """Split a message into the typed or replied text and the context blocks around it."""
    # Most messages have no block. This test spares them the walk over their lines.
    if "</" not in text and "' result: " not in text and _BLOCK_TAG.search(text) is None:
        return ExtractedBlocks(remaining_text=text, artifacts=())
    lines = text.split("\n")
    code = [is_code for _, is_code in iter_lines_with_code_flag(text)]
    ends = _BlockScanner(lines)
    typed: list[str] = []
    artifacts: list[Artifact] = []
    unparsed: list[UnparsedBlock] = []
    shortened: list[Artifact] = []
    at = 0
    while at < len(lines):
        tag = _opening_tag(lines[at], is_answer=is_answer) if not code[at] else None
        end = ends.block_end(tag, at) if tag else None
        if tag and end is None and not is_answer:
            end = ends.unclosed_block_end(tag, at)
        if tag and end is not None:
            last, cut = end
            block = "\n".join((*lines[at:last], lines[last][:cut])) if last > at else lines[at][:cut]
            artifacts.append(_parse_block(tag, block))
            if artifacts[-1].kind is ArtifactKind.UNKNOWN:
                unparsed.append(UnparsedBlock(tag=tag, source=_block_source(block), artifact=artifacts[-1]))
            elif tag == _SHORTENED_TAG:
                shortened.append(artifacts[-1])
            typed += [rest] if (rest := lines[last][cut:].strip()) else []
            at = last + 1
        else:
            typed.append(lines[at])
            at += 1
    if not artifacts:
        return ExtractedBlocks(remaining_text=text, artifacts=())
    own = "\n".join(typed).strip()
    own = own if is_answer else own.removeprefix(_QUERY_LABEL).lstrip()
    return ExtractedBlocks(
        remaining_text=own, artifacts=tuple(artifacts), unparsed=tuple(unparsed), shortened=tuple(shortened)
    )


def _opening_tag(line: str, *, is_answer: bool) -> str | None:
    """Return the tag that a line opens, or None.

    In a reply, only tags that Obsidian Copilot wrote itself count. In a question, any other tag with an underscore
    counts, too, if it is alone on its line and not indented.
    """
    own = line.lstrip(" \t")
    result, match = _TOOL_RESULT_LABEL.match(own), _BLOCK_TAG.match(own)
    if result is not None or match is None:
        return None if result is None else result[1]
    alone = _is_tag_alone_on_line(match, own)
    if match[1] in _KNOWN_TAGS:
        return match[1] if is_answer or match[1] in _KIND_BY_TAG or match[1] in _TOOL_TAGS or alone else None
    return match[1] if alone and own == line and not is_answer else None


def _is_tag_alone_on_line(match: re.Match[str], line: str) -> bool:
    return not line[match.end() :].strip()


class _BlockScanner:
    """Finds where each block is closed: the line, and the offset in it.

    Nested blocks of the same tag are part of the outer block. All ends are found in one pass, because a search for
    each block would read the same lines again and again.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._matched: dict[int, tuple[int, int]] = {}
        self._closings: dict[str, list[tuple[int, int]]] = {}
        opened: dict[str, list[int]] = {}
        for at, line in enumerate(lines):
            own = line.lstrip(" \t")
            if opening := _OPENING_TAG.match(own):
                opened.setdefault(opening[1], []).append(at)
            elif _TOOL_RESULT_LABEL.match(own):
                self._matched[at] = (at, len(line))
            closed = _closing_tag(line, opening[1] if opening else "")
            if closed is not None:
                tag, cut = closed
                self._closings.setdefault(tag, []).append((at, cut))
                if opened.get(tag):
                    self._matched[opened[tag].pop()] = (at, cut)

    def block_end(self, tag: str, start: int) -> tuple[int, int] | None:
        """Return where the block that a line opens ends.

        This is its own closing tag, otherwise the next closing tag of that name. None means that there is none.
        """
        if start in self._matched:
            return self._matched[start]
        closings = self._closings.get(tag, ())
        at = bisect_left(closings, (start, 0))
        return closings[at] if at < len(closings) else None

    def unclosed_block_end(self, tag: str, start: int) -> tuple[int, int] | None:
        """Return where a block without a closing tag ends: before the next block or the question, or with the text.

        None means that the line may be the user's own words.
        """
        own = self._lines[start].lstrip(" \t")
        match = _BLOCK_TAG.match(own)
        if tag not in _KNOWN_TAGS or match is None or not _is_tag_alone_on_line(match, own):
            return None
        body = next((line for line in self._lines[start + 1 : start + 3] if line.strip()), "")
        if _BLOCK_BODY_START.match(body) is None and _SOURCE_ATTRIBUTE.match(own) is None:
            return None
        at = bisect_left(self._lines_that_end_a_block, start + 1)
        last = (self._lines_that_end_a_block[at] if at < len(self._lines_that_end_a_block) else len(self._lines)) - 1
        return last, len(self._lines[last])

    @cached_property
    def _lines_that_end_a_block(self) -> list[int]:
        """The lines at which an unclosed block ends: those that open a known block, and the label of the question."""
        return [
            at
            for at, line in enumerate(self._lines)
            if line.startswith(_QUERY_LABEL)
            or (
                (tag := _opening_tag(line, is_answer=False)) in _KNOWN_TAGS and line.lstrip(" \t").startswith(f"<{tag}")
            )
        ]


def _closing_tag(line: str, opened: str) -> tuple[str, int] | None:
    """Return the tag that a line closes and the offset after it, or None.

    ``opened`` is the tag that the same line opens. A tool's tag may be closed anywhere on the line that opens it.
    """
    if "</" not in line:
        return None
    if closing := _CLOSING_TAG.search(line):
        return closing[1], len(line)
    if closing := _CLOSING_TAG_AT_START.match(line):
        return closing[1], closing.end()
    at = line.find(f"</{opened}>") if opened in _TOOL_TAGS else -1
    return (opened, at + len(f"</{opened}>")) if at >= 0 else None


def _parse_block(tag: str, block: str) -> Artifact:
    if tag == _SHORTENED_TAG:
        return _parse_shortened_block(block)
    kind = _KIND_BY_TAG.get(tag)
    start, end = block.find(_CONTENT_START), block.rfind(_CONTENT_END)
    if kind is None or not 0 <= start < end:
        return _unknown_artifact(block)
    fields = _parse_fields(block[:start])
    text = block[start + len(_CONTENT_START) : end].removeprefix("\n").removesuffix("\n")
    path = fields.get("path") or (fields.get("name") if kind is ArtifactKind.PDF else None)
    source = ArtifactSource(path=path, url=fields.get("url"), lines=_parse_line_range(fields))
    try:
        return make_artifact(kind, text=text, source=source, title=fields.get("title", ""))
    except BadInputError:
        return _unknown_artifact(block)


def _parse_shortened_block(block: str) -> Artifact:
    """Parse a block that has only a part of an attachment's text, and names its source in an attribute."""
    name, sort = _block_source(block), _TYPE_ATTRIBUTE.match(block)
    kind = _KIND_BY_SHORTENED_TYPE.get(sort[1] if sort else "")
    # The source of a tool's result is the name of the tool, which is no file.
    is_file = kind in (ArtifactKind.NOTE, ArtifactKind.PDF) and kind_of_file(name) is not None
    if kind is None or not (is_file or is_web_address(name)):
        return _unknown_artifact(block)
    text = block[block.find(">") + 1 :].rstrip().removesuffix(f"</{_SHORTENED_TAG}>")
    source = ArtifactSource(path=name) if is_file else ArtifactSource(url=name)
    try:
        return make_artifact(kind, text=text.removeprefix("\n").removesuffix("\n"), source=source)
    except BadInputError:
        return _unknown_artifact(block)


def _parse_fields(head: str) -> dict[str, str]:
    """Return the fields before the content of a block. Each field extends to its closing tag."""
    fields: dict[str, str] = {}
    # Names whose closing tag does not occur in the rest of the text: without this set each one would be searched again.
    never_closed: set[str] = set()
    at = 0
    for opening in _FIELD_TAG.finditer(head):
        name = opening[1]
        if opening.start() < at or name in never_closed:
            continue
        end = head.find(f"</{name}>", opening.end())
        if end < 0:
            never_closed.add(name)
            continue
        fields[name] = unescape(head[opening.end() : end].strip())
        at = end
    return fields


def _block_source(block: str) -> str:
    """Return the source that a block names, or an empty string."""
    source_match = _SOURCE_ATTRIBUTE.match(block)
    if source_match is not None:
        return unescape(source_match[1])
    fields = _parse_fields(block)
    return fields.get("path") or fields.get("url") or ""


def _unknown_artifact(block: str) -> Artifact:
    return make_artifact(ArtifactKind.UNKNOWN, text=block, source=ArtifactSource())


def _parse_line_range(fields: dict[str, str]) -> tuple[int, int] | None:
    first, last = fields.get("start_line", ""), fields.get("end_line", "")
    if not all(number.isdecimal() and len(number) <= _MAX_LINE_DIGITS for number in (first, last)):
        return None
    return int(first), int(last)


# Context lines.

_KIND_BY_GROUP = {spec.group: kind for kind, spec in KINDS.items() if spec.block_format is BlockFormat.EXPANDS}
_FETCHED_GROUPS = {spec.group for spec in KINDS.values() if spec.medium in (SourceMedium.PAGE, SourceMedium.VIDEO)}
# Limits for one file: names that are looked up, and artifacts that are attached. A short line may name a whole vault,
# and the next line may name it again.
_MAX_NAMES, _MAX_ATTACHMENTS = 10_000, 20_000
# These lines join names with commas and do not quote names that contain one. At most this many pieces are tried as one
# name.
_MAX_NAME_PIECES = 5


class ContextLineReader:
    """Reads the artifacts that context lines name, and adds a warning for each one that is left out."""

    def __init__(self, lookup: FileLookup, warnings: list[str]) -> None:
        self._lookup = lookup
        self._warnings = warnings
        self._names_left, self._attachments_left = _MAX_NAMES, _MAX_ATTACHMENTS
        self._expanded: dict[tuple[ArtifactKind, str], tuple[Artifact, ...]] = {}

    def read(self, line: str, *, number: int) -> Iterator[Artifact]:
        """Yield the artifacts that a message's context line names, until the limit for the file is reached."""
        for artifact in self._read_line(line, number):
            if not self._attachments_left:
                self._warn(
                    number, f"more than {_MAX_ATTACHMENTS:,} attachments are named up to here; the others are left out."
                )
                return
            self._attachments_left -= 1
            yield artifact

    def _read_line(self, line: str, number: int) -> Iterator[Artifact]:
        for group, given in parse_context_line(line).items():
            names = given[: self._names_left]
            self._names_left -= len(names)
            if len(names) < len(given):
                left = f"{len(given) - len(names):,} names are left out"
                self._warn(number, f"{left}; more than {_MAX_NAMES:,} are not looked up for one file.")
            if group == KINDS[ArtifactKind.NOTE].group:
                yield from self._read_notes(names, number)
            elif group in _KIND_BY_GROUP:
                yield from self._read_expanded_names(_KIND_BY_GROUP[group], names, number)
            elif group in _FETCHED_GROUPS:
                self._warn(number, f"the text of {', '.join(names)} is not in the file, and nothing is fetched.")
            else:
                self._warn(number, f"its context {group or 'line'} is not known: {', '.join(names)}.")

    def _read_notes(self, names: Sequence[str], number: int) -> Iterator[Artifact]:
        at = 0
        while at < len(names):
            pieces = self._count_pieces_of_first_name(names[at : at + _MAX_NAME_PIECES])
            name = ", ".join(names[at : at + pieces])
            at += pieces
            found = self._lookup.read_or_find_moved(name, _kind_of_file(name))
            if found.artifact is None:
                self._warn(number, f"{name} is left out: {found.why}.")
                continue
            if found.moved_to is not None:
                self._warn(number, f"{name} was found as {found.moved_to}.")
            yield found.artifact

    def _count_pieces_of_first_name(self, names: Sequence[str]) -> int:
        """Count the pieces of the first name. It has more than one only if a file has exactly the joined name."""
        if self._lookup.sources.catalog is None:
            return 1
        for pieces in range(1, len(names) + 1):
            name = ", ".join(names[:pieces])
            if self._lookup.exists(name, _kind_of_file(name)):
                return pieces
        return 1

    def _read_expanded_names(self, kind: ArtifactKind, names: Sequence[str], number: int) -> Iterator[Artifact]:
        for name in dict.fromkeys(names):
            try:
                yield from self._read_notes_of_folder_or_tag(kind, name)
            except BadInputError as error:
                self._warn(number, f"the {kind} {name} is left out: {error.message}")

    def _read_notes_of_folder_or_tag(self, kind: ArtifactKind, name: str) -> tuple[Artifact, ...]:
        """Read the notes of a folder or tag, once for all messages that name it."""
        sources = self._lookup.sources
        if sources.catalog is None:
            raise SourceNotFoundError("no vault was given to read it from.", hint="Name the vault.")
        if (kind, name) not in self._expanded:
            paths = sources.catalog.list_notes(kind, name).paths
            attachments = [
                UnresolvedAttachment(kind=ArtifactKind.NOTE, name=path, via=f"{kind}:{name}") for path in paths
            ]
            self._expanded[kind, name] = tuple(map(sources.read, attachments))
        return self._expanded[kind, name]

    def _warn(self, number: int, description: str) -> None:
        self._warnings.append(f"Message {number}: {description}")


def _kind_of_file(name: str) -> ArtifactKind:
    """Return the kind of a named file. Documents are known by their extensions; every other text is a note."""
    kind = kind_of_file(name)
    is_document = kind in TEXT_KINDS and kind is not ArtifactKind.CODE
    return kind if kind is not None and is_document else ArtifactKind.NOTE


REASONING_MARKER, BANNER_MARKER = "reasoning mark", "tool banner"

# Markers: reasoning sections, and banners of tools.

_MARKER = re.compile(
    r"<!--(?:(?P<reasoning>AGENT_REASONING)|TOOL_CALL_START:(?P<begun>[^:\n]*)|TOOL_CALL_END:[^:\n]*):|<think(?:ing)?>"
)
_BANNER_END = re.compile(r"<!--TOOL_CALL_END:([^:\n]*):")
_COMMENT_END = re.compile("-->")
_THOUGHT_END = re.compile(r"</think(?:ing)?>")


def strip_reasoning_and_tool_banners(answer: str) -> tuple[str, Counter[str]]:
    """Return a reply without markers, and the number of removed markers by sort.

    Markers inside a code fence are text and are kept.
    """
    counted: Counter[str] = Counter()
    if _MARKER.search(answer) is None:
        return answer, counted
    ends = _MarkerScanner(answer)
    kept: list[str] = []
    at = 0
    for mark in _MARKER.finditer(answer):
        end = ends.offset_after_marker(mark) if mark.start() >= at else None
        if end is not None:
            counted[BANNER_MARKER if mark[0].startswith("<!--TOOL") else REASONING_MARKER] += 1
            kept.append(answer[at : mark.start()])
            at = end
    return (_join_pieces([*kept, answer[at:]]) if counted else answer), counted


class _MarkerScanner:
    """Finds where the markers of a reply end.

    All end positions are collected once, because a reply may have as many markers as words.
    """

    def __init__(self, answer: str) -> None:
        self._length = len(answer)
        self._text_start = len(answer) - len(answer.lstrip())
        self._comment_ends = [found.end() for found in _COMMENT_END.finditer(answer)]
        self._thought_ends = [found.end() for found in _THOUGHT_END.finditer(answer)]
        self._list_code_block_offsets = _list_code_block_offsets(answer)
        self._banner_ends: dict[str, list[int]] = {}
        for found in _BANNER_END.finditer(answer):
            self._banner_ends.setdefault(found[1], []).append(found.start())

    def offset_after_marker(self, marker: re.Match[str]) -> int | None:
        """Return the offset after a marker, or None if the marker is incomplete or inside code."""
        if self._is_code(marker.start()):
            return None
        if not marker[0].startswith("<!--"):
            # A reply that was stopped during the reasoning has no closing tag, so all of it is reasoning.
            return _find_next_offset(self._thought_ends, marker.end()) or (
                self._length if marker.start() == self._text_start else None
            )
        closing = _find_next_offset(self._banner_ends.get(marker["begun"] or "", ()), marker.end())
        return _find_next_offset(self._comment_ends, closing or marker.end())

    def _is_code(self, offset: int) -> bool:
        """Return whether an offset is inside code: an odd number of borders lies before it."""
        return bisect_left(self._list_code_block_offsets, offset + 1) % 2 == 1


def _list_code_block_offsets(text: str) -> list[int]:
    """Return the offsets at which code begins and ends, alternately."""
    borders: list[int] = []
    at, inside = 0, False
    for line, is_code in iter_lines_with_code_flag(text):
        if is_code != inside:
            borders.append(at)
            inside = is_code
        at += len(line) + 1
    return borders


def _find_next_offset(offsets: Sequence[int], after: int) -> int | None:
    at = bisect_left(offsets, after)
    return offsets[at] if at < len(offsets) else None


def _join_pieces(pieces: Iterable[str]) -> str:
    """Join the remaining pieces without the blank lines that surrounded the removed markers."""
    joined: list[str] = []
    for piece in pieces:
        begins_line = not joined or joined[-1].endswith("\n")
        shown = piece.lstrip("\n") if begins_line else piece
        if shown:
            joined.append(shown)
    return "".join(joined).strip()


# Whole files.

_UNKNOWN_TIME = "1970-01-01T00:00:00Z"
_ID_DIGITS = 16
_MAX_SOURCE_CHARS = 80
# Many times the length of any real chat. Importing a message costs far more time than reading its characters.
_MAX_MESSAGES = 20_000
_MAX_LISTED_BLOCKS = 5
_logger = logging.getLogger(__name__)


def parse_legacy(
    front: FrontMatter, body: str, sources: SourceReaders | None, *, is_erased: Callable[[str], bool] | None = None
) -> ConversationExport:
    """Parse the conversation in a file that is not an archive of Lamella.

    ``is_erased`` says whether a conversation with an id was erased. Then the import gets the next id, because a file
    has no id of its own, and erasing an import must not forbid another one.
    """
    page = parse_page(body, escaped=False)
    if not page.messages and body.lstrip().startswith(("{", "[")):
        raise BadInputError(
            "The file is JSON; archives are markdown.",
            hint=lambda hints: (
                f"A transcript is replayed ({hints.replay_transcript_hint()}), not imported. To move conversations, export them as "
                "archives, or copy the store; docs/how-to/migrate.md shows how a list of messages is taken over."
            ),
        )
    if not page.messages:
        raise BadInputError(
            "The file has no line that begins with `**user**: ` or `**ai**: `; it is no archive of a conversation.",
            hint="docs/reference/formats/archive.md shows the formats that can be imported.",
        )
    if len(page.messages) > _MAX_MESSAGES:
        raise BadInputError(
            f"The file has {len(page.messages):,} messages; at most {_MAX_MESSAGES:,} are read from one.",
            hint="Split it into several files, each with front matter of its own.",
        )
    warnings = ["The text before the first message belongs to no message and is left out."] if page.preface else []
    pairs, paired = pair_messages(page.messages)
    file = _LegacyImporter(
        derive_conversation_id(front.fields, page.messages[0], is_erased=is_erased or (lambda _key: False)),
        front.fields,
        page.messages[0],
        lookup=FileLookup(sources),
        warnings=[*warnings, *paired],
    )
    for pair in pairs:
        file.import_turn(pair)
    return file.to_export()


class _LegacyImporter:
    """Imports one file, turn by turn."""

    def __init__(
        self,
        conversation_id: str,
        fields: Mapping[str, str],
        first: VisibleMessage,
        *,
        lookup: FileLookup,
        warnings: list[str],
    ) -> None:
        self._warnings = warnings
        self._context_reader = ContextLineReader(lookup, warnings)
        self._created = (
            parse_epoch_milliseconds(fields.get("epoch", "")) or parse_archive_time(first.stamp) or _UNKNOWN_TIME
        )
        self._last_time = self._created
        self._model = _parse_model_key(fields.get("modelKey", ""))
        self._first = first, extract_blocks(first.text)
        self._title = fields.get("topic", "").strip() or make_title(self._first[1].remaining_text)
        self._contents: dict[str, bytes] = {}
        self._message_number = 0
        self._appender = EventAppender(log=FoldedLog(conversation=conversation_id))
        if self._title:
            self._appender.append_title(self._title, at=self._created)

    def import_turn(self, pair: MessagePair) -> None:
        """Import one turn: its question with the attachments, and its reply."""
        self._message_number += 1
        first, extract = self._first
        # The first message was already parsed, for the title. It is the same object, so identity is enough.
        asked = extract if pair.user is first else extract_blocks(pair.user.text)
        self._warn_unparsed_blocks(asked, self._message_number, "its attachments")
        recalled = (
            self._context_reader.read(pair.user.context, number=self._message_number) if pair.user.context else ()
        )
        answer = self._read_answer(pair.reply.text) if pair.reply is not None else _NO_REPLY
        # A shortened text counts only if the whole one is not at hand.
        shortened = (*asked.shortened, *answer.shortened)
        is_shortened = {id(one) for one in shortened}
        whole = [one for one in (*asked.artifacts, *recalled, *answer.artifacts) if id(one) not in is_shortened]
        attached = _unique_artifacts((*whole, *shortened))
        turn = Turn(text=asked.remaining_text, typed=asked.remaining_text, attached=attached, model=self._model)
        # The file names one model for the whole conversation. It is set with the first turn and stays.
        self._model = None
        self._contents.update(contents_of_artifacts(attached))
        self._appender.append_question(make_unplaced_question_event(turn), at=self._message_time(pair.user))
        if pair.reply is not None:
            self._message_number += 1
            self._appender.append_reply(answer.remaining_text, at=self._message_time(pair.reply))

    def _read_answer(self, text: str) -> ExtractedBlocks:
        """Return a reply without markers and blocks. The caller attaches the blocks to the question."""
        number = self._message_number + 1
        answer, marks = strip_reasoning_and_tool_banners(text)
        if marks:
            sorts = " and ".join(_format_count(count, what) for what, count in marks.items())
            are = "is" if marks.total() == 1 else "are"
            self._warnings.append(f"Message {number}: {sorts} of the other program {are} left out.")
        extracted = extract_blocks(answer, is_answer=True)
        self._warn_unparsed_blocks(extracted, number, "the attachments of its question")
        return extracted

    def _warn_unparsed_blocks(self, extracted: ExtractedBlocks, number: int, moved_to: str) -> None:
        """Add a warning about the blocks that were moved out of a message and those that could not be parsed."""
        if extracted.artifacts:
            blocks = _format_count(len(extracted.artifacts), "context block")
            self._warnings.append(f"Message {number}: moved from its text to {moved_to}: {blocks}.")
        if extracted.unparsed:
            blocks = _format_count(len(extracted.unparsed), "block")
            message = f"{blocks} could not be read and {'is' if len(extracted.unparsed) == 1 else 'are'} kept verbatim"
            self._warnings.append(f"Message {number}: {message}: {_describe_blocks(extracted.unparsed)}.")
        for block in extracted.unparsed:
            # The log has no text of the block, because people pass logs on.
            size, name = len(block.artifact.text), block.artifact.hash
            _logger.debug("unparsed block in message %d: tag %s, %d characters, %s", number, block.tag, size, name)

    def to_export(self) -> ConversationExport:
        """Return the imported conversation."""
        return ConversationExport(
            conversation_key=self._appender.log.conversation,
            title=self._title,
            created=self._created,
            records=tuple(self._appender.records),
            contents=self._contents,
            warnings=tuple(self._warnings),
        )

    def _message_time(self, message: VisibleMessage) -> str:
        """Return the time of a message, or that of the message before it if the time cannot be read."""
        at = parse_archive_time(message.stamp)
        if at is None and message.stamp:
            self._warn(f"its time {message.stamp!r} cannot be read; that of the message before is used.")
        self._last_time = at or self._last_time
        return self._last_time

    def _warn(self, description: str) -> None:
        self._warnings.append(f"Message {self._message_number}: {description}")


_NO_REPLY = ExtractedBlocks(remaining_text="", artifacts=())


def _format_count(count: int, description: str) -> str:
    return f"{count:,} {description}{'' if count == 1 else 's'}"


def _describe_blocks(blocks: Sequence[UnparsedBlock]) -> str:
    """List blocks by tag and source, each once with its number of occurrences."""
    counted = Counter((block.tag, block.source[:_MAX_SOURCE_CHARS]) for block in blocks)
    shown = [
        f"<{tag}>" + (f" of {source}" if source else "") + (f" {count:,} times" if count > 1 else "")
        for (tag, source), count in counted.most_common(_MAX_LISTED_BLOCKS)
    ]
    return ", ".join(shown) + (
        f" and {len(counted) - _MAX_LISTED_BLOCKS:,} more" if len(counted) > _MAX_LISTED_BLOCKS else ""
    )


def derive_conversation_id(
    fields: Mapping[str, str], first: VisibleMessage, *, is_erased: Callable[[str], bool]
) -> str:
    """Derive an id that stays the same each time a conversation is imported, until the import is erased.

    It comes from the beginning of the conversation, which later turns do not change.
    """
    epoch = fields.get("epoch", "").strip()
    key = f"epoch {epoch}" if epoch else f"first {first.stamp} {first.text}"
    keys = chain((key,), (f"{key} {number}" for number in count(2)))
    ids = ("copilot-" + sha256(encode_text(one)).hexdigest()[:_ID_DIGITS] for one in keys)
    return next(one for one in ids if not is_erased(one))


def _parse_model_key(key: str) -> str | None:
    """Convert ``name|provider`` to ``provider:name``, or return None for an empty key."""
    name, mark, provider = key.strip().rpartition("|")
    return f"{provider}:{name}" if mark else provider or None


def _unique_artifacts(artifacts: Iterable[Artifact]) -> tuple[Artifact, ...]:
    """Return each artifact once. A text from the message has precedence over the current text of the file."""
    found: dict[str, Artifact] = {}
    for artifact in artifacts:
        found.setdefault(artifact.id, artifact)
    return tuple(found.values())
