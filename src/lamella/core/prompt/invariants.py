"""Invariants: properties that every envelope must have.

The checks use ids, hashes, forms and positions. They never search texts, so a user may quote any tag.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from msgspec import Struct

from lamella.core.artifacts.kinds import KINDS, LibraryPromotion
from lamella.core.artifacts.model import ArtifactKind
from lamella.core.log.turn import ArtifactForm
from lamella.core.messages import Message, Role
from lamella.core.prompt.envelope import Envelope, hash_layers, hash_system_message
from lamella.core.prompt.layers.digest import iter_digest_messages
from lamella.core.prompt.layers.library import is_shown_in_carried_form
from lamella.core.prompt.layers.model import (
    LAYER_ORDER,
    Layer,
    LayerId,
    Segment,
    SegmentKind,
    hash_pieces,
    message_position,
    shown_segments,
)
from lamella.core.prompt.prefix_change import is_prefix_of
from lamella.core.prompt.prompt import Prompt
from lamella.core.text.content import hash_text
from lamella.errors import InvariantViolatedError

_NON_ARTIFACT_KINDS: frozenset[str] = frozenset(kind.value for kind in SegmentKind)
_MESSAGE_KINDS: frozenset[str] = frozenset(kind.value for kind in SegmentKind if kind is not SegmentKind.SYSTEM)
_HISTORY_KINDS = _MESSAGE_KINDS | {ArtifactKind.TOOL.value}
_READABLE_FORMS = (ArtifactForm.FULL, ArtifactForm.UPDATE)
_VERBATIM_FORMS = (ArtifactForm.FULL, ArtifactForm.REFERENCE)
_UNRECOVERABLE_KINDS = {
    kind.value for kind, spec in KINDS.items() if not spec.recoverable and spec.promotion is not LibraryPromotion.NEVER
}


def all_cuts(layer: Layer) -> frozenset[int]:
    """Return every cut position of a layer, for invariants that no cut can break."""
    return frozenset(range(len(layer.segments) + 1))


class PromptInvariant(Struct, frozen=True, kw_only=True):
    """An invariant of envelopes. ``find_legal_cuts`` returns the segment indices before which a layer may be cut."""

    name: str
    statement: str
    check: Callable[[Envelope, Prompt | None], Iterable[str]]
    find_legal_cuts: Callable[[Layer], frozenset[int]] = all_cuts


def _check_layer_order(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    found = tuple(layer.id for layer in envelope.layers)
    if found != LAYER_ORDER:
        yield f"the layers are {', '.join(found) or 'none'}"


LAYER_ORDER_INVARIANT = PromptInvariant(
    name="layer_order", statement="An envelope has its five layers in order.", check=_check_layer_order
)


def _check_ids(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    for layer in envelope.layers:
        ids = [segment.id for segment in shown_segments(layer.segments)]
        if len(set(ids)) != len(ids):
            repeated = [name for name, times in Counter(ids).items() if times > 1]
            yield f"{layer.id} holds {', '.join(repeated)} more than once"


UNIQUE_IDS = PromptInvariant(name="unique_ids", statement="No id stands twice in a layer.", check=_check_ids)


def _check_hashes(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    # Hashing the contents is most of the cost of building a request. The objects are immutable and every replacement
    # is another object, so comparing identities with the seals finds the same errors as hashing again.
    named: list[tuple[object, str]] = [(layer.pieces, layer.hash) for layer in envelope.layers]
    named += [(envelope.messages, envelope.prefix_hash), (envelope.layers, envelope.hash)]
    sealed_as = {id(thing): digest for thing, digest in envelope.known_hashes}
    *layers_sealed, prefix_sealed, whole_sealed = [sealed_as.get(id(thing)) == digest for thing, digest in named]
    for layer, sealed in zip(envelope.layers, layers_sealed, strict=True):
        if not sealed and layer.hash != hash_pieces(layer.pieces):
            yield f"the hash of {layer.id} is not that of its text"
        for segment in shown_segments(layer.segments):
            # Without ``content`` the hash is derived from the text on demand, so there is nothing to compare.
            if (
                segment.content is not None
                and segment.kind in _NON_ARTIFACT_KINDS
                and segment.content != hash_text(segment.text)
            ):
                yield f"the hash of {segment.id} is not that of its text"
    if not prefix_sealed and envelope.prefix_hash != hash_system_message(envelope.messages):
        yield "the prefix hash is not that of the system message"
    if not whole_sealed and envelope.hash != hash_layers(envelope.layers):
        yield "the envelope's hash is not that of its layers"


TRUE_HASHES = PromptInvariant(
    name="true_hashes", statement="Every hash is the hash of what it names.", check=_check_hashes
)


def _check_growing_prefix(envelope: Envelope, before: Prompt | None) -> Iterable[str]:
    now = envelope.prompt
    if before is None:
        return
    if before.epoch != now.epoch or before.turn_settings.layout is not now.turn_settings.layout:
        kept = now.layout_plan.keep_messages or 0
        if kept and not is_prefix_of(before.messages[:kept], envelope.messages):
            yield f"the request does not keep the first {kept} messages of the one before it"
        within = now.layout_plan.within
        # A question that is sent again may have been planned after a longer request than the one before it is now.
        is_there = kept < min(len(before.messages), len(envelope.messages))
        if within and is_there and before.messages[kept].pieces[:within] != envelope.messages[kept].pieces[:within]:
            yield f"the request does not keep the first {within} pieces of message {kept} of the one before it"
        return
    if not is_prefix_of(before.messages, envelope.messages):
        yield f"the request does not extend the one before it, within epoch {now.epoch}"


GROWING_PREFIX = PromptInvariant(
    name="growing_prefix",
    statement="Within an epoch, each request extends the one before it; a fold keeps as many messages as it says.",
    check=_check_growing_prefix,
)


def _check_references(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    references = [s for s in envelope.by_id[LayerId.L3].segments if s.form is ArtifactForm.REFERENCE]
    if not references:
        return
    readable = _collect_readable_segments(envelope)
    for segment in references:
        if (segment.id, segment.content) not in readable:
            yield f"{segment.id} is referred to and does not stand in the request in full"


def _collect_readable_segments(envelope: Envelope) -> set[tuple[str, str]]:
    """Return the id and content hash of everything that the request contains in full."""
    targets = {
        (segment.id, segment.content)
        for layer_id in (LayerId.L2, LayerId.L4)
        for segment in shown_segments(envelope.by_id[layer_id].segments)
        if segment.form in _READABLE_FORMS and segment.content is not None
    }
    targets.update(pair for segment in envelope.by_id[LayerId.L1].segments for pair in segment.inlines)
    targets.update((c.artifact.id, c.artifact.hash) for c in envelope.prompt.unlayered_artifacts if c.is_full)
    return targets


REFERENCE_TARGETS = PromptInvariant(
    name="reference_targets",
    statement="A reference points only to what stands in the request in full, or in full plus its updates.",
    check=_check_references,
)


def _check_single_copy(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    inlined = {pair for segment in envelope.by_id[LayerId.L1].segments for pair in segment.inlines}
    readable: set[str] = {placed.artifact.id for placed in envelope.prompt.unlayered_artifacts if placed.is_full}
    for layer_id in (LayerId.L2, LayerId.L4):
        segments = shown_segments(envelope.by_id[layer_id].segments)
        readables = [segment for segment in segments if segment.form in _READABLE_FORMS]
        ids = {segment.id for segment in readables}
        # A long history rarely repeats an id. The set operations settle that; only repeats are examined one by one.
        if inlined or len(ids) < len(readables) or not readable.isdisjoint(ids):
            yield from _report_repeated_segments(readables, readable, inlined)
        readable |= ids
    for segment in envelope.by_id[LayerId.L3].segments:
        if segment.form is ArtifactForm.FULL and (segment.id in readable or (segment.id, segment.content) in inlined):
            yield f"{segment.id} is sent in full although the request already holds it"


def _report_repeated_segments(
    readables: Iterable[Segment], readable: Set[str], inlined: Set[tuple[str, str]]
) -> Iterable[str]:
    known = set(readable)
    for segment in readables:
        drawn_in = segment.form is ArtifactForm.FULL and (segment.id, segment.content) in inlined
        if segment.id in known or drawn_in:
            yield f"{segment.id} stands in the request more than once"
        known.add(segment.id)


SINGLE_COPY = PromptInvariant(
    name="single_copy",
    statement="Every artifact stands in a request at most once, updates excepted.",
    check=_check_single_copy,
)


def _check_verbatim(envelope: Envelope, before: Prompt | None) -> Iterable[str]:
    for layer in envelope.layers:
        for segment in shown_segments(layer.segments):
            if not segment.recoverable and segment.form not in _VERBATIM_FORMS:
                yield f"{segment.id} cannot be fetched again and stands as {segment.form}"
    if before is not None and before.conversation_id == envelope.prompt.conversation_id:
        yield from _report_lost_segments(before, envelope)
        if envelope.prompt.pinned and envelope.prompt.history_rewrite is None:
            yield from _report_missing_pinned_messages(before, envelope.prompt)


def _report_lost_segments(before: Prompt, now: Envelope) -> Iterable[str]:
    kept = {segment.id for segment in shown_segments(now.by_id[LayerId.L2].segments)}
    if now.message_id == before.message_id:
        # The same turn, sent again after a tool round: its attachments are still in L3, not yet in the library.
        kept.update(segment.id for segment in now.by_id[LayerId.L3].segments if segment.form is ArtifactForm.FULL)
    for earlier in ([placed.segment for placed in before.shown_library], before.turn_segments):
        for segment in earlier:
            if segment.kind in _UNRECOVERABLE_KINDS and segment.id not in kept and segment.id not in now.prompt.dropped:
                yield f"{segment.id} cannot be fetched again and is gone"


def _report_missing_pinned_messages(before: Prompt, now: Prompt) -> Iterable[str]:
    """Report pinned messages that left the history; messages that the history mode hides are still part of it."""
    stays = {now.question.id, *_message_ids(now)}
    for name in (before.question.id, *_message_ids(before)):
        if name in now.pinned and name not in stays:
            yield f"{name} is pinned and is gone"


def _message_ids(prompt: Prompt) -> Iterator[str]:
    """Iterate over the messages of the history and those that the digest keeps whole."""
    yield from (message.id for turn in prompt.history.turns for message in turn.messages)
    yield from (message.id for message in iter_digest_messages(prompt.history.digest) if not message.is_excerpt)


def _cuts_before_verbatim(layer: Layer) -> frozenset[int]:
    """Return the cuts that keep unrecoverable entries: in L2 only up to the first of them.

    Other layers may be cut anywhere as far as this invariant is concerned.
    """
    if layer.id is not LayerId.L2:
        return all_cuts(layer)
    first = next((i for i, s in enumerate(layer.segments) if not s.recoverable), len(layer.segments))
    return frozenset(range(first + 1))


VERBATIM = PromptInvariant(
    name="verbatim",
    statement="Text that cannot be fetched again stands verbatim until the user drops it; a pinned message stays.",
    check=_check_verbatim,
    find_legal_cuts=_cuts_before_verbatim,
)


def _check_history_content(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    for segment in envelope.by_id[LayerId.L4].segments:
        if segment.kind not in _HISTORY_KINDS:
            yield f"L4 holds {segment.id}, a {segment.kind}"


def _cuts_at_turn_starts(layer: Layer) -> frozenset[int]:
    """Return the cuts at turn starts: a reply without its question is not what the user saw."""
    if layer.id is not LayerId.L4:
        return all_cuts(layer)
    starts = {0, len(layer.segments)}
    starts.update(
        index
        for index, segment in enumerate(layer.segments)
        if index > 0 and layer.segments[index - 1].kind == SegmentKind.REPLY and segment.kind != SegmentKind.REPLY
    )
    return frozenset(starts)


HISTORY_CONTENT = PromptInvariant(
    name="strip_content",
    statement="L4 holds typed text, replies, what stands in for those, and what tools gave in earlier turns.",
    check=_check_history_content,
    find_legal_cuts=_cuts_at_turn_starts,
)


def _check_calls_have_results(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    layers = {name: shown_segments(envelope.by_id[name].segments) for name in (LayerId.L2, LayerId.L3, LayerId.L4)}
    # Most requests have no results; the search for one goes through thousands of segments without a loop.
    results = {name: [one for one in some if one.kind == ArtifactKind.TOOL] for name, some in layers.items()}
    asked: set[str | None] = set()
    if any(results.values()):
        asked |= {segment.place for segment in layers[LayerId.L4] if segment.kind == SegmentKind.USER}
        asked.update(segment.place for segment in envelope.by_id[LayerId.L5].segments)
        asked.update(message_position(at) for at, message in enumerate(envelope.messages) if message.role is Role.TOOL)
    for layer_id, some in results.items():
        for segment in some:
            if layer_id is LayerId.L2:
                yield f"{segment.id} stands in the library, apart from its turn"
            elif segment.form is ArtifactForm.FULL and segment.place not in asked:
                yield f"{segment.id} stands at {segment.place}, apart from its turn"
    yield from _report_unpaired_tool_calls(envelope.messages)


def _report_unpaired_tool_calls(messages: Sequence[Message]) -> Iterable[str]:
    """Report calls without a result before the next message, and results without a call."""
    if not [message for message in messages if message.calls or message.role is Role.TOOL]:
        return
    waiting: list[str] = []
    for message in messages:
        if message.role is not Role.TOOL:
            yield from (f"the call {name} has no result" for name in waiting)
            waiting = [call.id for call in message.calls]
        elif message.call_id in waiting:
            waiting.remove(message.call_id)
        else:
            yield f"a result answers {message.call_id}, which nobody called for"
    yield from (f"the call {name} has no result" for name in waiting)


def _cuts_between_turns(layer: Layer) -> frozenset[int]:
    """Return the cuts that do not separate a tool call or result from what follows it in the same turn."""
    bound = (ArtifactKind.TOOL.value, SegmentKind.CALL.value)
    inside = {
        index + 1
        for index, segment in enumerate(layer.segments[:-1])
        if segment.kind in bound or layer.segments[index + 1].kind == SegmentKind.CALL
    }
    return all_cuts(layer) - inside


TOOL_PAIRS = PromptInvariant(
    name="tool_pairs",
    statement="A tool's call and its result stand together, in the turn that made the call.",
    check=_check_calls_have_results,
    find_legal_cuts=_cuts_between_turns,
)


def _check_working_set(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    prompt = envelope.prompt
    if not prompt.layout_plan.priced:
        return
    shown = {segment.id for segment in prompt.rendered_attachments[0]}
    for name in prompt.working_set:
        if name not in shown and not is_shown_in_carried_form(
            prompt.library[name], prompt.placed[name], prompt.turn_settings
        ):
            yield f"{name} is attached and cannot be read in its current text"


WORKING_SET = PromptInvariant(
    name="working_set",
    statement="Where prices decide, all that is attached can be read in its current text.",
    check=_check_working_set,
)


INVARIANTS: tuple[PromptInvariant, ...] = (
    LAYER_ORDER_INVARIANT,
    UNIQUE_IDS,
    REFERENCE_TARGETS,
    HISTORY_CONTENT,
    SINGLE_COPY,
    VERBATIM,
    TOOL_PAIRS,
    TRUE_HASHES,
    GROWING_PREFIX,
    WORKING_SET,
)


def iter_violations(envelope: Envelope, *, before: Prompt | None) -> Iterator[tuple[PromptInvariant, tuple[str, ...]]]:
    """Iterate over the invariants that the envelope breaks, each with its findings."""
    for law in INVARIANTS:
        findings = tuple(law.check(envelope, before))
        if findings:
            yield law, findings


def check_invariants(envelope: Envelope, *, before: Prompt | None) -> None:
    """Raise ``InvariantViolatedError`` for the first invariant that the envelope breaks."""
    for law, findings in iter_violations(envelope, before=before):
        raise InvariantViolatedError(invariant=law.name, findings=findings)


def legal_cuts(layer: Layer) -> tuple[int, ...]:
    """Return the segment indices before which a layer may be cut without breaking any invariant."""
    allowed = frozenset(range(len(layer.segments) + 1))
    for law in INVARIANTS:
        allowed &= law.find_legal_cuts(layer)
    return tuple(sorted(allowed))
