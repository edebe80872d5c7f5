"""A conversation that lasts: every turn, reply and change of branch is an event in a store before it counts."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from threading import RLock

from lamella.core.log.branch import committed_hashes, path_hashes, read_message, read_pending, read_receipts
from lamella.core.log.call import Cause
from lamella.core.log.compactions import NONE_IN_FORCE, CompactionsInForce
from lamella.core.log.events.changes import DeleteEvent, ForkEvent, RenameEvent, SwitchEvent
from lamella.core.log.events.codec import write_event
from lamella.core.log.events.compaction import UndoEvent
from lamella.core.log.events.message import NOTHING_SET, MessageEvent
from lamella.core.log.nodes import Told, name_messages
from lamella.core.log.receipt import Receipt
from lamella.core.log.records import Written
from lamella.core.log.terms import Rewrite, Terms
from lamella.core.messages.delta import Reply, ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.core.prompt.movement import find_movement
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.ask import Ask, ask_again
from lamella.engine.dialogue.dialogue import Dialogue
from lamella.engine.dialogue.proposal import Proposal
from lamella.engine.dialogue.reasons import Reason
from lamella.engine.dialogue.recalling import Recaller
from lamella.engine.dialogue.turn import TurnView, no_model
from lamella.engine.keeping.backend import Backend
from lamella.engine.keeping.branch.past import BranchReader, find_state
from lamella.engine.keeping.checkpoints.earlier import NOTHING_KEPT, KeptBranch
from lamella.engine.keeping.commands.asides import AccountedChat
from lamella.engine.keeping.commands.chat import CommandedChat
from lamella.engine.keeping.commands.planning import PlannedChat
from lamella.engine.keeping.commands.preparing import PreparedChat
from lamella.engine.keeping.commands.rules import RuledChat
from lamella.engine.keeping.journal import ChatJournal, StoredLog
from lamella.engine.keeping.last_turn import find_lasting, find_model, find_sent, left_path, name_empty
from lamella.engine.keeping.lasting import ChatSettings
from lamella.engine.keeping.messages import find_erased, miss_message, name_question
from lamella.engine.keeping.originals.chat import RecallingChat
from lamella.engine.keeping.titles import tell_title
from lamella.engine.locking import one_at_a_time
from lamella.engine.memory import MemoryWatch
from lamella.engine.stages.kept import StagedChat


@one_at_a_time(except_for=("turns", "branches", "model_for"), properties=("calls", "standing"))
class StoredChat(StagedChat, CommandedChat, RuledChat, PlannedChat, AccountedChat, PreparedChat, RecallingChat):
    """One conversation in a store. Opening it reads the log once; the last epoch is laid out on the first turn.

    Settings given by name are written down with the next event, so that the conversation goes on under them.
    """

    def __init__(self, backend: Backend, conversation: str, settings: Mapping[str, object] | None = None) -> None:
        self.lock = RLock()
        self._backend = backend
        self._kept = StoredLog(backend, conversation)
        self._settings = ChatSettings(backend.configure, settings or {})
        self._dialogue: Dialogue | None = None
        self._recaller = Recaller()
        self._memory = None if backend.memory is None else MemoryWatch(backend.memory, reopens=backend.reopens)
        self._take_up()

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings of this conversation by name, written down or not yet."""
        return self._settings.listed(self._log)

    def set(self, settings: Mapping[str, object]) -> None:
        """Settings by name, in force from now on; if one of them is refused none is."""
        self._configured = self._settings.set(settings, self._log)
        self._dialogue = None

    @property
    def id(self) -> str:
        """The key, which is nobody else's, ever."""
        return self._log.conversation

    @property
    def name(self) -> str:
        """What people call it in this store."""
        return self._kept.name

    @property
    def title(self) -> str:
        return tell_title(self._log)

    @property
    def head(self) -> str:
        """The id of the active branch's last message."""
        return self._log.head

    @property
    def version(self) -> int:
        return self._log.version

    def turns(self, head: str | None = None) -> Sequence[Told]:
        """The turns of a branch as they were said, by default of the active one."""
        if head is not None and not (isinstance(head, str) and head in self._log.nodes):
            raise miss_message(self._log, str(head), name=self.name)
        return self._log.path(head)

    def branches(self) -> Sequence[str]:
        """Every branch by its last message."""
        return self._log.branches()

    def ask(self, asked: Ask, *, at: datetime | None = None) -> TurnView:
        """The next turn, written down. A conflict with another writer changes nothing: ``reload`` and ask again."""
        self._book.begin()
        dialogue = self._next_dialogue()
        turn = dialogue.ask(self._with_lasting(asked), at=at, rewritten=self._log.rewritten)
        self._dialogue, self._settings.changed = dialogue, {}
        self._take_up_memory(due=False)
        return turn

    def _next_dialogue(self) -> Dialogue:
        """What asks next. An open turn is left with the empty reply it had before: it may be compacted after that."""
        return self._go_on_after(self._log.head) if self._is_left else self._running()

    @property
    def _is_left(self) -> bool:
        """Whether the last message is a question that is open although it was left with an empty reply before."""
        nodes, head = self._log.nodes, self._log.head
        return head in nodes and isinstance(nodes[head].event, MessageEvent) and name_empty(self._log, head) in nodes

    def _go_on_after(self, message: str, *, edits: str | None = None) -> Dialogue:
        """What asks after a message; a question that has its empty reply already is left with that, and its rounds."""
        leaves = message if name_empty(self._log, message) in self._log.nodes else None
        return self._resume(left_path(self._log, message), edits=edits, leaves=leaves)

    def _stop(self, empty: str, *, at: datetime | None) -> None:
        """A turn that waits, and whose empty reply this would be, is over with it."""
        if self._log.head and empty == name_empty(self._log, self._log.head):
            self._running().stop_waiting(at=at)
            # The branch of an empty reply that was there may have been compacted after it.
            self._dialogue = None

    def _with_lasting(self, asked: Ask) -> Ask:
        """What is asked, with what waits for it, under what holds although no turn of the branch says so."""
        asked = self._take_along(asked)
        left = find_lasting(self._log) if self._is_left else self._log.left
        if self._settings.changed or not self._log.head or left is not NOTHING_SET:
            asked = self._settings.hold(asked, left, begins=not self._log.head)
        model = asked.model or self._chosen_model() or left.model or self._usual_model(self._running())
        return asked if model == asked.model else replace(asked, model=model)

    def _chosen_model(self) -> str | None:
        """The model that settings name, if they were changed to it since the last turn."""
        return self._configured.model if self._log.chose_model or "model" in self._settings.changed else None

    def reply(self, given: str | Answer, *, at: datetime | None = None) -> Reply:
        """What the model answered to the turn asked last, or to the one it names, written down.

        If the conversation went on meanwhile, it is kept on a branch of its own, which the error names.
        """
        before = len(self._log.nodes)
        question = given.message if isinstance(given, Answer) else None
        # Asked by this very chat, which went on before the answer came.
        left = question is not None and question != self._log.head
        asked = self._resume(self._log.path(question)) if left else self._running()
        reply = asked.reply(given, at=at)
        if len(self._log.nodes) == before and not reply.calls:
            # The same answer once more leads back to the branch it is on, with what was compacted after it.
            self._dialogue = None
        return reply

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The calls of the last answer that wait for what they give."""
        return self._running().calls

    def give(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> TurnView:
        """What the calls of the last answer gave, written down; the same turn, to be sent on."""
        return self._running().give(outputs, at=at)

    def read_answer(self, answer: object) -> Answer:
        """What a model answered, from the object that a provider's SDK gave."""
        return self._running().read_answer(answer)

    def waiting(self) -> TurnView | None:
        """The turn that waits for its answer, if one does, made smaller where it no longer fits."""
        return self._running().waiting(at=self._backend.clock.now())

    def regenerate(
        self, message: str | None = None, *, model: str | None = None, at: datetime | None = None
    ) -> TurnView:
        """Open a question again, by default the last one; the next reply starts a branch of its own.

        Rounds of tools that were under way are given up: it is asked from its start. Another model is asked anew, and
        so is one whose instructions, temperature or effort were set since.
        """
        question = name_question(self._log, message or self._log.head, name=self.name)
        if question != self._log.head or self._running().is_in_round:
            self._write(write_event(SwitchEvent(head=question), at=self._moment(at)))
        dialogue = self._running()
        if not dialogue.waits or dialogue.last is None:
            raise miss_message(self._log, question, name=self.name)
        model = model or self._usual_model(dialogue)
        if model not in (None, dialogue.model) or self._settings.asks_otherwise(dialogue.last):
            return self.edit(question, None, model=model, at=at)
        rewritten = self._log.rewritten
        before = self._sent_last() if rewritten or self._log.undone else dialogue.last
        turn = dialogue.waiting(at=at or self._backend.clock.now())
        assert turn is not None, "it waits, as was just seen"
        if turn.prefix.movement.cause is not Cause.RENDERER_CHANGED:
            movement = find_movement(before, replace(turn.envelope.prompt, rewritten=rewritten))
            turn.page.entry = replace(turn.ledger, prefix=replace(turn.prefix, movement=movement, triggered=True))
        return turn

    def edit(self, message: str, text: str | None, *, model: str | None = None, at: datetime | None = None) -> TurnView:
        """Ask another text in place of a message, or its own again, with its attachments; the old branch stays."""
        node = self._log.find_question(message)
        if node is None:
            raise miss_message(self._log, message, name=self.name)
        self._book.begin()
        contents = self._contents(path_hashes([Told(message=node, reply=None)]))
        original = read_message(node, contents, usual=self._configured.terms)
        dialogue = self._go_on_after(node.parent, edits=message)
        system = {**self._settings.repeat(original.system), **self._render_stage(node.parent)}
        model = model or self._chosen_model() or original.model or self._usual_model(dialogue)
        asked = ask_again(original, text=text, model=model, system=system)
        turn = dialogue.ask(asked, at=at, rewritten=Rewrite.HISTORY_EDITED)
        self._dialogue, self._settings.changed = dialogue, {}
        return turn

    def delete(self, message: str, *, at: datetime | None = None) -> None:
        """Go on without a message, on a branch of its own; a question goes with its answer."""
        if message not in name_messages(self._log.path()):
            raise miss_message(self._log, message, name=self.name)
        self._write(write_event(DeleteEvent(target=message), at=self._moment(at)))

    def fork(self, message: str, *, at: datetime | None = None) -> None:
        """Go on from an earlier message, on a branch of its own."""
        self._go(ForkEvent(head=message), at)

    def switch(self, head: str, *, at: datetime | None = None) -> None:
        """Make another branch the active one, by its last message."""
        self._go(SwitchEvent(head=head), at)

    def rename(self, title: str, *, at: datetime | None = None) -> None:
        """Give the conversation a title."""
        self._write(write_event(RenameEvent(title=title), at=self._moment(at)), title=title)

    def model_for(self, asked: Ask) -> str:
        """The model that a turn goes to: the one it names, else the one that holds."""
        left = find_lasting(self._log) if self._is_left else self._log.left
        named = asked.model or self._chosen_model() or left.model
        held = find_model(self._log.path()) if self._dialogue is None else self._dialogue.model
        model = named or held or self._configured.model
        if model is None:
            raise no_model()
        return model

    def preview(self, asked: Ask, *, at: datetime | None = None) -> TurnView:
        """The turn that asking this would give if no summary is asked for. Nothing is written down."""
        return self._next_dialogue().preview(self._with_lasting(asked), at=at, rewritten=self._log.rewritten)

    def shrink_waiting(self, *, at: datetime | None = None) -> TurnView | None:
        """The turn that waits, made smaller, written down; none if nothing in it may go."""
        return self._running().shrink_waiting(at=at)

    def make_room(self, *, at: datetime | None = None) -> Receipt | None:
        """Compact down to the target, also while a turn waits for what its calls give; none if nothing is gained."""
        receipt = self._running().make_room(at=at)
        if receipt is not None:
            self._take_up_memory(due=True)
        return receipt

    def commit(self, planned: Proposal, *, at: datetime | None = None) -> Receipt:
        """Do what was planned, written down with its receipt."""
        if isinstance(planned, Proposal) and planned.receipt is not None and planned.receipt.parent != self._log.head:
            self._stop(planned.receipt.parent, at=at)
        receipt = self._running().commit(planned, at=at)
        self._take_up_memory(due=True)
        return receipt

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> Receipt:
        """Void a compaction, by default the last, and all after it on this branch."""
        voided = self._next_dialogue().find_undone(receipt)
        self._stop(name_empty(self._log, self._log.head), at=at)
        # The next turn reads and folds nothing again; but no checkpoint may have what was compacted until now.
        dialogue, self._dialogue = self._running(), None
        self._append(write_event(UndoEvent(receipt=voided[0].id), at=self._moment(at)))
        dialogue.go_back(voided)
        self._dialogue = dialogue
        if self._log.moves_by_undo():
            dialogue.mark_undone()
        return voided[0]

    def receipts(self) -> Sequence[Receipt]:
        """The compactions in force on the active branch, oldest first."""
        committed = self._log.committed(self._log.path())
        return read_receipts(committed.events, self._contents(committed_hashes(committed)))

    def why(self, name: str) -> Reason:
        """Why an artifact or a message of the active branch is in the next request, or is not."""
        return self._running().why(name, erased=find_erased(self._log.path()), said=self._log.nodes)

    @property
    def standing(self) -> tuple[State, Terms]:
        """Where the active branch stands, and the terms that it goes on under."""
        return self._running().standing

    def reload(self) -> None:
        """Read what others wrote since."""
        self._kept.reload()
        self._take_up()

    def _take_up(self) -> None:
        """Go on from the log as it is known here."""
        self._log, self._book = self._kept.log, self._kept.book
        self._world = replace(self._backend.world, counter=self._book)
        self._configured = self._settings.read(self._log)
        self._dialogue = None

    def _go(self, event: ForkEvent | SwitchEvent, at: datetime | None) -> None:
        if event.head not in self._log.nodes:
            raise miss_message(self._log, event.head, name=self.name)
        # Going where one is changes nothing: least of all are calls given up that wait there.
        if event.head != self._log.head:
            self._write(write_event(event, at=self._moment(at)))
            self._keep_waiting(at)

    def _write(self, written: Written, *, title: str | None = None) -> None:
        self._append(written, title=title)
        self._dialogue = None

    def _append(self, written: Written, *, title: str | None = None) -> None:
        if self._settings.changed:
            written = self._settings.write(written)
        self._kept.append(written, title=title, find_state=self._find_state)
        if self._settings.changed:
            self._settings.note_written()

    def _find_state(self) -> KeptBranch:
        """What the active branch came to, as far as it is known here, for the next checkpoint."""
        if self._dialogue is None:
            return NOTHING_KEPT
        state, measure = self._dialogue.before
        return find_state(self._log, state, usual=self._configured.terms, measure=measure)

    def _running(self) -> Dialogue:
        if self._dialogue is None:
            self._dialogue = self._resume(self._log.path())
        return self._dialogue

    def _resume(self, told: Sequence[Told], *, edits: str | None = None, leaves: str | None = None) -> Dialogue:
        begin = partial(ChatJournal, self._log, append=self._append, reload=self.reload, moment=self._moment)
        journal = begin(name=self.name, edits=edits, leaves=leaves)
        dialogue = self._rebuild(told, self._log.committed(told), journal=journal)
        before = self._sent_last() if edits or self._log.rewritten or self._log.undone else None
        dialogue.go_on(before, sent=find_sent(told, self._log), uncompacted=self._sent_uncompacted)
        return dialogue

    def _sent_last(self) -> Prompt | None:
        """The request that was sent last, on whatever branch it was."""
        told = self._log.told_last()
        return self._rebuild(told, self._log.committed(told, until=self._log.last_sent[1])).last

    def _sent_uncompacted(self) -> Prompt | None:
        """The same, had nothing ever been compacted; none where nothing was."""
        return self._rebuild(self._log.told_last(), NONE_IN_FORCE).last if self._log.compactions else None

    def _rebuild(
        self, told: Sequence[Told], committed: CompactionsInForce, *, journal: ChatJournal | None = None
    ) -> Dialogue:
        """A branch as it was left, from the log and the contents it names."""
        start = None if told else self._configured.model
        usual, measure = self._configured.terms, self._book.measure(find_model(told) or start)
        reader = BranchReader(self._kept, committed, usual=usual, measure=measure)
        past = reader.read(told, kept=self._kept.kept_state, find_time=self._find_time)
        waits = told[-1] if told and told[-1].pending is not None else None
        dialogue = Dialogue(
            replace(self._world, fetcher=self._find_fetcher(), recall_hints=self._configured.recall_hints),
            replace(self._with_stages(self._configured.rules, told), measure=measure),
            State(conversation=self.id, model=start),
            terms=usual,
            past=past,
            pending=None if waits is None else read_pending(waits, self._contents(path_hashes([waits]))),
            ledger=self._backend.ledger,
            journal=journal,
            recaller=self._recaller,
        )
        undone = self._log.moves_by_undo()
        if dialogue.waits and (undone or self._log.moved_by_undo(told[-1].message.id)):
            dialogue.mark_waiting_undone()
        if undone:
            dialogue.mark_undone()
        return dialogue

    def _contents(self, hashes: Sequence[str]) -> Mapping[str, bytes]:
        return self._kept.read_contents(hashes)

    def _moment(self, at: datetime | None) -> str:
        return (at or self._backend.clock.now()).astimezone(UTC).isoformat().replace("+00:00", "Z")
