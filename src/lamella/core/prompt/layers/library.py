"""L2, the context library: everything attached in earlier turns, one entry per id, in first-seen order."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from lamella.core.artifacts.blocks import (
    render_block,
    render_condensed,
    render_handle,
    render_listed,
    render_preview,
    shown_text,
)
from lamella.core.artifacts.kinds import LATER_KIND
from lamella.core.artifacts.model import NAMED_ONLY, Artifact, Policy
from lamella.core.log.placement import Form
from lamella.core.log.terms import Attachments, CarryForward, ImageNotes, Terms
from lamella.core.prompt.layers.model import SYSTEM_PLACE, Count, Layer, LayerId, Segment, make_layer
from lamella.core.text.outline import PREVIEW_OVER, build_outline
from lamella.core.values import replace

# What the list of handles may weigh: those of a long conversation would otherwise outgrow what is said in it.
LIST_TOKENS = 300
# Where prices decide it is read in every request: what it costs is to be little beside the rest, however short that is.
_LEAST_LISTED, _LISTED_OF = 60, 200
_LIST_BEGINS = "<left_out>\nAttach one again for its text; newest first:\n"
# The same for what is attached now.
_NAMED_BEGINS = "<left_out>\nAttached to this message; there is no room for their text. Attach fewer to read one:\n"
_CHANGED = " (changed: a copy above is no longer its text)"
_LIST_ENDS = "</left_out>\n"


class LibraryEntry(Struct, frozen=True, kw_only=True, gc=False):
    """An artifact of an earlier turn with its newest text; ``at`` is the number of the turn that attached it last.

    ``form`` is the smaller one that a compaction gave it, until it is attached again, or that it has for its pictures.
    ``held`` says that it stays attached until it is detached, or, where false, that it was; else it lingers for some
    turns. ``listed`` says that its handle stands in the list of them, not as a block of its own.
    """

    artifact: Artifact
    at: int
    form: Form | None = None
    held: bool | None = None
    listed: bool = False


class Standing(Struct, frozen=True, kw_only=True, gc=False):
    """What stands in a request for one artifact: its newest content, and the pieces of text that say it.

    An artifact that changed stands as its first copy and one piece per update. ``segment`` is its entry in L2, made
    once; its place is that of the newest piece. Handles that are ``listed`` stand together in one list, in their order.
    """

    artifact: Artifact
    pieces: tuple[str, ...]
    segment: Segment
    listed: bool = False

    @property
    def form(self) -> Form:
        return self.segment.form

    @property
    def place(self) -> str | None:
        return self.segment.place

    @property
    def tokens(self) -> int:
        return self.segment.tokens

    @property
    def in_full(self) -> bool:
        """Whether the newest text can be read off the request."""
        return self.segment.form in (Form.FULL, Form.UPDATE)


def make_standing(
    artifact: Artifact, *, form: Form, place: str | None, pieces: tuple[str, ...], tokens: int
) -> Standing:
    """An artifact as it stands, with its entry in L2."""
    segment = Segment(
        id=artifact.id,
        kind=LATER_KIND[artifact.kind],
        form=form,
        place=place,
        content=artifact.hash,
        text=pieces[0] if len(pieces) == 1 else "".join(pieces),
        tokens=tokens,
        recoverable=artifact.recoverable,
    )
    return Standing(artifact=artifact, pieces=pieces, segment=segment)


def promoted_form(artifact: Artifact, image_notes: ImageNotes) -> Form | None:
    """The smaller form that an artifact takes in the library because of what it is: pictures may cost it its text."""
    return Form.HANDLE if artifact.has_images and image_notes is ImageNotes.HANDLE else None


def shelve(artifact: Artifact, *, form: Form, count: Count, shown: Standing | None = None) -> Standing:
    """An artifact as it stands in the library: in full, or in the smaller form wanted if that is allowed and smaller.

    ``shown`` is how it stood in its own turn; text that would be the same is the same object, counted once.
    """
    kind = LATER_KIND[artifact.kind]
    smaller = render_smaller(artifact, form) if may_shrink(artifact) else None
    if smaller is not None:
        return make_standing(artifact, form=form, place=SYSTEM_PLACE, pieces=(smaller,), tokens=count(smaller))
    same = shown is not None and shown.artifact is artifact and shown.form is Form.FULL and kind is artifact.kind
    # More than one piece is the whole text after something that stood for it until it was attached again.
    if shown is not None and same and len(shown.pieces) == 1:
        return make_standing(artifact, form=Form.FULL, place=SYSTEM_PLACE, pieces=shown.pieces, tokens=shown.tokens)
    text = render_block(artifact, kind=kind)
    return make_standing(artifact, form=Form.FULL, place=SYSTEM_PLACE, pieces=(text,), tokens=count(text))


def may_shrink(artifact: Artifact) -> bool:
    """Whether an artifact may stand as less than its text: it can be fetched again, and is not pinned."""
    return artifact.recoverable and artifact.policy is not Policy.PIN


def render_smaller(artifact: Artifact, form: Form) -> str | None:
    """The artifact as its outline or as one line, or none where that is not what is wanted or would not be smaller."""
    if form is Form.PREVIEW:
        text = render_preview(artifact, build_outline(shown_text(artifact)), kind=LATER_KIND[artifact.kind])
    elif form is Form.HANDLE:
        text = render_handle(artifact)
    elif form is Form.SUMMARY and artifact.condensed is not None:
        text = render_condensed(artifact, artifact.condensed, kind=LATER_KIND[artifact.kind])
    else:
        return None
    return text if len(text) < len(artifact.text) else None


def carried_form(entry: LibraryEntry, terms: Terms) -> Form:
    """The form that an artifact takes in the library where no placement says otherwise.

    What is attached until it is detached can be read in full until then.
    """
    if entry.form is not None:
        return entry.form
    if entry.artifact.condensed is not None:
        return Form.HANDLE if entry.artifact.condensed == NAMED_ONLY else Form.SUMMARY
    carried = terms.carry_forward is CarryForward.FULL or (entry.held and terms.attachments is Attachments.STICKY)
    return Form.FULL if carried or len(entry.artifact.text) <= PREVIEW_OVER else Form.PREVIEW


def is_readable(entry: LibraryEntry, standing: Standing, terms: Terms) -> bool:
    """Whether the current text of something stands in the request, or as much of it as a receipt or setting leaves."""
    whole = standing.in_full and standing.artifact.hash == entry.artifact.hash
    # What the list of handles has no room for is counted in it.
    told = bool(standing.pieces) or standing.listed
    # Where a handle is all that has to be there, what its turn showed of it may still stand.
    return whole or (told and carried_form(entry, terms) in (standing.form, Form.HANDLE))


def fold_shelf(
    library: Mapping[str, LibraryEntry],
    *,
    shelf: Mapping[str, Standing],
    standing: Mapping[str, Standing],
    forms: Mapping[str, Form],
    terms: Terms,
    without: Collection[str],
    count: Count,
) -> dict[str, Standing]:
    """The library's shelf at the start of an epoch; entries that did not change are the same objects as before."""
    folded: dict[str, Standing] = {}
    listed: list[LibraryEntry] = []
    for name, entry in library.items():
        if name in without:
            continue
        if entry.listed and name not in forms and may_list(entry.artifact):
            listed.append(entry)
            continue
        artifact, old = entry.artifact, shelf.get(name)
        form = forms.get(name) or carried_form(entry, terms)
        if old is not None and old.artifact is artifact and _still_stands(old, form, entry):
            folded[name] = old
        else:
            folded[name] = shelve(artifact, form=form, count=count, shown=standing.get(name))
    return {**folded, **list_handles(listed, count=count, shelf=shelf)} if listed else folded


def may_list(artifact: Artifact) -> bool:
    """Whether an artifact may stand as a line of the list of handles: what surrounds even a short text is longer."""
    return may_shrink(artifact)


def find_list_room(stands: int) -> int:
    """What the list of handles may weigh beside so many tokens: a two-hundredth of them, or a few names."""
    return min(LIST_TOKENS, max(_LEAST_LISTED, stands // _LISTED_OF))


def list_handles(
    entries: Sequence[LibraryEntry],
    *,
    count: Count,
    shelf: Mapping[str, Standing] = MappingProxyType({}),
    place: str = SYSTEM_PLACE,
    room: int = LIST_TOKENS,
    again: bool = False,
) -> dict[str, Standing]:
    """What can be attached again as one list, the newest first, as far as it has room; the rest is counted in it.

    ``shelf`` may hold that very list already. What the list has no room for stands nowhere. ``again`` says that a list
    of what left before stands already.
    """
    # Of those that were attached in one turn, the last comes first.
    newest = sorted(entries, key=lambda entry: entry.at)[::-1]
    before = {name: one for name, one in shelf.items() if one.listed}
    if [one.artifact for one in before.values()] == [entry.artifact for entry in newest]:
        return before
    lines = [(entry.artifact, render_listed(entry.artifact)) for entry in newest]
    if again and not _count_shown(_LIST_BEGINS, [line for _, line in lines], count=count, room=room):
        # That list says that there are more: another that names nothing would say it again.
        return {one.artifact.id: _list_nowhere(one.artifact) for one in newest}
    return _list(lines, _LIST_BEGINS, count=count, place=place, room=room)


def list_named(
    artifacts: Sequence[Artifact], *, standing: Mapping[str, Standing], count: Count, place: str
) -> dict[str, Standing]:
    """What is attached now and has no room for its text as one list, in its order; the same holds of that.

    Lists that stand in the request take of the room that all of them have.
    """
    copied = {one.id for one in artifacts if one.id in standing and standing[one.id].in_full}
    lines = [(one, render_listed(one, told=_CHANGED if one.id in copied else "")) for one in artifacts]
    above = sum([one.tokens for one in standing.values() if one.listed])
    return _list(lines, _NAMED_BEGINS, count=count, place=place, room=LIST_TOKENS - above)


def _list(
    lines: Sequence[tuple[Artifact, str]], begins: str, *, count: Count, place: str, room: int
) -> dict[str, Standing]:
    """Artifacts and their lines as a list of as many as there is room for."""
    shown = _count_shown(begins, [line for _, line in lines], count=count, room=room)
    more = len(lines) - shown
    ends = f"and {more:,} more; recall finds them.\n{_LIST_ENDS}" if more else _LIST_ENDS
    listed: dict[str, Standing] = {}
    for at, (artifact, line) in enumerate(lines):
        # The first and the last line carry what begins and ends the list: it stands exactly as long as they do.
        pieces = (*((begins,) if not at else ()), *((line,) if at < shown else ()))
        pieces += (ends,) if at == max(shown - 1, 0) else ()
        where, tokens = place if pieces else None, sum(map(count, pieces))
        one = make_standing(artifact, form=Form.HANDLE, place=where, pieces=pieces, tokens=tokens)
        listed[artifact.id] = replace(one, listed=True)
    return listed


def _list_nowhere(artifact: Artifact) -> Standing:
    one = make_standing(artifact, form=Form.HANDLE, place=None, pieces=(), tokens=0)
    return replace(one, listed=True)


def is_framing(piece: str) -> bool:
    """Whether a piece begins or ends a list of handles, and names nothing that is in it."""
    return piece in (_LIST_BEGINS, _NAMED_BEGINS) or piece.endswith(_LIST_ENDS)


def _count_shown(begins: str, lines: Sequence[str], *, count: Count, room: int) -> int:
    """How many of the lines have room between what begins the list and what ends it."""
    room -= count(begins) + count(f"and {len(lines):,} more; recall finds them.\n{_LIST_ENDS}")
    for shown, line in enumerate(lines):
        room -= count(line)
        if room < 0:
            return shown
    return len(lines)


def _still_stands(old: Standing, form: Form, entry: LibraryEntry) -> bool:
    # A smaller form that would not be smaller stands in full, and is not tried again every turn. What was detached
    # stood in full because it was held.
    return old.form is form or (form is not Form.FULL and old.form is Form.FULL and entry.held is not False)


def build_library(standings: Sequence[Standing], standing: Mapping[str, Standing]) -> Layer:
    """L2 from what stands in the request, wherever it stands; the list of handles comes last, in its own order."""
    segments = [standing.segment for standing in standings]
    listed = {standing.artifact.id for standing in standings if standing.listed}
    last = [one for name, one in standing.items() if name in listed] if listed else []
    pieces = [piece for one in (*(one for one in standings if not one.listed), *last) for piece in one.pieces]
    return make_layer(LayerId.L2, segments=segments, pieces=pieces, tokens=sum(s.tokens for s in segments))
