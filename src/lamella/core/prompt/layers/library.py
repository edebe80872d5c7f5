"""L2, the context library: every attachment of earlier turns, one entry per id, in first-seen order."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from lamella.core.artifacts.blocks import (
    render_block,
    render_handle,
    render_list_line,
    render_preview,
    render_summary,
    text_for_model,
)
from lamella.core.artifacts.kinds import LIBRARY_KIND
from lamella.core.artifacts.model import NAMED_ONLY, Artifact, AttachmentPolicy
from lamella.core.log.turn import ArtifactForm, AttachmentMode, CarryForwardMode, ImageNoteMode, TurnSettings
from lamella.core.prompt.layers.model import SYSTEM_POSITION, Layer, LayerId, Segment, TokenCounter, make_layer
from lamella.core.text.outline import PREVIEW_THRESHOLD_CHARS, build_outline
from lamella.core.values import replace

# Token limit of the list of handles. Without it, the list of a long conversation would outgrow the messages.
MAX_HANDLE_LIST_TOKENS = 300
# If costs decide the layout, every request reads the list again, so it must be small beside the rest of the request.
_MIN_HANDLE_LIST_TOKENS, _HANDLE_LIST_DIVISOR = 60, 200
_HANDLE_LIST_HEADING = "<left_out>\nAttach one again for its text; newest first:\n"
# The heading of the list of attachments of this turn whose text does not fit.
_NAMED_LIST_HEADING = (
    "<left_out>\nAttached to this message; there is no room for their text. Attach fewer to read one:\n"
)
_CHANGED_NOTE = " (changed: a copy above is no longer its text)"
_LIST_END = "</left_out>\n"


class LibraryEntry(Struct, frozen=True, kw_only=True, gc=False):
    """An artifact of an earlier turn with its newest text.

    Attributes:
        last_attached_turn: Number of the turn that attached it last.
        repeats: How many turns in a row before that one attached it with the same text.
        form: A smaller form, given by a compaction until it is attached again, or because it embeds images.
        stays_attached: True if it stays attached until detached, False if it was detached, None if it leaves the
            working set some turns after its last attachment (setting ``linger``).
        is_listed: Whether it is a line in the list of handles, not a block of its own.
    """

    artifact: Artifact
    last_attached_turn: int
    form: ArtifactForm | None = None
    stays_attached: bool | None = None
    is_listed: bool = False
    repeats: int = 0


def count_repeats(entry: LibraryEntry | None, artifact: Artifact, *, turn_number: int) -> int:
    """Return how many turns in a row before this one attached an artifact with the text that it has now."""
    is_repeated = entry is not None and entry.last_attached_turn == turn_number - 1
    return entry.repeats + 1 if entry is not None and is_repeated and entry.artifact.hash == artifact.hash else 0


def attachment_age(entry: LibraryEntry, turn_settings: TurnSettings, *, turn_number: int) -> int:
    """Return the age of an attachment in turns, by which one can tell when it is likely to leave.

    With retention, an attachment leaves some turns after the one that attached it last. Without, it leaves after as many
    turns as its user works with it, so its age counts from when its text came.
    """
    age = turn_number - entry.last_attached_turn
    return age if turn_settings.linger else age + entry.repeats


class PlacedArtifact(Struct, frozen=True, kw_only=True, gc=False):
    """An artifact placed in a request: its newest content, and the pieces of text that show it.

    A changed artifact has its first copy and one piece per update. ``segment`` is its entry in L2, built once, with
    the position of the newest piece. Artifacts that are ``is_listed`` form one list of handles, in their order.
    """

    artifact: Artifact
    pieces: tuple[str, ...]
    segment: Segment
    is_listed: bool = False

    @property
    def form(self) -> ArtifactForm:
        return self.segment.form

    @property
    def place(self) -> str | None:
        return self.segment.place

    @property
    def tokens(self) -> int:
        return self.segment.tokens

    @property
    def is_full(self) -> bool:
        """Whether the request contains the full newest text."""
        return self.segment.form in (ArtifactForm.FULL, ArtifactForm.UPDATE)


def make_placed_artifact(
    artifact: Artifact, *, form: ArtifactForm, position: str | None, pieces: tuple[str, ...], tokens: int
) -> PlacedArtifact:
    """Build a placed artifact with its entry in L2."""
    segment = Segment(
        id=artifact.id,
        kind=LIBRARY_KIND[artifact.kind],
        form=form,
        place=position,
        content=artifact.hash,
        text=pieces[0] if len(pieces) == 1 else "".join(pieces),
        tokens=tokens,
        recoverable=artifact.recoverable,
    )
    return PlacedArtifact(artifact=artifact, pieces=pieces, segment=segment)


def image_note_form(artifact: Artifact, image_notes: ImageNoteMode) -> ArtifactForm | None:
    """Return the smaller form of an artifact in the library that its images cause; None if there is none."""
    return ArtifactForm.HANDLE if artifact.has_images and image_notes is ImageNoteMode.HANDLE else None


def place_in_library(
    artifact: Artifact, *, form: ArtifactForm, count: TokenCounter, shown: PlacedArtifact | None = None
) -> PlacedArtifact:
    """Place an artifact in the library: in full, or in the smaller form if that is allowed and shorter.

    ``shown`` is how its own turn placed it. If the text would be the same, its string object and token count are
    reused.
    """
    kind = LIBRARY_KIND[artifact.kind]
    smaller = render_shorter_form(artifact, form) if can_shrink(artifact) else None
    if smaller is not None:
        return make_placed_artifact(
            artifact, form=form, position=SYSTEM_POSITION, pieces=(smaller,), tokens=count(smaller)
        )
    same = (
        shown is not None and shown.artifact is artifact and shown.form is ArtifactForm.FULL and kind is artifact.kind
    )
    # Several pieces mean that something shorter came before the full text; only a single piece is the text itself.
    if shown is not None and same and len(shown.pieces) == 1:
        return make_placed_artifact(
            artifact, form=ArtifactForm.FULL, position=SYSTEM_POSITION, pieces=shown.pieces, tokens=shown.tokens
        )
    text = render_block(artifact, kind=kind)
    return make_placed_artifact(
        artifact, form=ArtifactForm.FULL, position=SYSTEM_POSITION, pieces=(text,), tokens=count(text)
    )


def can_shrink(artifact: Artifact) -> bool:
    """Return whether an artifact may be shown as less than its text: recoverable and not pinned."""
    return artifact.recoverable and artifact.policy is not AttachmentPolicy.PIN


def render_shorter_form(artifact: Artifact, form: ArtifactForm) -> str | None:
    """Render an artifact as an outline, a handle or a summary; None if that does not apply or is not shorter."""
    if form is ArtifactForm.PREVIEW:
        text = render_preview(artifact, build_outline(text_for_model(artifact)), kind=LIBRARY_KIND[artifact.kind])
    elif form is ArtifactForm.HANDLE:
        text = render_handle(artifact)
    elif form is ArtifactForm.SUMMARY and artifact.condensed is not None:
        text = render_summary(artifact, artifact.condensed, kind=LIBRARY_KIND[artifact.kind])
    else:
        return None
    return text if len(text) < len(artifact.text) else None


def choose_carried_form(entry: LibraryEntry, turn_settings: TurnSettings) -> ArtifactForm:
    """Return the form of an artifact in the library if the layout plan sets none.

    An artifact that stays attached until it is detached remains readable in full.
    """
    if entry.form is not None:
        return entry.form
    if entry.artifact.condensed is not None:
        return ArtifactForm.HANDLE if entry.artifact.condensed == NAMED_ONLY else ArtifactForm.SUMMARY
    in_full = turn_settings.carry_forward is CarryForwardMode.FULL or (
        entry.stays_attached and turn_settings.attachments is AttachmentMode.STICKY
    )
    return ArtifactForm.FULL if in_full or len(entry.artifact.text) <= PREVIEW_THRESHOLD_CHARS else ArtifactForm.PREVIEW


def is_shown_in_carried_form(entry: LibraryEntry, placed: PlacedArtifact, turn_settings: TurnSettings) -> bool:
    """Return whether the request shows the current text, or as much of it as its carried form allows."""
    whole = placed.is_full and placed.artifact.hash == entry.artifact.hash
    # A listed artifact without pieces did not fit into the list; the list counts it.
    is_present = bool(placed.pieces) or placed.is_listed
    # If a handle is enough, a longer form from its own turn is fine, too.
    return whole or (is_present and choose_carried_form(entry, turn_settings) in (placed.form, ArtifactForm.HANDLE))


def place_library(
    library: Mapping[str, LibraryEntry],
    *,
    system_library: Mapping[str, PlacedArtifact],
    placed: Mapping[str, PlacedArtifact],
    forms: Mapping[str, ArtifactForm],
    turn_settings: TurnSettings,
    excluded_ids: Collection[str],
    count: TokenCounter,
) -> dict[str, PlacedArtifact]:
    """Render the library at the start of an epoch; unchanged entries are the same objects as before."""
    folded: dict[str, PlacedArtifact] = {}
    listed: list[LibraryEntry] = []
    for name, entry in library.items():
        if name in excluded_ids:
            continue
        if entry.is_listed and name not in forms and can_be_listed(entry.artifact):
            listed.append(entry)
            continue
        artifact, old = entry.artifact, system_library.get(name)
        form = forms.get(name) or choose_carried_form(entry, turn_settings)
        if old is not None and old.artifact is artifact and _is_unchanged(old, form, entry):
            folded[name] = old
        else:
            folded[name] = place_in_library(artifact, form=form, count=count, shown=placed.get(name))
    if not listed:
        return folded
    handles = place_handle_list(
        listed, count=count, placed_library=system_library, names_recall=turn_settings.names_recall
    )
    return {**folded, **handles}


def can_be_listed(artifact: Artifact) -> bool:
    """Return whether an artifact may be a line in the list of handles.

    Unlike a handle block, a line is shorter than the block around even a short text, so length does not matter.
    """
    return can_shrink(artifact)


def max_handle_list_tokens(request_tokens: int) -> int:
    """Return the token limit of the handle list beside this number of tokens: a two-hundredth, at least a few names."""
    return min(MAX_HANDLE_LIST_TOKENS, max(_MIN_HANDLE_LIST_TOKENS, request_tokens // _HANDLE_LIST_DIVISOR))


def place_handle_list(
    entries: Sequence[LibraryEntry],
    *,
    count: TokenCounter,
    names_recall: bool,
    placed_library: Mapping[str, PlacedArtifact] = MappingProxyType({}),
    position: str = SYSTEM_POSITION,
    max_tokens: int = MAX_HANDLE_LIST_TOKENS,
    is_continued: bool = False,
) -> dict[str, PlacedArtifact]:
    """Place these entries as one list of handles, the newest first; the list counts those that do not fit.

    If ``placed_library`` already contains exactly this list, it is reused. Entries that do not fit get no pieces.
    ``is_continued`` means that an earlier message already contains such a list.
    """
    # A stable sort that is then reversed: of entries attached in one turn, the last comes first.
    newest = sorted(entries, key=lambda entry: entry.last_attached_turn)[::-1]
    before = {name: one for name, one in placed_library.items() if one.is_listed}
    if [one.artifact for one in before.values()] == [entry.artifact for entry in newest]:
        return before
    lines = [(entry.artifact, render_list_line(entry.artifact)) for entry in newest]
    if is_continued and not _count_lines_that_fit(
        _HANDLE_LIST_HEADING,
        [line for _, line in lines],
        count=count,
        max_tokens=max_tokens,
        names_recall=names_recall,
    ):
        # The earlier list already says that there are more. A second list without any name would add nothing.
        return {one.artifact.id: place_without_text(one.artifact) for one in newest}
    return _place_list(
        lines,
        _HANDLE_LIST_HEADING,
        count=count,
        position=position,
        max_tokens=max_tokens,
        names_recall=names_recall,
    )


def place_newest_handles(
    newest: Iterable[Artifact],
    total: int,
    *,
    count: TokenCounter,
    position: str,
    max_tokens: int,
    names_recall: bool,
    is_continued: bool = False,
) -> dict[str, PlacedArtifact]:
    """Place a list of handles like ``place_handle_list``, but return only the artifacts that get text.

    ``newest`` are all ``total`` artifacts to list, the newest first. Only those that fit are looked at.
    """
    first, lines = None, list[tuple[Artifact, str]]()
    left = max_tokens - count(_HANDLE_LIST_HEADING) - count(_render_end_of_list(total, names_recall=names_recall))
    for artifact in newest:
        first = first or artifact
        line = render_list_line(artifact)
        left -= count(line)
        if left < 0:
            break
        lines.append((artifact, line))
    if first is None or (is_continued and not lines):
        return {}
    # The first entry carries the frame of the list even if no line fits.
    shown = lines or [(first, "")]
    return _place_lines(
        shown,
        len(lines),
        _HANDLE_LIST_HEADING,
        more=total - len(lines),
        count=count,
        position=position,
        names_recall=names_recall,
    )


def place_list_of_names(
    artifacts: Sequence[Artifact],
    *,
    placed: Mapping[str, PlacedArtifact],
    count: TokenCounter,
    position: str,
    names_recall: bool,
) -> dict[str, PlacedArtifact]:
    """Place attachments of this turn whose text does not fit as one list, in their order.

    The list counts those that do not fit. Lists already in the request use part of the same token limit.
    """
    copied = {one.id for one in artifacts if one.id in placed and placed[one.id].is_full}
    lines = [(one, render_list_line(one, suffix=_CHANGED_NOTE if one.id in copied else "")) for one in artifacts]
    above = sum([one.tokens for one in placed.values() if one.is_listed])
    return _place_list(
        lines,
        _NAMED_LIST_HEADING,
        count=count,
        position=position,
        max_tokens=MAX_HANDLE_LIST_TOKENS - above,
        names_recall=names_recall,
    )


def _place_list(
    lines: Sequence[tuple[Artifact, str]],
    heading: str,
    *,
    count: TokenCounter,
    position: str,
    max_tokens: int,
    names_recall: bool,
) -> dict[str, PlacedArtifact]:
    """Build a list from artifacts and their lines, with as many lines as fit into ``max_tokens`` tokens."""
    shown = _count_lines_that_fit(
        heading, [line for _, line in lines], count=count, max_tokens=max_tokens, names_recall=names_recall
    )
    more = len(lines) - shown
    return _place_lines(lines, shown, heading, more=more, count=count, position=position, names_recall=names_recall)


def _place_lines(
    lines: Sequence[tuple[Artifact, str]],
    shown: int,
    heading: str,
    *,
    more: int,
    count: TokenCounter,
    position: str,
    names_recall: bool,
) -> dict[str, PlacedArtifact]:
    """Place the first ``shown`` lines as a list that says how many ``more`` there are, and the others without text."""
    ends = _render_end_of_list(more, names_recall=names_recall) if more else _LIST_END
    listed: dict[str, PlacedArtifact] = {}
    for at, (artifact, line) in enumerate(lines):
        # The first and the last shown entry carry the beginning and the end of the list, so that the frame is placed
        # exactly as long as they are.
        pieces = (*((heading,) if not at else ()), *((line,) if at < shown else ()))
        pieces += (ends,) if at == max(shown - 1, 0) else ()
        where, tokens = position if pieces else None, sum(map(count, pieces))
        one = make_placed_artifact(artifact, form=ArtifactForm.HANDLE, position=where, pieces=pieces, tokens=tokens)
        listed[artifact.id] = replace(one, is_listed=True)
    return listed


def place_without_text(artifact: Artifact) -> PlacedArtifact:
    """Place an artifact that a list of handles only counts."""
    one = make_placed_artifact(artifact, form=ArtifactForm.HANDLE, position=None, pieces=(), tokens=0)
    return replace(one, is_listed=True)


def is_start_or_end_of_handle_list(piece: str) -> bool:
    """Return whether a piece is the beginning or the end of a list of handles and names no artifact."""
    return piece in (_HANDLE_LIST_HEADING, _NAMED_LIST_HEADING) or piece.endswith(_LIST_END)


def _render_end_of_list(more: int, *, names_recall: bool) -> str:
    """Return the end of a list that has no room for ``more`` artifacts."""
    return f"and {more:,} more{'; recall finds them' if names_recall else ''}.\n{_LIST_END}"


def _count_lines_that_fit(
    heading: str, lines: Sequence[str], *, count: TokenCounter, max_tokens: int, names_recall: bool
) -> int:
    """Return how many lines fit between the beginning and the end of a list."""
    max_tokens -= count(heading) + count(_render_end_of_list(len(lines), names_recall=names_recall))
    for shown, line in enumerate(lines):
        max_tokens -= count(line)
        if max_tokens < 0:
            return shown
    return len(lines)


def _is_unchanged(old: PlacedArtifact, form: ArtifactForm, entry: LibraryEntry) -> bool:
    # If the smaller form was not shorter, the artifact is placed in full; do not try again every turn. A detached
    # artifact was in full because it stayed attached, so it must be tried again.
    return old.form is form or (
        form is not ArtifactForm.FULL and old.form is ArtifactForm.FULL and entry.stays_attached is not False
    )


def build_library_layer(
    placed_library: Sequence[PlacedArtifact],
    placed: Mapping[str, PlacedArtifact],
    *,
    segments: Sequence[Segment] | None = None,
) -> Layer:
    """Build L2 from the placed artifacts, wherever they are; the list of handles comes last, in its order.

    ``segments`` replaces the segments of these artifacts if there are more without text.
    """
    segments = [placed.segment for placed in placed_library] if segments is None else segments
    listed = {placed.artifact.id for placed in placed_library if placed.is_listed}
    last = [one for name, one in placed.items() if name in listed] if listed else []
    pieces = [piece for one in (*(one for one in placed_library if not one.is_listed), *last) for piece in one.pieces]
    return make_layer(
        LayerId.L2, segments=segments, pieces=pieces, tokens=sum(one.segment.tokens for one in placed_library)
    )
