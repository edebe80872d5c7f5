"""Sources for a question, and the citations of its answer.

``search_and_attach`` searches the vault and attaches passages with a numbered list of sources. Passages are ordered by
file and position, not by rank, so that the same passages give the same bytes. The list states each rank.

``CitationEditor`` checks each ``[^n]`` of an answer against the offered sources and renumbers it by first mention. It
edits the answer while it streams and holds back only text that may be part of a citation, so that the text shown to
the user always equals the stored text.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from lamella.attach import NotePassage
from lamella.conversation.note_index import NoteIndex
from lamella.conversation.runner_context import RunRequest
from lamella.conversation.turn import TurnRequest
from lamella.core.artifacts.kinds import KINDS, make_tool_result
from lamella.core.artifacts.model import FOUND_BY_SEARCH, Artifact, ArtifactSource, UnresolvedAttachment, make_path_id
from lamella.core.log.turn import StoredCitation
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import INLINE_CODE, escape_line
from lamella.core.values import replace
from lamella.errors import SourceNotFoundError
from lamella.ports import NoteHit
from lamella.runners.query_planning import find_filters

# Either inline code, which is left alone, or a citation with one or more numbers. The space before a citation belongs
# to the match, because it is removed together with an invalid citation.
_CODE_OR_CITATION = re.compile(
    rf"(?P<code>{INLINE_CODE})"
    r"|(?P<space>(?<![ \t])[ \t]*+)\[\^ ?(?P<numbers>\d++(?:[,;] ?\^?\d++)*+) ?\]"
)
# Text at the end of a chunk that may become a citation. Beyond the maximum length it is treated as plain text.
_OPEN_CITATION = re.compile(r"\[(?:\^[\d,; ^]*+)?")
_MAX_OPEN_CITATION = 2_000
_MAX_BLANKS = 80
# Longer numbers are ignored without parsing; no answer has so many sources.
_MAX_NUMBER_DIGITS = 6
_NUMBER = re.compile(r"\d+")
# A footnote definition written by the model. It is removed, because Lamella appends the list of sources itself.
_FOOTNOTE_DEFINITION = re.compile(r" {0,3}\[\^ ?(\d++) ?\]:")
# The beginning of a line that may still become a footnote definition or a code fence.
_POSSIBLE_LINE_START = re.compile(r" {0,3}(?:\[(?:\^ ?(?:\d++ ?(?:\](?::.*)?)?)?)?|`{1,2}|~{1,2}|(?:`{3,}|~{3,}).*)?\Z")
_FENCE_LINE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<words>.*)\Z")
_BACKTICKS = re.compile(r"`+")
# Inline code that is not closed after this many characters is treated as plain text and no longer held back.
_MAX_OPEN_CODE = 400
_HEADING_SEPARATOR = " > "
# Characters that an Obsidian link cannot contain in its path or heading.
_UNLINKABLE_CHARS = frozenset("[]|#^\n")


class CitationEditor:
    """Renumbers the citations of one answer by first mention and removes citations of unknown sources.

    ``offered`` are the sources in the order of the numbers that the model was given, starting with ``first_number``.
    """

    def __init__(self, offered: Sequence[StoredCitation], *, first_number: int = 1) -> None:
        self._offered = tuple(offered)
        self._first_number = first_number
        self._numbers: dict[StoredCitation, int] = {}
        # Sources that the model named in footnote definitions of its own.
        self._defined_sources: dict[StoredCitation, None] = {}
        self._held_back = ""
        # No text of the current line was returned yet; the code fence it is in; the last number that was returned.
        self._at_line_start = True
        self._open_fence = ""
        self._last_citation: int | None = None
        self._trailing_breaks = 0

    @property
    def sources(self) -> tuple[StoredCitation, ...]:
        """The cited sources in the order of their new numbers."""
        return tuple(self._numbers)

    def feed(self, text: str) -> str:
        """Add a piece of the answer and return the text that can be shown now."""
        return self._track_line_breaks(self._edit_settled_text(text))

    def finish(self, *, has_tool_calls: bool) -> str:
        """Return the text that was held back and, if the answer cites anything, a list of its sources.

        ``has_tool_calls`` says that the model called tools, so this text is not the final answer and gets no list.
        """
        rest = self._track_line_breaks(self._edit_line_rest(self._held_back) or "")
        self._held_back, self._open_fence = "", ""
        if not has_tool_calls and not self._numbers:
            # The model listed its sources without citing them in the text; treat that as citing the whole answer.
            self._numbers = {source: number for number, source in enumerate(self._defined_sources, start=1)}
        if has_tool_calls or not self._numbers:
            return rest
        listed = [f"[^{number}]: {format_source_wikilink(source)}" for source, number in self._numbers.items()]
        return rest + "\n" * max(0, 2 - self._trailing_breaks) + "\n".join(listed)

    def _edit_settled_text(self, text: str) -> str:
        """Return the edited text that later pieces cannot change any more; the rest is held back."""
        *lines, self._held_back = (self._held_back + text).split("\n")
        ended = [self._edit_line_rest(line) for line in lines]
        settled = self._count_characters_safe_to_show(self._held_back)
        given = "".join(f"{line}\n" for line in ended if line is not None)
        if not settled:
            return given
        begun, self._held_back = self._held_back[:settled], self._held_back[settled:]
        self._at_line_start = False
        return given + (begun if self._open_fence else self._renumber_citations(begun))

    def _edit_line_rest(self, rest: str) -> str | None:
        """Return the edited rest of a complete line; None if the line only defines a footnote."""
        whole, self._at_line_start = self._at_line_start, True
        if whole and self._toggle_fence(rest):
            return rest
        if self._open_fence:
            return rest
        if whole and (definition := _FOOTNOTE_DEFINITION.match(rest)):
            self._defined_sources |= dict.fromkeys(self._sources_by_number(definition[1]))
            return None
        edited = self._renumber_citations(rest)
        self._last_citation = None
        return edited

    def _count_characters_safe_to_show(self, text: str) -> int:
        """Return how many characters of an incomplete line can no longer become part of a citation or fence."""
        if self._at_line_start and _POSSIBLE_LINE_START.match(text):
            return 0
        if self._open_fence:
            return len(text)
        return min(_find_open_code_start(text), _find_open_citation_start(text))

    def _toggle_fence(self, line: str) -> bool:
        """Open or close a code fence if the whole line does that, and return whether it did."""
        mark = _FENCE_LINE.match(line)
        if mark is None:
            return False
        if self._open_fence:
            closes = mark["mark"].startswith(self._open_fence) and not mark["words"].strip()
            self._open_fence = "" if closes else self._open_fence
            return closes
        if mark["mark"][0] == "`" and "`" in mark["words"]:
            return False
        self._open_fence = mark["mark"]
        return True

    def _renumber_citations(self, text: str) -> str:
        """Return a text with its citations renumbered; the text must not begin or end inside a citation."""
        given: list[str] = []
        at = 0
        for match in _CODE_OR_CITATION.finditer(text):
            self._append_text_without_citations(text[at : match.start()], given)
            if match["code"]:
                self._append_text_without_citations(match["code"], given)
            else:
                given.append(self._renumber_match(match))
            at = match.end()
        self._append_text_without_citations(text[at:], given)
        return "".join(given)

    def _append_text_without_citations(self, text: str, output: list[str]) -> None:
        output.append(text)
        self._last_citation = None if text.strip() else self._last_citation

    def _renumber_match(self, match: re.Match[str]) -> str:
        """Return a citation with its new numbers; empty if it names no source or repeats the previous citation."""
        shown = ""
        for source in self._sources_by_number(match["numbers"]):
            new = self._numbers.setdefault(source, len(self._numbers) + 1)
            if new != self._last_citation:
                shown += f"[^{new}]"
                self._last_citation = new
        return match["space"] + shown if shown else ""

    def _sources_by_number(self, numbers: str) -> list[StoredCitation]:
        """Return the sources of some numbers; unknown numbers are skipped."""
        read = [int(digits) for digits in _NUMBER.findall(numbers) if len(digits.lstrip("0")) <= _MAX_NUMBER_DIGITS]
        positions = [number - self._first_number for number in read]
        return [self._offered[position] for position in positions if 0 <= position < len(self._offered)]

    def _track_line_breaks(self, text: str) -> str:
        """Record how many line breaks the returned text ends with, and return it unchanged."""
        if text:
            ends = len(text) - len(text.rstrip("\n"))
            self._trailing_breaks = self._trailing_breaks + ends if ends == len(text) else ends
        return text


def format_source_wikilink(source: StoredCitation) -> str:
    """Return a source as an Obsidian link to its note and heading, or as plain text if no link can express it."""
    path, _, _ = source.id.partition("#passage:")
    if _UNLINKABLE_CHARS.intersection(path):
        return " ".join(path.split())
    headings = source.place.split(_HEADING_SEPARATOR) if source.place else []
    below = [] if any(_UNLINKABLE_CHARS.intersection(one) for one in headings) else headings
    return f"[[{'#'.join((path, *below))}]]"


def _find_open_citation_start(text: str) -> int:
    """Return where an unfinished citation begins, including the blanks before it; the text's length if none does."""
    at = text.rfind("[")
    if at < 0 or len(text) - at > _MAX_OPEN_CITATION or not _OPEN_CITATION.fullmatch(text, at):
        at = len(text)
    before = text[max(0, at - _MAX_BLANKS) : at]
    return at - (len(before) - len(before.rstrip(" \t")))


def _find_open_code_start(text: str) -> int:
    """Return where unclosed inline code begins; the text's length if there is none.

    A closing run of backticks at the very end counts as unclosed, because more backticks may follow.
    """
    start = 0
    while (opening := _BACKTICKS.search(text, start)) is not None:
        runs = _BACKTICKS.finditer(text, opening.end())
        closing = next((run for run in runs if run[0] == opening[0] and run.end() < len(text)), None)
        if closing is None and len(text) - opening.start() <= _MAX_OPEN_CODE:
            return opening.start()
        start = opening.end() if closing is None else closing.end()
    return len(text)


# Search results as attachments.

_FOOTNOTE_MARK = re.compile(r"\[\^ ?(\d+) ?\]")
# A footnote of a note that is sent whole. Its text stays as it is, so the numbers of the sources start above it.
_NOTE_FOOTNOTE = re.compile(r"\[\^ ?(\d{1,4}) ?\]")
# The first line of the list of sources.
_FIRST_SOURCE = re.compile(r"^\[\^(\d+)\] ", re.MULTILINE)

SEARCH_TOOL = "vault_search"
# How many passages are attached (fewer in a small window), and which share of the window they may take.
_MAX_PASSAGES, _MAX_PASSAGES_SMALL = 8, 3
_SMALL_WINDOW_TOKENS = 16_000
_WINDOW_DIVISOR = 4
# Approximate bytes per token, in the languages that have the fewest.
_BYTES_PER_TOKEN = 3
_NO_HITS_MESSAGE = "Nothing in the vault fits this question. Say so, and do not answer as if something there did."
_SOURCES_HEADING = "Sources of this message by number; the one of rank 1 fits the question best:"

# A passage with its rank; the best passage has rank 1.
RankedHit = tuple[int, NoteHit]


def get_note_index(run_request: RunRequest) -> NoteIndex:
    """Return the note index of the vault; raise ``SourceNotFoundError`` if there is no vault."""
    if run_request.runner_context.note_index is None:
        raise SourceNotFoundError(
            "There is no vault to answer from.",
            hint=lambda hints: f"Name a folder of notes with {hints.option_hint('vault')}, or choose the runner chat.",
        )
    return run_request.runner_context.note_index


async def search_and_attach(run_request: RunRequest, question: str) -> TurnRequest:
    """Search the vault for a stored question and return a turn request with the passages and sources.

    Raises:
        SourceNotFoundError: There is no vault, or it has no notes.
    """
    turn, notes = run_request.turn, get_note_index(run_request)
    assert turn is not None, "the question is written down before anything is looked up for it"
    now = run_request.send_context.clock.now().astimezone()
    most = _MAX_PASSAGES_SMALL if run_request.conversation.window <= _SMALL_WINDOW_TOKENS else _MAX_PASSAGES
    hits = await run_request.send_context.workers.run(partial(_search_notes, notes, question, now=now, maximum=most))
    found = select_passages_within(hits, run_request.conversation.window // _WINDOW_DIVISOR * _BYTES_PER_TOKEN)
    prompt = turn.envelope.prompt
    return attach_passages(
        TurnRequest(text=""),
        found,
        question=question,
        state=run_request.conversation.current_state[0],
        whole_file_ids=whole_file_ids(prompt.attached),
        # In this layout every later request would have all passages in its library, which changes with each question.
        turn_only=prompt.turn_settings.layout.moves_attachments_to_system_each_turn,
    )


def _search_notes(notes: NoteIndex, question: str, *, now: datetime, maximum: int) -> Sequence[NoteHit]:
    if not notes.refresh().file_count:
        raise SourceNotFoundError(
            "The vault has no notes to answer from.", hint="Name a folder that has some, or choose the runner chat."
        )
    hits = notes.search(question, limit=maximum, now=now, refresh=False) if question.strip() else ()
    # "What of #garden?" has no words to search for; it asks for everything that the filter matches.
    if not hits and (where := " ".join(find_filters(question))):
        return notes.search(where, limit=maximum, now=now, refresh=False)
    return hits


def select_passages_within(hits: Sequence[NoteHit], max_bytes: int) -> list[RankedHit]:
    """Return the best passages that fit into ``max_bytes`` bytes, ordered by file and position.

    The best passage is returned even if it does not fit.
    """
    selected: list[RankedHit] = []
    for rank, hit in enumerate(hits, start=1):
        max_bytes -= len(hit.text.encode(errors="replace"))
        if max_bytes < 0 and selected:
            break
        selected.append((rank, hit))
    return sorted(selected, key=lambda one: (one[1].path, one[1].passage_index))


def whole_file_ids(attached: Iterable[Artifact | UnresolvedAttachment]) -> frozenset[str]:
    """Return the ids of files that are attached as a whole."""
    files = (one for one in attached if KINDS[one.kind].id_rule is make_path_id)
    return frozenset(
        str(one.id if isinstance(one, Artifact) else make_path_id(ArtifactSource(path=one.name), ""))
        for one in files
        if _names_a_file(one)
    )


def _names_a_file(attachment: Artifact | UnresolvedAttachment) -> bool:
    return isinstance(attachment, Artifact) or bool(attachment.name.strip("./"))


def attach_passages(
    turn_request: TurnRequest,
    ranked_hits: Sequence[RankedHit],
    *,
    question: str,
    state: PromptState,
    whole_file_ids: frozenset[str],
    turn_only: bool = False,
) -> TurnRequest:
    """Return the turn request with these passages attached and their sources listed.

    A passage refers to its file instead if that file is in the prompt in full or is attached now (``whole_file_ids``).
    The numbers of the sources start above those of all footnotes in the prompt, so that no footnote reads as a citation.
    With ``turn_only``, no later request contains the passages.
    """
    attach: dict[str, Artifact] = {}
    sources: list[StoredCitation] = []
    for _, hit in ranked_hits:
        if hit.path in whole_file_ids:
            sources.append(StoredCitation(id=hit.path, place=hit.heading))
            continue
        # A file that this turn drops or detaches will not be in the prompt, so its passage is attached itself.
        attached = None if hit.path in (*turn_request.drop, *turn_request.detach) else _attached_file_of(hit, state)
        artifact = _make_passage(hit, turn_only=turn_only) if attached is None else attached
        attach.setdefault(artifact.id, artifact)
        span = None if attached is None else _passage_range(hit, attached)
        sources.append(StoredCitation(id=artifact.id, place=hit.heading, span=span))
    rows = _list_sources(ranked_hits, sources, first_number=_largest_footnote_number(state) + 1)
    listed = make_tool_result(SEARCH_TOOL, arguments={"question": question}, output=rows)
    return replace(
        turn_request,
        attach=(*turn_request.attach, *attach.values()),
        results=(*turn_request.results, listed),
        citations=tuple(sources),
    )


def _attached_file_of(hit: NoteHit, state: PromptState) -> Artifact | None:
    """Return the file of a passage if the prompt contains it in full, with this passage in it."""
    placed = state.placed.get(hit.path)
    if placed is None or not placed.is_full or hit.text not in placed.artifact.text:
        return None
    entry = state.library.get(hit.path)
    known = placed.artifact if entry is None else entry.artifact
    return (
        replace(known, source=replace(known.source, via=FOUND_BY_SEARCH))
        if known.hash == placed.artifact.hash
        else None
    )


def _passage_range(hit: NoteHit, file: Artifact) -> tuple[int, int] | None:
    start = file.text.find(hit.text)
    return (start, start + len(hit.text)) if hit.text else None


def _make_passage(hit: NoteHit, *, turn_only: bool) -> Artifact:
    location = hit.id.removeprefix(hit.path).removeprefix("#")
    # The answer cites sources as [^1]. A footnote of the note would be read as a citation if the model repeats it.
    text = _FOOTNOTE_MARK.sub(r"[^n\1]", hit.text)
    passage = NotePassage(path=hit.path, passage_position=location, text=text, title=hit.title, turn_only=turn_only)
    return passage.to_artifact()


def _largest_footnote_number(state: PromptState) -> int:
    """Return the largest number of a footnote in the texts that the prompt contains in full; 0 if there is none."""
    texts = [one.artifact.text for one in state.placed.values() if one.is_full and one.artifact.source.tool is None]
    return max((int(mark[1]) for text in texts for mark in _NOTE_FOOTNOTE.finditer(text)), default=0)


def get_first_source_number(attached: Iterable[Artifact]) -> int:
    """Return the first number of the sources that were listed for a question; 1 if no sources were listed."""
    lists = (one.text for one in attached if one.source.tool == SEARCH_TOOL)
    marks = (_FIRST_SOURCE.search(text) for text in lists)
    return next((int(mark[1]) for mark in marks if mark is not None), 1)


def _list_sources(ranked_hits: Sequence[RankedHit], sources: Sequence[StoredCitation], *, first_number: int) -> str:
    """Return the numbered list for the model: the source of each number and its rank."""
    if not ranked_hits:
        return _NO_HITS_MESSAGE
    rows = [
        f"[^{number}] {escape_line(source.id)}{_format_file_part(source)}, rank {rank}"
        for number, (source, (rank, _)) in enumerate(zip(sources, ranked_hits, strict=True), start=first_number)
    ]
    return "\n".join((_SOURCES_HEADING, *rows))


def _format_file_part(source: StoredCitation) -> str:
    """Return where a passage is in a whole file; empty for a passage, because its id already says that."""
    location = source.place.replace(" > ", "#")
    return f", below {escape_line(location)}" if location and "#passage:" not in source.id else ""
