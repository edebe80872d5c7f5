"""L3, the attachments of this turn, and L5, the typed text.

New artifacts are shown in full, known ones as references, and changed ones as updates.
"""

from collections.abc import Mapping, Sequence, Set
from itertools import chain

from lamella.core.artifacts.blocks import (
    render_block,
    render_call,
    render_image_as_text,
    render_rejected_image,
    render_summary,
    render_update,
    text_for_model,
)
from lamella.core.artifacts.model import NAMED_ONLY, Artifact, ArtifactKind, ImageData
from lamella.core.budget import Tokenizer, count_images_tokens
from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.layers.history import HistoryMessage
from lamella.core.prompt.layers.library import (
    PlacedArtifact,
    make_placed_artifact,
    place_list_of_names,
    render_shorter_form,
)
from lamella.core.prompt.layers.model import Layer, LayerId, Segment, make_layer
from lamella.core.text.content import escape_line
from lamella.core.text.diff import build_short_diff
from lamella.core.values import replace

_REFERENCE_HEADING = "Attached to this message; the text stands above:\n"
# The line about the working set does not name these kinds, so they are referenced each time they come again.
_REFERENCED_KINDS = (ArtifactKind.TOOL, ArtifactKind.IMAGE)

# Rendered attachments: segments and pieces in order, the artifacts they place in the request, and the images.
RenderedAttachments = tuple[tuple[Segment, ...], tuple[str, ...], tuple[PlacedArtifact, ...], tuple[ImageData, ...]]
NO_ATTACHMENTS: RenderedAttachments = ((), (), (), ())
# One rendered attachment, and the artifact it places in the request; None for a reference, which places nothing.
_RenderedAttachment = tuple[Segment, PlacedArtifact | None]


def render_attachments(
    attached: Sequence[Artifact],
    *,
    placed: Mapping[str, PlacedArtifact],
    position: str,
    tokenizer: Tokenizer,
    names_recall: bool = False,
) -> RenderedAttachments:
    """Render L3 for the attachments of a turn, given the artifacts already in the request.

    ``names_recall`` is that of ``TurnSettings``.
    """
    if len(attached) == 1 and attached[0].kind is not ArtifactKind.IMAGE and attached[0].condensed != NAMED_ONLY:
        # Fast path: mostly one note is attached, and opening a conversation replays many such turns.
        segment, alone = _render_attachment(
            attached[0], placed.get(attached[0].id), position=position, tokenizer=tokenizer, rejection=""
        )
        if alone is not None:
            return (segment,), (segment.text,), (alone,), ()
    refused = image_rejection_reasons(attached, placed=placed, tokenizer=tokenizer)
    tools, references, blocks, pictures = (
        list[_RenderedAttachment](),
        list[_RenderedAttachment](),
        list[_RenderedAttachment](),
        list[_RenderedAttachment](),
    )
    named = _render_handles(attached, placed=placed, position=position, tokenizer=tokenizer, names_recall=names_recall)
    for artifact in attached:
        if artifact.id in named:
            continue
        why = refused.get(artifact.id, "")
        pair = _render_attachment(
            artifact, placed.get(artifact.id), position=position, tokenizer=tokenizer, rejection=why
        )
        if pair[1] is None:
            references.append(pair)
        elif artifact.kind is ArtifactKind.TOOL:
            tools.append(pair)
        else:
            (pictures if artifact.kind is ArtifactKind.IMAGE else blocks).append(pair)
    ordered = [*tools, *references, *blocks, *named.values(), *pictures]
    pieces = [segment.text for segment, _ in ordered if segment.text]
    if references:
        pieces.insert(len(tools), _REFERENCE_HEADING)
    added = tuple([one for _, one in ordered if one is not None])
    images = [one.artifact.images for _, one in pictures if one is not None and not one.pieces]
    return tuple([segment for segment, _ in ordered]), tuple(pieces), added, tuple(chain.from_iterable(images))


def render_attachment_delta(
    attached: Sequence[Artifact],
    *,
    placed: Mapping[str, PlacedArtifact],
    position: str,
    tokenizer: Tokenizer,
    working_set_line: str,
    show_in_full: Set[str],
    names_recall: bool,
) -> RenderedAttachments:
    """Render L3 if costs decide the layout: a line states changes of the working set, without references.

    Changed artifacts in ``show_in_full`` are shown with their full text; others as a diff if that is much shorter.
    """
    refused = image_rejection_reasons(attached, placed=placed, tokenizer=tokenizer)
    tools, blocks, pictures, known = (
        list[_RenderedAttachment](),
        list[_RenderedAttachment](),
        list[_RenderedAttachment](),
        list[_RenderedAttachment](),
    )
    references: list[_RenderedAttachment] = []
    named = _render_handles(attached, placed=placed, position=position, tokenizer=tokenizer, names_recall=names_recall)
    for artifact in attached:
        if artifact.id in named:
            continue
        old, why = placed.get(artifact.id), refused.get(artifact.id, "")
        pair = _render_attachment(
            artifact,
            old,
            position=position,
            tokenizer=tokenizer,
            rejection=why,
            show_in_full=artifact.id in show_in_full,
        )
        if pair[1] is None and artifact.kind not in _REFERENCED_KINDS:
            known.append((replace(pair[0], place=None, text="", tokens=0), None))
        elif pair[1] is None:
            references.append(pair)
        elif artifact.kind is ArtifactKind.TOOL:
            tools.append(pair)
        else:
            (pictures if artifact.kind is ArtifactKind.IMAGE else blocks).append(pair)
    blocks += named.values()
    before = [segment.text for segment, _ in (*blocks, *pictures) if segment.text]
    behind = [segment.text for segment, _ in (*references, *tools)]
    heading = [_REFERENCE_HEADING] if references else []
    pieces = (*before, *((working_set_line,) if working_set_line else ()), *heading, *behind)
    ordered = [*blocks, *pictures, *known, *references, *tools]
    added = tuple([one for _, one in ordered if one is not None])
    images = [one.artifact.images for _, one in pictures if one is not None and not one.pieces]
    return tuple([segment for segment, _ in ordered]), pieces, added, tuple(chain.from_iterable(images))


def image_rejection_reasons(
    attached: Sequence[Artifact], *, placed: Mapping[str, PlacedArtifact], tokenizer: Tokenizer
) -> Mapping[str, str]:
    """Return, by id, why new images cannot be sent together with those already in the request.

    Images that can be sent are not in the result.
    """
    new = [one for one in attached if one.kind is ArtifactKind.IMAGE and not is_shown_in_full(one, placed.get(one.id))]
    if not new or not tokenizer.supports_images:
        return {}
    unsent = [one for one in placed.values() if one.artifact.kind is ArtifactKind.IMAGE and not one.pieces]
    images = [image for one in unsent for image in one.artifact.images]
    refused: dict[str, str] = {}
    for picture in new:
        why = next(filter(None, (tokenizer.image_rejection(images, image) for image in picture.images)), "")
        if why:
            refused[picture.id] = why
        else:
            images += picture.images
    return refused


def is_shown_in_full(artifact: Artifact, known: PlacedArtifact | None) -> bool:
    """Return whether the request already contains this text of the artifact in full."""
    return known is not None and known.is_full and known.artifact.hash == artifact.hash


def _render_attachment(
    artifact: Artifact,
    known: PlacedArtifact | None,
    *,
    position: str,
    tokenizer: Tokenizer,
    rejection: str,
    show_in_full: bool = False,
) -> _RenderedAttachment:
    """Render one attachment, with the artifact it places in the request; a reference places nothing."""
    if is_shown_in_full(artifact, known):
        return _make_reference(artifact, position=position, tokenizer=tokenizer), None
    if artifact.kind is ArtifactKind.IMAGE and (rejection or not tokenizer.supports_images):
        text = render_rejected_image(artifact, rejection) if rejection else render_image_as_text(artifact)
        return _place_attachment(artifact, ArtifactForm.FULL, text, position=position, tokens=tokenizer.count(text))
    if artifact.kind is ArtifactKind.IMAGE:
        return _place_attachment(
            artifact, ArtifactForm.FULL, "", position=position, tokens=count_images_tokens(artifact.images, tokenizer)
        )
    outline = render_shorter_form(artifact, ArtifactForm.PREVIEW) if artifact.is_outlined else None
    if outline is not None:
        form, text = ArtifactForm.PREVIEW, outline
    elif artifact.condensed is not None:
        form, text = ArtifactForm.SUMMARY, render_summary(artifact, artifact.condensed)
    elif known is None or known.artifact.hash == artifact.hash:
        form, text = ArtifactForm.FULL, render_block(artifact)
    else:
        differs = known.is_full and not show_in_full
        diff = build_short_diff(text_for_model(known.artifact), text_for_model(artifact)) if differs else None
        form, text = ArtifactForm.UPDATE, render_update(artifact, diff=diff)
    return _place_attachment(artifact, form, text, position=position, tokens=tokenizer.count(text))


def _render_handles(
    attached: Sequence[Artifact],
    *,
    placed: Mapping[str, PlacedArtifact],
    position: str,
    tokenizer: Tokenizer,
    names_recall: bool,
) -> Mapping[str, _RenderedAttachment]:
    """Render attachments whose text does not fit as lines of one list, unless the request has them already."""
    left = [one for one in attached if one.condensed == NAMED_ONLY and not is_shown_in_full(one, placed.get(one.id))]
    if not left:
        return {}
    listed = place_list_of_names(
        left, placed=placed, count=tokenizer.count, position=position, names_recall=names_recall
    )
    return {one.id: (_with_artifact_kind(listed[one.id].segment, one), listed[one.id]) for one in left}


def _place_attachment(
    artifact: Artifact, form: ArtifactForm, text: str, *, position: str, tokens: int
) -> tuple[Segment, PlacedArtifact]:
    added = make_placed_artifact(artifact, form=form, position=position, pieces=(text,) if text else (), tokens=tokens)
    return _with_artifact_kind(added.segment, artifact), added


def _with_artifact_kind(segment: Segment, artifact: Artifact) -> Segment:
    """Return the segment with the kind it has in its own turn, where the active note is not yet a plain note."""
    return segment if segment.kind == artifact.kind else replace(segment, kind=artifact.kind)


def _make_reference(artifact: Artifact, *, position: str, tokenizer: Tokenizer) -> Segment:
    line = f"- {_get_reference_name(artifact)}\n"
    return Segment(
        id=artifact.id,
        kind=artifact.kind,
        form=ArtifactForm.REFERENCE,
        place=position,
        content=artifact.hash,
        text=line,
        tokens=tokenizer.count(line),
        recoverable=artifact.recoverable,
    )


def _get_reference_name(artifact: Artifact) -> str:
    """Return the name for a reference line; for an image the title, because images are sent without their id."""
    if artifact.kind is ArtifactKind.TOOL:
        return render_call(artifact)
    return escape_line(f"{artifact.title} (picture)" if artifact.kind is ArtifactKind.IMAGE else artifact.id)


def with_updates_joined(
    before: Mapping[str, PlacedArtifact], added: Sequence[PlacedArtifact], *, replaced_ids: Set[str] = frozenset()
) -> Mapping[str, PlacedArtifact]:
    """Return the placed artifacts once L3 is part of the request.

    An update is added to the copy that it updates, unless it is in ``replaced_ids`` and replaces that copy.
    """
    if not added:
        return before
    merged = dict(before)
    for placed in added:
        name = placed.artifact.id
        joins = name in merged and name not in replaced_ids
        merged[name] = _join_update_to_copy(merged[name], placed) if joins else placed
    return merged


def _join_update_to_copy(copy: PlacedArtifact, update: PlacedArtifact) -> PlacedArtifact:
    joined = make_placed_artifact(
        update.artifact,
        form=update.form,
        position=update.place,
        pieces=(*copy.pieces, *update.pieces),
        tokens=copy.tokens + update.tokens,
    )
    return replace(joined, is_listed=True) if update.is_listed and not copy.pieces else joined


def build_user_layer(message: HistoryMessage) -> Layer:
    """Build L5 with its one segment; it exists even if the text is empty, so that the turn has an id."""
    return make_layer(
        LayerId.L5, segments=(message.segment,), pieces=message.message.pieces, tokens=message.segment.tokens
    )
