"""L2, the context library: everything attached in earlier turns, one entry per id, in first-seen order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lamella.core.artifacts.blocks import render_block, render_preview
from lamella.core.artifacts.kinds import KINDS, Promotion
from lamella.core.artifacts.model import Artifact, Kind, Policy
from lamella.core.compaction.outline import PREVIEW_OVER, build_outline
from lamella.core.layers.fingerprint import make_layer
from lamella.core.layers.model import SYSTEM_PLACE, CarryForward, Count, Form, Layer, LayerId, Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What stands in a request for one artifact: its newest content, and the pieces of text that say it.

    An artifact that changed stands as its first copy and one piece per update; ``place`` is that of the newest.
    """

    artifact: Artifact
    form: Form
    place: str
    pieces: tuple[str, ...]
    tokens: int

    @property
    def in_full(self) -> bool:
        """Whether the newest text can be read off the request."""
        return self.form in (Form.FULL, Form.UPDATE)


def promotes(artifact: Artifact, *, image_notes: bool) -> bool:
    """Whether the artifact goes into the library once its turn is over."""
    if KINDS[artifact.kind].promotion is Promotion.NEVER:
        return False
    return image_notes or not artifact.has_images


def shelve(artifact: Artifact, *, carry_forward: CarryForward, count: Count) -> Standing:
    """An artifact as it stands in the library: in full, or as its outline where that is asked for and allowed."""
    kind = Kind.NOTE if KINDS[artifact.kind].promotion is Promotion.AS_NOTE else artifact.kind
    text, form = render_block(artifact, kind=kind), Form.FULL
    if carry_forward is CarryForward.PREVIEW and _may_shrink(artifact):
        preview = render_preview(artifact, build_outline(artifact.text), kind=kind)
        if len(preview) < len(text):
            text, form = preview, Form.PREVIEW
    return Standing(artifact=artifact, form=form, place=SYSTEM_PLACE, pieces=(text,), tokens=count(text))


def _may_shrink(artifact: Artifact) -> bool:
    return artifact.recoverable and artifact.policy is not Policy.PIN and len(artifact.text) > PREVIEW_OVER


def fold_shelf(
    known: Iterable[Artifact], before: Mapping[str, Standing], *, carry_forward: CarryForward, count: Count
) -> dict[str, Standing]:
    """The library's shelf at the start of an epoch; entries that did not change are the same objects as before."""
    shelf: dict[str, Standing] = {}
    for artifact in known:
        old = before.get(artifact.id)
        if old is not None and old.artifact is artifact:
            shelf[artifact.id] = old
        else:
            shelf[artifact.id] = shelve(artifact, carry_forward=carry_forward, count=count)
    return shelf


def build_library(standings: Iterable[Standing]) -> Layer:
    """L2 from what stands in the request, wherever it stands."""
    segments: list[Segment] = []
    pieces: list[str] = []
    tokens = 0
    for standing in standings:
        segments.append(_segment(standing))
        pieces.extend(standing.pieces)
        tokens += standing.tokens
    return make_layer(LayerId.L2, segments=segments, pieces=pieces, tokens=tokens)


def _segment(standing: Standing) -> Segment:
    artifact = standing.artifact
    kind = Kind.NOTE if KINDS[artifact.kind].promotion is Promotion.AS_NOTE else artifact.kind
    text = standing.pieces[0] if len(standing.pieces) == 1 else "".join(standing.pieces)
    return Segment(
        id=artifact.id,
        kind=kind,
        form=standing.form,
        place=standing.place,
        hash=artifact.hash,
        text=text,
        tokens=standing.tokens,
        recoverable=artifact.recoverable,
    )
