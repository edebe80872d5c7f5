"""Laws: what every envelope satisfies. Of shape, of copies, and of talk.

They look at ids, hashes, forms and places and search in no text, so a user may quote any tag.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from msgspec import Struct

from lamella.core.artifacts.kinds import KINDS, Promotion
from lamella.core.artifacts.model import Kind
from lamella.core.log.placement import Form
from lamella.core.messages.model import Message, Role
from lamella.core.prompt.envelope import Envelope, hash_layers, hash_prefix
from lamella.core.prompt.layers.library import is_readable
from lamella.core.prompt.layers.model import (
    LAYER_ORDER,
    Layer,
    LayerId,
    Segment,
    SegmentKind,
    hash_pieces,
    message_place,
)
from lamella.core.prompt.movement import extends
from lamella.core.prompt.prompt import Prompt
from lamella.core.text.content import hash_text
from lamella.errors import LawBrokenError

_OWN_TEXT: frozenset[str] = frozenset(kind.value for kind in SegmentKind)
_TALK: frozenset[str] = frozenset(kind.value for kind in SegmentKind if kind is not SegmentKind.SYSTEM)
_STRIP = _TALK | {Kind.TOOL.value}
_READABLE = (Form.FULL, Form.UPDATE)
_VERBATIM = (Form.FULL, Form.REFERENCE)
_KEPT_KINDS = {
    kind.value for kind, spec in KINDS.items() if not spec.recoverable and spec.promotion is not Promotion.NEVER
}


def anywhere(layer: Layer) -> frozenset[int]:
    """Every place, for laws that no cut can break."""
    return frozenset(range(len(layer.segments) + 1))


class Law(Struct, frozen=True, kw_only=True):
    """A law that every envelope satisfies. ``cuts`` gives the places before which a layer may be cut."""

    name: str
    statement: str
    check: Callable[[Envelope, Prompt | None], Iterable[str]]
    cuts: Callable[[Layer], frozenset[int]] = anywhere


def _check_order(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    found = tuple(layer.id for layer in envelope.layers)
    if found != LAYER_ORDER:
        yield f"the layers are {', '.join(found) or 'none'}"


LAYER_ORDER_LAW = Law(name="layer_order", statement="An envelope has its five layers in order.", check=_check_order)


def _check_ids(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    for layer in envelope.layers:
        ids = [segment.id for segment in layer.segments]
        if len(set(ids)) != len(ids):
            repeated = [name for name, times in Counter(ids).items() if times > 1]
            yield f"{layer.id} holds {', '.join(repeated)} more than once"


UNIQUE_IDS = Law(name="unique_ids", statement="No id stands twice in a layer.", check=_check_ids)


def _check_hashes(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    # Hashing what a request holds is most of what building it costs, and hashing it again would find nothing that
    # comparing the objects does not: they cannot change, and what was put in place of another is another object.
    named: list[tuple[object, str]] = [(layer.pieces, layer.hash) for layer in envelope.layers]
    named += [(envelope.messages, envelope.prefix_hash), (envelope.layers, envelope.hash)]
    sealed_as = {id(thing): digest for thing, digest in envelope.seals}
    *layers_sealed, prefix_sealed, whole_sealed = [sealed_as.get(id(thing)) == digest for thing, digest in named]
    for layer, sealed in zip(envelope.layers, layers_sealed, strict=True):
        if not sealed and layer.hash != hash_pieces(layer.pieces):
            yield f"the hash of {layer.id} is not that of its text"
        for segment in layer.segments:
            # What is its own content has no other hash than that of its text, which is derived when asked for.
            if segment.content is not None and segment.kind in _OWN_TEXT and segment.content != hash_text(segment.text):
                yield f"the hash of {segment.id} is not that of its text"
    if not prefix_sealed and envelope.prefix_hash != hash_prefix(envelope.messages):
        yield "the prefix hash is not that of the system message"
    if not whole_sealed and envelope.hash != hash_layers(envelope.layers):
        yield "the envelope's hash is not that of its layers"


TRUE_HASHES = Law(name="true_hashes", statement="Every hash is the hash of what it names.", check=_check_hashes)


def _check_growth(envelope: Envelope, before: Prompt | None) -> Iterable[str]:
    now = envelope.prompt
    if before is None:
        return
    if before.epoch != now.epoch or before.terms.layout is not now.terms.layout:
        kept = now.placement.keep or 0
        if kept and not extends(before.messages[:kept], envelope.messages):
            yield f"the request does not keep the first {kept} messages of the one before it"
        within = now.placement.within
        if within and before.messages[kept].pieces[:within] != envelope.messages[kept].pieces[:within]:
            yield f"the request does not keep the first {within} pieces of message {kept} of the one before it"
        return
    if not extends(before.messages, envelope.messages):
        yield f"the request does not extend the one before it, within epoch {now.epoch}"


GROWING_PREFIX = Law(
    name="growing_prefix",
    statement="Within an epoch, each request extends the one before it; a fold keeps as many messages as it says.",
    check=_check_growth,
)


def _check_references(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    references = [s for s in envelope.by_id[LayerId.L3].segments if s.form is Form.REFERENCE]
    if not references:
        return
    readable = _find_readable(envelope)
    for segment in references:
        if (segment.id, segment.content) not in readable:
            yield f"{segment.id} is referred to and does not stand in the request in full"


def _find_readable(envelope: Envelope) -> set[tuple[str, str]]:
    targets = {
        (segment.id, segment.content)
        for layer_id in (LayerId.L2, LayerId.L4)
        for segment in envelope.by_id[layer_id].segments
        if segment.form in _READABLE and segment.content is not None
    }
    targets.update(pair for segment in envelope.by_id[LayerId.L1].segments for pair in segment.inlines)
    targets.update((c.artifact.id, c.artifact.hash) for c in envelope.prompt.carried if c.in_full)
    return targets


REFERENCE_TARGETS = Law(
    name="reference_targets",
    statement="A reference points only to what stands in the request in full, or in full plus its updates.",
    check=_check_references,
)


def _check_copies(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    inlined = {pair for segment in envelope.by_id[LayerId.L1].segments for pair in segment.inlines}
    readable: set[str] = {standing.artifact.id for standing in envelope.prompt.carried if standing.in_full}
    for layer_id in (LayerId.L2, LayerId.L4):
        readables = [segment for segment in envelope.by_id[layer_id].segments if segment.form in _READABLE]
        ids = {segment.id for segment in readables}
        # Long talk has no two alike: that is told at once, and only what repeats is looked at one by one.
        if inlined or len(ids) < len(readables) or not readable.isdisjoint(ids):
            yield from _find_repeated(readables, readable, inlined)
        readable |= ids
    for segment in envelope.by_id[LayerId.L3].segments:
        if segment.form is Form.FULL and (segment.id in readable or (segment.id, segment.content) in inlined):
            yield f"{segment.id} is sent in full although the request already holds it"


def _find_repeated(readables: Iterable[Segment], readable: Set[str], inlined: Set[tuple[str, str]]) -> Iterable[str]:
    known = set(readable)
    for segment in readables:
        drawn_in = segment.form is Form.FULL and (segment.id, segment.content) in inlined
        if segment.id in known or drawn_in:
            yield f"{segment.id} stands in the request more than once"
        known.add(segment.id)


SINGLE_COPY = Law(
    name="single_copy",
    statement="Every artifact stands in a request at most once, updates excepted.",
    check=_check_copies,
)


def _check_verbatim(envelope: Envelope, before: Prompt | None) -> Iterable[str]:
    for layer in envelope.layers:
        for segment in layer.segments:
            if not segment.recoverable and segment.form not in _VERBATIM:
                yield f"{segment.id} cannot be fetched again and stands as {segment.form}"
    if before is not None and before.conversation_id == envelope.prompt.conversation_id:
        yield from _find_lost(before, envelope)
        if envelope.prompt.pinned and envelope.prompt.rewritten is None:
            yield from _find_unpinned(before, envelope.prompt)


def _find_lost(before: Prompt, now: Envelope) -> Iterable[str]:
    kept = {segment.id for segment in now.by_id[LayerId.L2].segments}
    if now.message_id == before.message_id:
        # The same turn, sent on after its tools gave something: what is attached to it is not earlier yet.
        kept.update(segment.id for segment in now.by_id[LayerId.L3].segments if segment.form is Form.FULL)
    for earlier in ([standing.segment for standing in before.standing_library], before.turn_segments):
        for segment in earlier:
            if segment.kind in _KEPT_KINDS and segment.id not in kept and segment.id not in now.prompt.dropped:
                yield f"{segment.id} cannot be fetched again and is gone"


def _find_unpinned(before: Prompt, now: Prompt) -> Iterable[str]:
    """Pinned messages that were part of the talk and are no more; what a history mode hides is part of it."""
    stays = {now.user.id, *(said.id for exchange in now.talk.exchanges for said in exchange.said)}
    said = (one.id for exchange in before.talk.exchanges for one in exchange.said)
    for name in (before.user.id, *said):
        if name in now.pinned and name not in stays:
            yield f"{name} is pinned and is gone"


def _cut_verbatim(layer: Layer) -> frozenset[int]:
    """L2 may be cut only before its first entry that cannot be fetched again; other layers have their own laws."""
    if layer.id is not LayerId.L2:
        return anywhere(layer)
    first = next((i for i, s in enumerate(layer.segments) if not s.recoverable), len(layer.segments))
    return frozenset(range(first + 1))


VERBATIM = Law(
    name="verbatim",
    statement="Text that cannot be fetched again stands verbatim until the user drops it; a pinned message stays.",
    check=_check_verbatim,
    cuts=_cut_verbatim,
)


def _check_strip(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    for segment in envelope.by_id[LayerId.L4].segments:
        if segment.kind not in _STRIP:
            yield f"L4 holds {segment.id}, a {segment.kind}"


def _cut_strip(layer: Layer) -> frozenset[int]:
    """A strip is cut only where a turn begins: an answer without its question is no longer what the user saw."""
    if layer.id is not LayerId.L4:
        return anywhere(layer)
    starts = {0, len(layer.segments)}
    starts.update(
        index
        for index, segment in enumerate(layer.segments)
        if index > 0 and layer.segments[index - 1].kind == SegmentKind.REPLY and segment.kind != SegmentKind.REPLY
    )
    return frozenset(starts)


STRIP_CONTENT = Law(
    name="strip_content",
    statement="L4 holds typed text, replies, what stands in for those, and what tools gave in earlier turns.",
    check=_check_strip,
    cuts=_cut_strip,
)


def _check_pairs(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    asked = {segment.place for segment in envelope.by_id[LayerId.L4].segments if segment.kind == SegmentKind.USER}
    asked.update(segment.place for segment in envelope.by_id[LayerId.L5].segments)
    asked.update([message_place(at) for at, message in enumerate(envelope.messages) if message.role is Role.TOOL])
    for layer_id in (LayerId.L2, LayerId.L3, LayerId.L4):
        for segment in envelope.by_id[layer_id].segments:
            if segment.kind != Kind.TOOL:
                continue
            if layer_id is LayerId.L2:
                yield f"{segment.id} stands in the library, apart from its turn"
            elif segment.form is Form.FULL and segment.place not in asked:
                yield f"{segment.id} stands at {segment.place}, apart from its turn"
    yield from _find_unpaired(envelope.messages)


def _find_unpaired(messages: Sequence[Message]) -> Iterable[str]:
    """Every call is followed by what came back for it, before anything else is said."""
    if not [message for message in messages if message.calls or message.role is Role.TOOL]:
        return
    waiting: list[str] = []
    for message in messages:
        if message.role is not Role.TOOL:
            yield from (f"the call {name} has no result" for name in waiting)
            waiting = [call.id for call in message.calls]
        elif message.call in waiting:
            waiting.remove(message.call)
        else:
            yield f"a result answers {message.call}, which nobody called for"
    yield from (f"the call {name} has no result" for name in waiting)


def _cut_pairs(layer: Layer) -> frozenset[int]:
    """Never between a tool result or a call and what belongs to the same turn behind it."""
    bound = (Kind.TOOL.value, SegmentKind.CALL.value)
    inside = {
        index + 1
        for index, segment in enumerate(layer.segments[:-1])
        if segment.kind in bound or layer.segments[index + 1].kind == SegmentKind.CALL
    }
    return anywhere(layer) - inside


TOOL_PAIRS = Law(
    name="tool_pairs",
    statement="A tool's call and its result stand together, in the turn that made the call.",
    check=_check_pairs,
    cuts=_cut_pairs,
)


def _check_working_set(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    prompt = envelope.prompt
    if not prompt.placement.priced:
        return
    shown = {segment.id for segment in prompt.shown[0]}
    for name in prompt.working_set:
        if name not in shown and not is_readable(prompt.library[name], prompt.standing[name], prompt.terms):
            yield f"{name} is attached and cannot be read in its current text"


WORKING_SET = Law(
    name="working_set",
    statement="Where prices decide, all that is attached can be read in its current text.",
    check=_check_working_set,
)


LAWS: tuple[Law, ...] = (
    LAYER_ORDER_LAW,
    UNIQUE_IDS,
    REFERENCE_TARGETS,
    STRIP_CONTENT,
    SINGLE_COPY,
    VERBATIM,
    TOOL_PAIRS,
    TRUE_HASHES,
    GROWING_PREFIX,
    WORKING_SET,
)


def find_breaches(envelope: Envelope, *, before: Prompt | None) -> Iterator[tuple[Law, tuple[str, ...]]]:
    """Each law the envelope breaks, with what was found."""
    for law in LAWS:
        findings = tuple(law.check(envelope, before))
        if findings:
            yield law, findings


def check_laws(envelope: Envelope, *, before: Prompt | None) -> None:
    """Raise on the first broken law."""
    for law, findings in find_breaches(envelope, before=before):
        raise LawBrokenError(law=law.name, findings=findings)


def legal_cuts(layer: Layer) -> tuple[int, ...]:
    """The places, counted in segments, before which a layer may be cut without breaking any law."""
    allowed = frozenset(range(len(layer.segments) + 1))
    for law in LAWS:
        allowed &= law.cuts(layer)
    return tuple(sorted(allowed))
