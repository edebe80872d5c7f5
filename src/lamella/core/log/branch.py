"""A branch read back: its turns with their contents, what was compacted before each, and the calls of its replies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from lamella.core.artifacts.kinds import promotes
from lamella.core.artifacts.model import Artifact
from lamella.core.log.call import Call
from lamella.core.log.compactions import NONE_IN_FORCE, CompactionsInForce
from lamella.core.log.events.artifact import Contents
from lamella.core.log.events.aside import AsideEvent, read_asides
from lamella.core.log.events.call import read_call
from lamella.core.log.events.compaction import CompactionEvent, read_receipt
from lamella.core.log.events.hashes import named_hashes
from lamella.core.log.events.message import read_brought, read_turn
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.rounds import read_round, read_waiting
from lamella.core.log.events.terms import settle_terms
from lamella.core.log.nodes import UNREADABLE, Node, Told, ToldPart, ToldRun, damaged, list_parts, name_round
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Attachments, Terms
from lamella.core.log.turn import Turn, TurnRun
from lamella.core.messages.delta import Reply
from lamella.core.messages.rounds import ToolRound
from lamella.core.values import replace

_USUAL = Terms()


def path_hashes(told: Iterable[ToldPart]) -> tuple[str, ...]:
    """Every content that a branch names."""
    hashes: dict[str, None] = {}
    for turn in list_parts(told):
        if isinstance(turn, ToldRun):
            hashes.update(
                dict.fromkeys([name for refs in turn.brought.values() for ref in refs for name in ref.hashes()])
            )
            continue
        named = named_hashes(turn.message.event)
        if named:
            hashes.update(dict.fromkeys(named))
        rounds = turn.open if turn.reply is None else turn.reply.rounds
        if rounds:
            hashes.update(dict.fromkeys(name for one in rounds for name in one.hashes()))
    return tuple(hashes)


def read_turns(
    told: Iterable[Told], contents: Contents, committed: CompactionsInForce = NONE_IN_FORCE, *, usual: Terms
) -> list[Turn]:
    """A branch's turns with their contents, each with its reply and with what was compacted before it.

    ``usual`` are the terms of turns that were written down without any.
    """
    before = committed.before
    turns: list[Turn] = []
    for one in told:
        turn = read_message(one.message, contents, usual=usual, reply=one.reply)
        if before and one.message.id in before:
            turn = replace(turn, receipts=read_receipts(before[one.message.id], contents))
        if one.reply is not None:
            turn = replace(turn, rounds=read_rounds(one, contents)) if one.reply.rounds else turn
        elif one.open:
            turn = replace(turn, rounds=read_rounds(one, contents)[: len(one.rounds)])
        turns.append(turn)
    return turns


def read_past(
    told: Iterable[ToldPart], contents: Contents, committed: CompactionsInForce = NONE_IN_FORCE, *, usual: Terms
) -> list[Turn | TurnRun]:
    """The same for going on after them: of those that only talk nobody asks what was sent for them then."""
    past: list[Turn | TurnRun] = []
    for part in list_parts(told):
        if isinstance(part, Told):
            past += read_turns((part,), contents, committed, usual=usual)
        else:
            past += _read_run(part, contents, committed.before, usual=usual)
    return past


def _read_run(
    run: ToldRun, contents: Contents, before: Mapping[str, tuple[CompactionEvent, ...]], *, usual: Terms
) -> Iterator[Turn | TurnRun]:
    """Turns that talk as they are, and between them each that was compacted before, or that brought what is looked at.

    What a run may bring is known from then on and comes with nothing else.
    """
    terms = settle_terms(run.setup, usual)
    brought = {at: read_brought(refs, contents) for at, refs in run.brought.items()}
    sticks = terms.attachments is Attachments.STICKY
    plain = {at: one for at, (one, warnings) in brought.items() if not sticks and not warnings and _knows(one)}
    whole = TurnRun(terms, run.names, run.texts, run.placements, plain)
    compacted = [at for at, name in enumerate(run.names[::2]) if name in before] if before else []
    start = 0
    for at in sorted({*(brought.keys() - plain.keys()), *compacted}):
        part = whole.part(start, at)
        if part is not None:
            yield part
        attached, warnings = brought.get(at, ((), ()))
        events = before.get(run.names[2 * at], ())
        yield replace(whole.turn(at), attached=attached, warnings=warnings, receipts=read_receipts(events, contents))
        start = at + 1
    part = whole.part(start, None) if start else whole
    if part is not None:
        yield part


def _knows(attached: Sequence[Artifact]) -> bool:
    """Whether all of it is known once its turn is over, and brings no pictures."""
    return all(promotes(one) and not one.images for one in attached)


def read_rounds(told: Told, contents: Contents) -> tuple[ToolRound, ...]:
    """A turn's rounds of tools, one that waits for its results included; what was erased of them says so."""
    node, rounds = (told.message, told.open) if told.reply is None else (told.reply, told.reply.rounds)
    try:
        left = _without(node.erased, contents) if node.erased else contents
        return tuple(
            # An id that follows from what is said need not be derived here.
            read_round(one, left, names=name_round(told.message.id, at, one) if node.erased or one.names else ())
            for at, one in enumerate(rounds)
        )
    except UNREADABLE as error:
        raise damaged(f"The message {node.id}", error) from error


def read_pending(told: Told, contents: Contents) -> Reply | None:
    """The answer of an open turn whose calls wait for their outputs."""
    waiting = told.pending
    if waiting is None:
        return None
    try:
        erased = told.message.erased
        return read_waiting(waiting, _without(erased, contents) if erased else contents)
    except UNREADABLE as error:
        raise damaged(f"The message {told.message.id}", error) from error


def read_calls(told: Told) -> tuple[Call, ...]:
    """The model calls that a turn took so far: those of its tool rounds, then those that gave its reply."""
    node = told.message if told.reply is None else told.reply
    rounds = told.open if told.reply is None else told.reply.rounds
    own = node.event.calls if isinstance(node.event, ReplyEvent) else ()
    try:
        return tuple(map(read_call, (*(call for one in rounds for call in one.made), *own)))
    except UNREADABLE as error:
        raise damaged(f"The message {node.id}", error) from error


def read_all_calls(
    told: Sequence[Told], nodes: Iterable[Node], asides: Mapping[str, tuple[AsideEvent, ...]]
) -> list[tuple[Call, ...]]:
    """For each turn of a branch the model calls made for its question, those of answers on other branches first.

    Before each answer come the asides on the way to it. Those after the last message are told with the last turn, as
    long as there is no next one.
    """
    replies: dict[str, list[Node]] = {turn.message.id: [] for turn in told}
    for node in nodes:
        if isinstance(node.event, ReplyEvent) and node.parent in replies:
            replies[node.parent].append(node)
    on_the_way = list_asides(told, asides)
    calls: list[tuple[Call, ...]] = []
    for turn in told:
        chosen = None if turn.reply is None else turn.reply.id
        others = sorted((one for one in replies[turn.message.id] if one.id != chosen), key=lambda one: one.number)
        # An answer that was kept aside and the empty one beside it have their rounds in common, made once.
        seen = [turn.rounds]
        made: list[Call] = []
        for one in others:
            bare = replace(one, rounds=()) if one.rounds in seen else one
            seen.append(one.rounds)
            made += (*check_asides(one.asides), *read_calls(Told(message=turn.message, reply=bare)))
        calls.append((*made, *check_asides(on_the_way[turn.message.id]), *read_calls(turn)))
    if calls and told[-1].reply is not None:
        calls[-1] = (*calls[-1], *check_asides(asides.get(told[-1].reply.id, ())))
    return calls


def list_asides(
    told: Sequence[Told], asides: Mapping[str, tuple[AsideEvent, ...]]
) -> dict[str, tuple[AsideEvent, ...]]:
    """By each question of a branch the asides on the way to its answer; ``asides`` are those that no reply has."""
    found: dict[str, tuple[AsideEvent, ...]] = {}
    before = ""
    for turn in told:
        question, reply = turn.message.id, turn.reply
        found[question] = (*asides.get(before, ()), *(reply.asides if reply else ()), *asides.get(question, ()))
        before = question if reply is None else reply.id
    return found


def check_asides(events: Sequence[AsideEvent]) -> tuple[Call, ...]:
    """Asides as the calls that they were; raises for what nobody could read."""
    try:
        return read_asides(events)
    except UNREADABLE as error:
        raise damaged("A call on the way to an answer", error) from error


def committed_hashes(committed: CompactionsInForce) -> tuple[str, ...]:
    """The hashes of the texts that a branch's compactions put in place of messages."""
    return tuple(dict.fromkeys(name for event in committed.events for name in event.hashes()))


def read_receipts(events: Iterable[CompactionEvent], contents: Contents) -> tuple[Receipt, ...]:
    """Receipts with the texts that stand in for what they took out."""
    try:
        return tuple(read_receipt(event, contents) for event in events)
    except UNREADABLE as error:
        raise damaged("A compaction", error) from error


def read_message(node: Node, contents: Contents, *, usual: Terms, reply: Node | None = None) -> Turn:
    """The turn a message was asked with, and answered with a reply."""
    question = node.event
    if isinstance(question, ReplyEvent):
        raise damaged(f"The message {node.id}", ValueError("it is a reply"))
    said = reply.event if reply is not None and isinstance(reply.event, ReplyEvent) else None
    try:
        left = _without(node.erased, contents) if node.erased else contents
        return read_turn(question, left, usual=usual, reply=said)
    except UNREADABLE as error:
        raise damaged(f"The message {node.id}", error) from error


def check_node(node: Node) -> None:
    """Read everything that a message says but for its contents; raises for what nobody could go on from."""
    if isinstance(node.event, ReplyEvent):
        read_calls(Told(message=node, reply=node))
        check_asides(node.asides)
    else:
        read_message(node, {}, usual=_USUAL)
    read_time(node)


def read_time(node: Node) -> datetime | None:
    """When a message was said, if that was written down."""
    try:
        return datetime.fromisoformat(node.at) if node.at else None
    except ValueError as error:
        raise damaged(f"The time of the message {node.id}", error) from error


def _without(erased: tuple[str, ...], contents: Contents) -> Contents:
    """The contents that are left; the same content attached again is not that of a message it was erased from."""
    return {name: data for name, data in contents.items() if name not in erased}
