"""Forking into a new conversation: a branch up to a message, told again under another name."""

from collections.abc import Iterable, Mapping, Sequence

from lamella.core.log.branch import committed_hashes, list_asides, path_hashes, read_pending, read_receipts, read_turns
from lamella.core.log.events.aside import AsideEvent
from lamella.core.log.events.call import read_call
from lamella.core.log.events.changes import ForkEvent, RenameEvent, SettingsEvent, SwitchEvent
from lamella.core.log.events.codec import (
    join_written,
    write_calls,
    write_event,
    write_message,
    write_receipt,
    write_reply,
    write_results,
)
from lamella.core.log.events.message import NOTHING_SET, TurnSetup
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.stage import StageEvent
from lamella.core.log.ids import Voice, message_id, turn_id
from lamella.core.log.log import Log
from lamella.core.log.nodes import Told, name_messages, name_round
from lamella.core.log.receipt import Receipt, make_receipt
from lamella.core.log.records import Written
from lamella.core.log.turn import Turn
from lamella.core.messages.delta import Reply
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.waiting import does_nothing
from lamella.engine.dialogue.rounds import reopen_round
from lamella.engine.keeping.backend import Backend
from lamella.engine.keeping.commands.events import list_command_hashes, read_commands, write_command
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.last_turn import left_path
from lamella.engine.keeping.lasting import keep_layout
from lamella.engine.keeping.titles import read_title
from lamella.errors import CallError


def fork_into(backend: Backend, conversation: str, message: str, *, name: str) -> None:
    """Copy a branch up to a message into a new conversation, with its settings, title and what was compacted on it.

    Messages have ids of their own there: an id follows from the conversation, too. Nothing that is sent names them.
    """
    conversations = Conversations(backend.store, backend.clock)
    log = conversations.load_log_with(conversation, message)
    if backend.store.find_conversation(name) is not None:
        raise CallError(f"There is a conversation {name!r} already.", hint="Choose another name for the new one.")
    commands = log.commands if message == log.head else ()
    if message != log.head:
        log.extend(write_event(ForkEvent(head=message), at=log.created).records)
    told, branch = log.path(), left_path(log, message)
    committed = log.committed(branch)
    hashes = (*path_hashes((*branch, told[-1])), *committed_hashes(committed), *list_command_hashes(commands))
    contents = backend.store.read_contents(conversation, hashes) if hashes else {}
    usual = keep_layout(backend.configure(log.settings), log).terms
    turns = read_turns(branch, contents, committed, usual=usual)
    key = backend.make_key(name)
    copy = _Copy(conversation, key)
    copy.begin(log.settings, at=log.created)
    staged = [event for _, event in log.staged(branch)]
    copy.stage(staged, after=("",), at=log.created)
    asides = list_asides(branch, log.asides)
    for turn, one in zip(turns, branch, strict=True):
        copy.tell(turn, one, asides=asides[one.message.id], last=one is branch[-1])
        copy.stage(staged, after=name_messages([one]), at=one.message.at)
    copy.compact(read_receipts(committed.since, contents), at=told[-1].message.at)
    if told[-1].reply is None and branch[-1].reply is not None:
        (again,) = read_turns(told[-1:], contents, usual=usual)
        copy.reopen(again, told[-1], left=branch[-1])
    copy.wait(read_pending(told[-1], contents), told[-1])
    copy.note_asides(log.asides.get(message, ()) if told[-1].reply is not None else (), at=told[-1].message.at)
    copy.command(read_commands(commands, contents), at=conversations.moment())
    copy.end(log, at=conversations.moment())
    written = join_written(*copy.parts)
    backend.store.append(key, written, expected=0, title=read_title(written.records), name=name)


class _Copy:
    """A conversation under another key, as the events that are written for it."""

    def __init__(self, conversation: str, key: str) -> None:
        self.parts: list[Written] = []
        self._conversation = conversation
        self._key = key
        self._head = ""
        # What has another id there: messages and replies.
        self._ids: dict[str, str] = {}

    def begin(self, settings: Mapping[str, object], *, at: str) -> None:
        """What holds before anything is said."""
        if settings:
            self.parts.append(write_event(SettingsEvent(values=dict(settings)), at=at))

    def end(self, log: Log, *, at: str) -> None:
        """What holds for the next turn, and the title, given when the copy is made: a list shows the last time."""
        if log.chose_model:
            self.parts.append(write_event(SettingsEvent(values={"model": log.settings["model"]}), at=at))
        if log.left != NOTHING_SET:
            self.parts.append(write_event(ForkEvent(head=self._head, left=_without_notes(log.left)), at=at))
        self.parts.append(write_event(RenameEvent(title=log.title), at=at))

    def stage(self, events: Iterable[StageEvent], *, after: Sequence[str], at: str) -> None:
        """What was done about stages after these messages, which are told already."""
        self.parts += [write_event(replace(one, after=self._head), at=at) for one in events if one.after in after]

    def command(self, waits: Ask, *, at: str) -> None:
        """What waits for the next question waits for it in the copy as well."""
        pin, unpin = (tuple(self._ids.get(name, name) for name in names) for names in (waits.pin, waits.unpin))
        if not does_nothing(waits):
            self.parts.append(write_command(replace(waits, pin=pin, unpin=unpin), (), at=at))

    def tell(self, turn: Turn, told: Told, *, asides: Iterable[AsideEvent], last: bool) -> None:
        """One turn with what was compacted before it; one that went on without an answer gets the empty one."""
        parent, at = self._head, told.message.at
        self.compact(turn.receipts, at=at)
        asked = self._rename(turn)
        self._head = turn_id(self._key, parent, asked)
        self._ids[told.message.id] = self._head
        self.parts.append(write_message(asked, message_id=self._head, parent=parent, at=at))
        self.note_asides(asides, at=at)
        self._tell_rounds(turn, told)
        if told.reply is not None or not last:
            self._answer(told)

    def note_asides(self, asides: Iterable[AsideEvent], *, at: str) -> None:
        """Model calls on the way to the answer to what was told last, or to what is asked next."""
        self.parts += [write_event(replace(one, parent=self._head), at=at) for one in asides]

    def _rename(self, turn: Turn) -> Turn:
        """A turn with no id yet, and with the messages that it pins by their ids here."""
        pinned = None if turn.pinned is None else tuple(self._ids.get(name, name) for name in turn.pinned)
        return replace(turn, id=None, pinned=pinned)

    def reopen(self, turn: Turn, told: Told, *, left: Told) -> None:
        """The question that was told last with the empty answer it was left with, open once more as it is now."""
        question = self._ids[told.message.id]
        if told.message.event == left.message.event:
            self.parts.append(write_event(SwitchEvent(head=question), at=told.message.at))
        else:
            asked, parent = self._rename(turn), self._ids.get(told.message.parent, "")
            self.parts.append(write_message(asked, message_id=question, parent=parent, at=told.message.at))
        self._head = question
        self._tell_rounds(turn, told)

    def wait(self, pending: Reply | None, told: Told) -> None:
        """Calls of the last turn that nobody has answered yet: they wait in the copy as well."""
        if pending is not None and told.pending is not None:
            made = map(read_call, told.pending.made)
            self.parts.append(write_calls(pending, parent=self._head, at=told.message.at, made=made))

    def _tell_rounds(self, turn: Turn, told: Told) -> None:
        """Rounds of tools; their results keep their ids, since what is sent names them by those."""
        for number, (one, stored) in enumerate(zip(turn.rounds, told.rounds, strict=True)):
            at = told.message.at
            made = map(read_call, stored.made)
            self.parts.append(write_calls(reopen_round(one), parent=self._head, at=at, made=made))
            names = name_round(told.message.id, number, stored)
            outputs = [replace(output, id=name) for output, name in zip(one.outputs, names, strict=True)]
            self.parts.append(write_results(outputs, parent=self._head, at=at))

    def _answer(self, told: Told) -> None:
        reply, question = told.reply, self._head
        text, at = ("", told.message.at) if reply is None else (reply.text, reply.at)
        said = reply.event if reply is not None and isinstance(reply.event, ReplyEvent) else None
        own, sources = ((), ()) if said is None else (said.calls, said.sources)
        old = message_id(self._conversation, parent=told.message.id, role=Voice.REPLY, text="")
        self._head = message_id(self._key, parent=question, role=Voice.REPLY, text=text)
        self._ids[old if reply is None else reply.id] = self._head
        calls = map(read_call, own)
        self.parts.append(
            write_reply(text, message_id=self._head, parent=question, at=at, calls=calls, sources=sources)
        )

    def compact(self, receipts: Sequence[Receipt], *, at: str) -> None:
        """Compactions after what was told so far."""
        for receipt in receipts:
            steps = tuple(
                replace(step, removed=tuple(self._ids.get(one, one) for one in step.removed)) for step in receipt.steps
            )
            renamed = make_receipt(
                self._key,
                parent=self._head,
                steps=steps,
                skipped=receipt.skipped,
                tokens=(receipt.tokens_before, receipt.tokens_after),
                target=receipt.target,
                automatic=receipt.automatic,
                chain=receipt.chain,
                certificate=receipt.certificate,
                since=self._ids.get(receipt.since, receipt.since),
            )
            self.parts.append(write_receipt(renamed, at=at))


def _without_notes(left: TurnSetup) -> TurnSetup:
    """The same with instructions as they were typed: what drew notes in stands so once its turn is gone."""
    system = left.system
    if system is None or system.drawn is None:
        return left
    typed = replace(system, instructions=system.typed_instructions, drawn=None, inlined=())
    return replace(left, system=typed)
