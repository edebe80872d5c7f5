"""L3, this turn: what is attached now. New things in full, known things as references, changed things as updates.

And L5, what was typed.
"""

from collections.abc import Mapping, Sequence, Set
from itertools import chain

from lamella.core.artifacts.blocks import (
    render_block,
    render_call,
    render_condensed,
    render_refused,
    render_unseen,
    render_update,
    shown_text,
)
from lamella.core.artifacts.model import NAMED_ONLY, Artifact, Image, Kind
from lamella.core.budget.counting import Measure, count_images
from lamella.core.log.placement import Form
from lamella.core.prompt.layers.library import Standing, list_named, make_standing, render_smaller
from lamella.core.prompt.layers.model import Layer, LayerId, Segment, make_layer
from lamella.core.prompt.layers.strip import Said
from lamella.core.text.changes import build_diff
from lamella.core.text.content import escape_line
from lamella.core.values import replace

_REFERENCE_HEADING = "Attached to this message; the text stands above:\n"
# What no line that states the working set names: it is referred to wherever it came again.
_REFERRED = (Kind.TOOL, Kind.IMAGE)

# What is attached as a message shows it: segments and pieces in order, what they add to the request, and pictures.
Shown = tuple[tuple[Segment, ...], tuple[str, ...], tuple[Standing, ...], tuple[Image, ...]]
NOTHING_SHOWN: Shown = ((), (), (), ())
# One attachment as a message shows it, and what it adds to the request; a reference adds nothing.
_Pair = tuple[Segment, Standing | None]


def show_turn(attached: Sequence[Artifact], *, standing: Mapping[str, Standing], place: str, measure: Measure) -> Shown:
    """L3 for what is attached now, given what already stands in the request."""
    if len(attached) == 1 and attached[0].kind is not Kind.IMAGE and attached[0].condensed != NAMED_ONLY:
        # Mostly it is one note, and opening a conversation tells many of these turns.
        segment, alone = _show(attached[0], standing.get(attached[0].id), place=place, measure=measure, refused="")
        if alone is not None:
            return (segment,), (segment.text,), (alone,), ()
    refused = find_refused(attached, standing=standing, measure=measure)
    tools, references, blocks, pictures = list[_Pair](), list[_Pair](), list[_Pair](), list[_Pair]()
    named = _name(attached, standing=standing, place=place, measure=measure)
    for artifact in attached:
        if artifact.id in named:
            continue
        why = refused.get(artifact.id, "")
        pair = _show(artifact, standing.get(artifact.id), place=place, measure=measure, refused=why)
        if pair[1] is None:
            references.append(pair)
        elif artifact.kind is Kind.TOOL:
            tools.append(pair)
        else:
            (pictures if artifact.kind is Kind.IMAGE else blocks).append(pair)
    ordered = [*tools, *references, *blocks, *named.values(), *pictures]
    pieces = [segment.text for segment, _ in ordered if segment.text]
    if references:
        pieces.insert(len(tools), _REFERENCE_HEADING)
    added = tuple([one for _, one in ordered if one is not None])
    images = [one.artifact.images for _, one in pictures if one is not None and not one.pieces]
    return tuple([segment for segment, _ in ordered]), tuple(pieces), added, tuple(chain.from_iterable(images))


def show_stated(
    attached: Sequence[Artifact],
    *,
    standing: Mapping[str, Standing],
    place: str,
    measure: Measure,
    state_line: str,
    whole: Set[str],
) -> Shown:
    """L3 where a line states what is attached when that changes: what stands above is not referred to one by one.

    What changed is shown ``whole`` where that is said, and else as ever.
    """
    refused = find_refused(attached, standing=standing, measure=measure)
    tools, blocks, pictures, known = list[_Pair](), list[_Pair](), list[_Pair](), list[_Pair]()
    references: list[_Pair] = []
    named = _name(attached, standing=standing, place=place, measure=measure)
    for artifact in attached:
        if artifact.id in named:
            continue
        old, why = standing.get(artifact.id), refused.get(artifact.id, "")
        pair = _show(artifact, old, place=place, measure=measure, refused=why, whole=artifact.id in whole)
        if pair[1] is None and artifact.kind not in _REFERRED:
            known.append((replace(pair[0], place=None, text="", tokens=0), None))
        elif pair[1] is None:
            references.append(pair)
        elif artifact.kind is Kind.TOOL:
            tools.append(pair)
        else:
            (pictures if artifact.kind is Kind.IMAGE else blocks).append(pair)
    blocks += named.values()
    before = [segment.text for segment, _ in (*blocks, *pictures) if segment.text]
    behind = [segment.text for segment, _ in (*references, *tools)]
    heading = [_REFERENCE_HEADING] if references else []
    pieces = (*before, *((state_line,) if state_line else ()), *heading, *behind)
    ordered = [*blocks, *pictures, *known, *references, *tools]
    added = tuple([one for _, one in ordered if one is not None])
    images = [one.artifact.images for _, one in pictures if one is not None and not one.pieces]
    return tuple([segment for segment, _ in ordered]), pieces, added, tuple(chain.from_iterable(images))


def find_refused(
    attached: Sequence[Artifact], *, standing: Mapping[str, Standing], measure: Measure
) -> Mapping[str, str]:
    """Why pictures of a turn cannot go along with those that stand in the request, by id; none of what can."""
    new = [one for one in attached if one.kind is Kind.IMAGE and not stands(one, standing.get(one.id))]
    if not new or not measure.sees:
        return {}
    held = [one for one in standing.values() if one.artifact.kind is Kind.IMAGE and not one.pieces]
    there = [image for one in held for image in one.artifact.images]
    refused: dict[str, str] = {}
    for picture in new:
        why = next(filter(None, (measure.refuse(there, image) for image in picture.images)), "")
        if why:
            refused[picture.id] = why
        else:
            there += picture.images
    return refused


def stands(artifact: Artifact, known: Standing | None) -> bool:
    """Whether what is known of an artifact is its text as it is attached now, in full."""
    return known is not None and known.in_full and known.artifact.hash == artifact.hash


def _show(
    artifact: Artifact, known: Standing | None, *, place: str, measure: Measure, refused: str, whole: bool = False
) -> _Pair:
    """One attachment as L3 shows it, and what it adds to the request; a reference adds nothing."""
    if stands(artifact, known):
        return _refer(artifact, place=place, measure=measure), None
    if artifact.kind is Kind.IMAGE and (refused or not measure.sees):
        text = render_refused(artifact, refused) if refused else render_unseen(artifact)
        return _add(artifact, Form.FULL, text, place=place, tokens=measure.count(text))
    if artifact.kind is Kind.IMAGE:
        return _add(artifact, Form.FULL, "", place=place, tokens=count_images(artifact.images, measure))
    outline = render_smaller(artifact, Form.PREVIEW) if artifact.outlined else None
    if outline is not None:
        form, text = Form.PREVIEW, outline
    elif artifact.condensed is not None:
        form, text = Form.SUMMARY, render_condensed(artifact, artifact.condensed)
    elif known is None or known.artifact.hash == artifact.hash:
        form, text = Form.FULL, render_block(artifact)
    else:
        differs = known.in_full and not whole
        diff = build_diff(shown_text(known.artifact), shown_text(artifact)) if differs else None
        form, text = Form.UPDATE, render_update(artifact, diff=diff)
    return _add(artifact, form, text, place=place, tokens=measure.count(text))


def _name(
    attached: Sequence[Artifact], *, standing: Mapping[str, Standing], place: str, measure: Measure
) -> Mapping[str, _Pair]:
    """What has no room for its text, and does not stand above, as lines of one list."""
    left = [one for one in attached if one.condensed == NAMED_ONLY and not stands(one, standing.get(one.id))]
    listed = list_named(left, standing=standing, count=measure.count, place=place) if left else {}
    return {one.id: (_own(listed[one.id].segment, one), listed[one.id]) for one in left}


def _add(artifact: Artifact, form: Form, text: str, *, place: str, tokens: int) -> tuple[Segment, Standing]:
    added = make_standing(artifact, form=form, place=place, pieces=(text,) if text else (), tokens=tokens)
    return _own(added.segment, artifact), added


def _own(segment: Segment, artifact: Artifact) -> Segment:
    """A segment as it is in its own turn: there the active note is the active note."""
    return segment if segment.kind == artifact.kind else replace(segment, kind=artifact.kind)


def _refer(artifact: Artifact, *, place: str, measure: Measure) -> Segment:
    line = f"- {_call(artifact)}\n"
    return Segment(
        id=artifact.id,
        kind=artifact.kind,
        form=Form.REFERENCE,
        place=place,
        content=artifact.hash,
        text=line,
        tokens=measure.count(line),
        recoverable=artifact.recoverable,
    )


def _call(artifact: Artifact) -> str:
    """What the block of something says it is. A picture is sent without its id; its title is what people call it."""
    if artifact.kind is Kind.TOOL:
        return render_call(artifact)
    return escape_line(f"{artifact.title} (picture)" if artifact.kind is Kind.IMAGE else artifact.id)


def merge_standing(
    before: Mapping[str, Standing], added: Sequence[Standing], *, whole: Set[str] = frozenset()
) -> Mapping[str, Standing]:
    """What stands in the request once L3 is part of it: an update joins the copy it updates, unless it is ``whole``."""
    if not added:
        return before
    merged = dict(before)
    for standing in added:
        name = standing.artifact.id
        joins = name in merged and name not in whole
        merged[name] = _join(merged[name], standing) if joins else standing
    return merged


def _join(copy: Standing, update: Standing) -> Standing:
    joined = make_standing(
        update.artifact,
        form=update.form,
        place=update.place,
        pieces=(*copy.pieces, *update.pieces),
        tokens=copy.tokens + update.tokens,
    )
    return replace(joined, listed=True) if update.listed and not copy.pieces else joined


def build_user(said: Said) -> Layer:
    """L5 as its one segment; an empty text still has one, so that the turn can be named."""
    return make_layer(LayerId.L5, segments=(said.segment,), pieces=said.message.pieces, tokens=said.segment.tokens)
