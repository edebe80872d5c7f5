"""L3, this turn: what is attached now. New things in full, known things as references, changed things as updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from lamella.core.artifacts.blocks import render_block, render_condensed, render_update
from lamella.core.artifacts.model import Artifact, Image, Kind
from lamella.core.budget.counting import Measure, count_images, count_pieces
from lamella.core.log.placement import Form
from lamella.core.prompt.layers.fingerprint import make_layer
from lamella.core.prompt.layers.library import Standing, make_standing
from lamella.core.prompt.layers.model import Layer, LayerId, Segment
from lamella.core.text.changes import build_diff
from lamella.core.text.content import escape_line

_REFERENCE_HEADING = "Attached to this message; the text stands above:\n"


class ShownTurn(Struct, frozen=True, kw_only=True, gc=False):
    """What is attached now as a message shows it: segments and pieces in order, what they add, and the pictures."""

    segments: tuple[Segment, ...]
    pieces: tuple[str, ...]
    added: tuple[Standing, ...]
    images: tuple[Image, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltTurn:
    """L3 as built: the layer, what the request holds once it is sent, and the pictures that go with it."""

    layer: Layer
    added: tuple[Standing, ...]
    images: tuple[Image, ...]


class _Shown(Struct, frozen=True, kw_only=True, gc=False):
    """One attachment as L3 shows it."""

    segment: Segment
    standing: Standing | None = None


def build_turn(
    attached: Sequence[Artifact],
    *,
    standing: Mapping[str, Standing],
    place: str,
    measure: Measure,
) -> BuiltTurn:
    """L3 for what is attached now, given what already stands in the request."""
    shown = show_turn(attached, standing=standing, place=place, measure=measure)
    tokens = count_pieces(shown.pieces, measure.count) + count_images(shown.images, measure)
    return BuiltTurn(
        layer=make_layer(LayerId.L3, segments=shown.segments, pieces=shown.pieces, tokens=tokens),
        added=shown.added,
        images=shown.images,
    )


def show_turn(
    attached: Sequence[Artifact], *, standing: Mapping[str, Standing], place: str, measure: Measure
) -> ShownTurn:
    """The same without a layer, for a message that was sent before."""
    shown = [_show(artifact, standing.get(artifact.id), place=place, measure=measure) for artifact in attached]
    tools = [s for s in shown if s.segment.kind == Kind.TOOL and s.standing]
    references = [s for s in shown if s.segment.form is Form.REFERENCE]
    pictures = [s for s in shown if s.segment.kind == Kind.IMAGE and s.standing]
    new = [s for s in shown if s.standing and s.segment.kind not in (Kind.TOOL, Kind.IMAGE)]
    pieces = [s.segment.text for s in tools]
    if references:
        pieces.append(_REFERENCE_HEADING)
    pieces += [s.segment.text for s in (*references, *new)]
    ordered = [*tools, *references, *new, *pictures]
    images = tuple(image for s in pictures if s.standing for image in s.standing.artifact.images)
    return ShownTurn(
        segments=tuple(s.segment for s in ordered),
        pieces=tuple(pieces),
        added=tuple(s.standing for s in ordered if s.standing),
        images=images,
    )


def _show(artifact: Artifact, known: Standing | None, *, place: str, measure: Measure) -> _Shown:
    if known is not None and known.in_full and known.artifact.hash == artifact.hash:
        return _Shown(segment=_reference(artifact, place=place, measure=measure))
    if artifact.kind is Kind.IMAGE:
        return _shown(artifact, Form.FULL, "", place=place, tokens=count_images(artifact.images, measure))
    if artifact.condensed is not None:
        text = render_condensed(artifact, artifact.condensed)
        return _shown(artifact, Form.SUMMARY, text, place=place, tokens=measure.count(text))
    if known is None or known.artifact.hash == artifact.hash:
        text = render_block(artifact)
        return _shown(artifact, Form.FULL, text, place=place, tokens=measure.count(text))
    diff = build_diff(known.artifact.text, artifact.text) if known.in_full else None
    text = render_update(artifact, diff=diff)
    return _shown(artifact, Form.UPDATE, text, place=place, tokens=measure.count(text))


def _shown(artifact: Artifact, form: Form, text: str, *, place: str, tokens: int) -> _Shown:
    segment = Segment(
        id=artifact.id,
        kind=artifact.kind,
        form=form,
        place=place,
        content=artifact.hash,
        text=text,
        tokens=tokens,
        recoverable=artifact.recoverable,
    )
    pieces = (text,) if text else ()
    return _Shown(
        segment=segment,
        standing=make_standing(artifact, form=form, place=place, pieces=pieces, tokens=tokens),
    )


def _reference(artifact: Artifact, *, place: str, measure: Measure) -> Segment:
    # A picture is sent without its id; its title is what people call it.
    name = f"{artifact.title} (picture)" if artifact.kind is Kind.IMAGE else artifact.id
    line = f"- {escape_line(name)}\n"
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


def merge_standing(before: Mapping[str, Standing], added: Sequence[Standing]) -> dict[str, Standing]:
    """What stands in the request once L3 is part of it: an update joins the copy it updates."""
    merged = dict(before)
    add_standing(merged, added)
    return merged


def add_standing(merged: dict[str, Standing], added: Sequence[Standing]) -> None:
    """The same, for a caller who folds many turns and owns the mapping."""
    for standing in added:
        name = standing.artifact.id
        merged[name] = _join(merged[name], standing) if name in merged else standing


def _join(copy: Standing, update: Standing) -> Standing:
    return make_standing(
        update.artifact,
        form=update.form,
        place=update.place or "",
        pieces=(*copy.pieces, *update.pieces),
        tokens=copy.tokens + update.tokens,
    )
