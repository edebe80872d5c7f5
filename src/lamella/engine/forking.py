"""Forking into a new conversation: a branch up to a message, told again under another name."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from lamella.core.log.branch import (
    committed_hashes,
    path_hashes,
    read_calls,
    read_receipts,
    read_time,
    read_turns,
)
from lamella.core.log.events import write_event
from lamella.core.log.ids import Voice, message_id, round_result_id, turn_id
from lamella.core.log.nodes import Told
from lamella.core.log.receipt import Receipt, make_receipt
from lamella.core.log.receipts import join_written
from lamella.core.log.records import EventKind, Written
from lamella.core.log.turn import Turn
from lamella.core.values import replace
from lamella.engine.journal import ChatJournal
from lamella.engine.keeping import Keeper
from lamella.engine.stored import Desk
from lamella.errors import CallError


def fork_into(desk: Desk, conversation: str, message: str, name: str) -> None:
    """Copy a branch up to a message into a new conversation, with its settings, title and what was compacted on it.

    Messages have ids of their own there: an id follows from the conversation, too.
    """
    log = Keeper(desk.store, desk.clock).load_log(conversation)
    if message not in log.nodes:
        raise CallError(
            f"{conversation} has no message {message!r}.", hint="See its messages with `lamella chats show`."
        )
    if desk.store.load(name):
        raise CallError(f"There is a conversation {name!r} already.", hint="Choose another name for the new one.")
    told = log.path(message)
    committed = log.committed(told)
    hashes = (*path_hashes(told), *committed_hashes(committed))
    contents = desk.store.read_contents(conversation, hashes) if hashes else {}
    turns = read_turns(told, contents, committed, usual=desk.configure(log.settings).terms)
    copy = _Copy(conversation, name)
    copy.begin(log.settings, title=log.title, at=log.created)
    for turn, one in zip(turns, told, strict=True):
        copy.tell(turn, one, last=one is told[-1])
    copy.compact(read_receipts(committed.since, contents))
    desk.store.append(name, join_written(*copy.parts), expected=0, title=log.title or None)


class _Copy:
    """A conversation under another name, as the events that are written for it."""

    def __init__(self, conversation: str, name: str) -> None:
        self.parts: list[Written] = []
        self._conversation = conversation
        self._name = name
        self._head = ""
        # What has another id there: messages, replies, and what tools gave.
        self._ids: dict[str, str] = {}
        self._journal = ChatJournal(name, append=self.parts.append, moment=_write_time)

    def begin(self, settings: Mapping[str, object], *, title: str, at: str) -> None:
        """What holds before anything is said."""
        if settings:
            self.parts.append(write_event(EventKind.SETTINGS, at, **settings))
        if title:
            self.parts.append(write_event(EventKind.RENAME, at, title=title))

    def tell(self, turn: Turn, told: Told, *, last: bool) -> None:
        """One turn with what was compacted before it; one that went on without an answer gets the empty one."""
        self.compact(turn.receipts)
        asked = replace(turn, id=None, rewritten=None, receipts=(), rounds=(), reply=None, reply_id=None)
        parent, at = self._head, read_time(told.message)
        self._head = turn_id(self._name, parent, asked)
        self._ids[told.message.id] = self._head
        self._name_results(turn, told.message.id)
        self._journal.write_turn(asked, parent=parent, left=None, receipt=None, at=at)
        if told.reply is not None or not last:
            self._answer(told, at=at)

    def _answer(self, told: Told, *, at: datetime | None) -> None:
        reply, question = told.reply, self._head
        text = "" if reply is None else reply.text
        self._journal.write_reply(
            text,
            parent=question,
            at=at if reply is None else read_time(reply),
            calls=() if reply is None else read_calls(reply),
        )
        self._head = message_id(self._name, parent=question, role=Voice.REPLY, text=text)
        old = message_id(self._conversation, parent=told.message.id, role=Voice.REPLY, text=text)
        self._ids[old if reply is None else reply.id] = self._head

    def _name_results(self, turn: Turn, old: str) -> None:
        for number, one in enumerate(turn.rounds):
            calls = {call.id: call for call in one.calls}
            for at, output in enumerate(one.outputs):
                there, here = (
                    round_result_id(name, place=(number, at), call=calls[output.call], output=output)
                    for name in (old, self._head)
                )
                self._ids[there] = here

    def compact(self, receipts: Sequence[Receipt]) -> None:
        """Compactions after what was told so far."""
        for receipt in receipts:
            steps = tuple(
                replace(step, removed=tuple(self._ids.get(one, one) for one in step.removed)) for step in receipt.steps
            )
            renamed = make_receipt(
                self._name,
                parent=self._head,
                steps=steps,
                skipped=receipt.skipped,
                tokens=(receipt.tokens_before, receipt.tokens_after),
                target=receipt.target,
                automatic=receipt.automatic,
            )
            self._journal.write_receipt(renamed, at=None)


def _write_time(at: datetime | None) -> str:
    """When something was said; nothing where nobody knows."""
    return "" if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")
