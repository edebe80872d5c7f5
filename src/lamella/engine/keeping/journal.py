"""The journal of a stored conversation: its log as the store has it, and turns and replies written there as events."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import NoReturn

from lamella.core.log.call import Call
from lamella.core.log.events.codec import (
    join_written,
    write_calls,
    write_message,
    write_receipt,
    write_reply,
    write_results,
)
from lamella.core.log.ids import Voice, message_id
from lamella.core.log.log import Log
from lamella.core.log.receipt import Receipt
from lamella.core.log.records import Record, Written
from lamella.core.log.turn import Turn
from lamella.core.messages.delta import Reply
from lamella.core.messages.rounds import ToolOutput
from lamella.core.values import replace
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.world import LeftTurn
from lamella.engine.keeping.backend import Backend
from lamella.engine.keeping.checkpoints.checkpoints import Checkpoints
from lamella.engine.keeping.checkpoints.earlier import NOTHING_KEPT, KeptBranch
from lamella.engine.keeping.counting import CountingBook
from lamella.engine.keeping.titles import read_title
from lamella.errors import AnswerAsideError, ConflictError, StoreDamagedError


class StoredLog:
    """The log of one conversation, the book that counts its texts, and its checkpoints, one after so many events.

    It is found by its name or key; one that is not there begins under that name, with a key that is made for it.
    """

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self._store = backend.store
        found = self._store.find_conversation(name)
        self.name, key = (name, backend.make_key(name)) if found is None else (found.name, found.conversation)
        if found is None and key != name:
            # It was made just now: there is nothing of it to be read.
            self._begin(key)
        else:
            self._open(key)
            self._take(self._store.load(key, after=self.log.version))

    def _begin(self, key: str) -> None:
        self._checkpoints = Checkpoints(self._store, key, every=self._backend.checkpoint_every)
        self.log, self._folds = Log(key), False
        # What the branch that was active in the newest checkpoint came to.
        self.kept_state = b""
        self.book = CountingBook(self._backend.world.counter)

    def _open(self, key: str) -> None:
        self._begin(key)
        restored = self._checkpoints.restore()
        self.log, self.kept_state = restored.log, restored.state
        self.book.begin_with(restored.counts, restored.said)

    def reload(self) -> None:
        """Read what others wrote since. One that has not begun is theirs who began it under its name first."""
        if self._folds:
            self._open(self.log.conversation)
        if not self.log.version:
            begun = self._store.find_conversation(self.name)
            if begun is not None and begun.conversation != self.log.conversation:
                self._open(begun.conversation)
        self._take(self._store.load(self.log.conversation, after=self.log.version))

    def append(
        self,
        written: Written,
        *,
        title: str | None = None,
        find_state: Callable[[], KeptBranch] = lambda: NOTHING_KEPT,
    ) -> None:
        """Write events down, the last of them with what was counted for them.

        ``find_state`` tells what the active branch comes to, as far as it is known, for the checkpoint that may be due.
        """
        if title is None and not self.log.nodes and not self.log.title:
            title = read_title(written.records)
        counts = self.book.write()
        last = replace(written.records[-1], counts=counts)
        counted = replace(written, records=(*written.records[:-1], last))
        self._store.append(self.log.conversation, counted, expected=self.log.version, title=title, name=self.name)
        self._fold(counted.records)
        self.book.keep(counts)
        self._checkpoints.take(counted.records)
        self._checkpoints.keep(self.log, find_state)

    def read_contents(self, hashes: Sequence[str]) -> Mapping[str, bytes]:
        """The contents of these hashes that the conversation holds."""
        return self._store.read_contents(self.log.conversation, hashes) if hashes else {}

    def take_blocks(self) -> Mapping[str, str]:
        """The blocks that came with its checkpoints, once: whoever opened a conversation has them from then on."""
        blocks, self._checkpoints.blocks = self._checkpoints.blocks, {}
        return blocks

    def read_texts(self, hashes: Collection[str]) -> Mapping[str, str]:
        """The texts of contents that the conversation held when it was read; an error where one is gone since."""
        key, known = self.log.conversation, self.log.version
        found = self._store.read_contents(key, list(hashes))
        missing = next((name for name in hashes if name not in found), None)
        if missing is not None:
            more = len(self._store.load(key, after=known))
            if more:
                raise ConflictError(conversation=self.name, expected=known, found=known + more)
            raise StoreDamagedError(
                f"The content {missing} of {self.name} is missing.",
                hint=lambda door: f"Use {door.verify_store()} to see what is damaged.",
            )
        return {name: data.decode() for name, data in found.items()}

    def append_beside(self, written: Written) -> None:
        """Write down what stands in nobody's way, after whatever others wrote, which is not looked at here."""
        key, known = self.log.conversation, self.log.version
        while True:
            behind = len(self._store.load(key, after=known))
            if not known + behind:
                # Somebody began under its name: there is no conversation of this key to write it to.
                return
            try:
                self._store.append(key, written, expected=known + behind)
            except ConflictError:
                continue
            return

    def _fold(self, records: Sequence[Record]) -> None:
        # To fold an event may be to look at an old message, which is read from the store then. Should that fail in the
        # middle of it, nobody goes on with what is left.
        self._folds = True
        self.log.extend(records)
        self._folds = False

    def _take(self, records: Sequence[Record]) -> None:
        self._fold(records)
        self.book.learn([record.counts for record in records])
        self._checkpoints.take(records)


class ChatJournal:
    """Writes down what one dialogue asks and answers; people call its conversation by ``name``.

    ``edits`` names the message that its first turn replaces, ``leaves`` one that it leaves with the empty reply again.
    """

    def __init__(
        self,
        log: Log,
        *,
        name: str,
        append: Callable[[Written], None],
        reload: Callable[[], None],
        moment: Callable[[datetime | None], str],
        edits: str | None = None,
        leaves: str | None = None,
    ) -> None:
        self._log = log
        self._name = name
        self._append = append
        self._reload = reload
        self._moment = moment
        self._edits = edits
        self._leaves = leaves

    def write_turn(
        self,
        turn: Turn,
        *,
        message: str,
        parent: str,
        left: LeftTurn | None,
        receipt: Receipt | None,
        at: datetime | None,
    ) -> None:
        """A turn in one append with what it needs: the empty reply to one never answered, and a compaction.

        Calls of that one which nobody made are told so before.
        """
        moment = self._moment(at)
        parts: list[Written] = []
        answers = left.id if left is not None else self._leaves
        if left is not None and left.skipped:
            parts.append(write_results(left.skipped, parent=left.id, at=moment))
        if answers is not None:
            parts.append(write_reply("", message_id=parent, parent=answers, at=moment))
        if receipt is not None:
            parts.append(write_receipt(receipt, at=moment))
        parts.append(write_message(turn, message_id=message, parent=parent, at=moment, edits=self._edits))
        self._append(join_written(*parts))
        self._edits = self._leaves = None

    def write_receipt(self, receipt: Receipt, *, at: datetime | None, before: str | None = None) -> None:
        """A compaction between two turns, or before one that was asked already."""
        self._append(write_receipt(receipt, at=self._moment(at), before=before))

    def write_calls(self, reply: Reply, *, parent: str, at: datetime | None, call: Call) -> None:
        """What the model asks of its tools, with the model call that gave it; aside, what it said before that."""
        moment = self._moment(at)
        written = write_calls(reply, parent=parent, at=moment, made=(call,))
        if not self._append_open(written, parent):
            said = message_id(self._log.conversation, parent=parent, role=Voice.REPLY, text=reply.text)
            self._keep_aside(Answer(reply=reply), message=said, parent=parent, at=moment, calls=(call,))

    def write_results(self, outputs: Sequence[ToolOutput], *, parent: str, at: datetime | None) -> None:
        """What the tools gave back."""
        known = self._log.version
        if not self._append_open(write_results(outputs, parent=parent, at=self._moment(at)), parent):
            raise ConflictError(conversation=self._name, expected=known, found=self._log.version)

    def write_reply(
        self, given: Answer, *, message: str, parent: str, at: datetime | None, calls: Sequence[Call] = ()
    ) -> None:
        """A reply to the turn asked last, with the model calls that gave it."""
        moment, text, sources = self._moment(at), given.reply.text, given.sources
        written = write_reply(text, message_id=message, parent=parent, at=moment, calls=calls, sources=sources)
        if not self._append_open(written, parent):
            self._keep_aside(given, message=message, parent=parent, at=moment, calls=calls)

    def _append_open(self, written: Written, question: str) -> bool:
        """Append what answers a question, as long as that is open as it was: what others wrote beside it is no matter.

        False if it is not open any more. Then what was written would be of another turn, or none that can be read.
        """
        rounds = self._log.rounds.get(question)
        while self._log.head == question and self._log.rounds.get(question) == rounds:
            try:
                self._append(written)
            except ConflictError:
                self._reload()
            else:
                return True
        return False

    def _keep_aside(self, given: Answer, *, message: str, parent: str, at: str, calls: Sequence[Call]) -> NoReturn:
        """Keep an answer on a branch of its question, and say where; the conversation goes on where others left it."""
        text, sources = given.reply.text, given.sources
        written = write_reply(text, message_id=message, parent=parent, at=at, calls=calls, aside=True, sources=sources)
        while True:
            try:
                self._append(written)
            except ConflictError:
                self._reload()
            else:
                raise AnswerAsideError(conversation=self._name, answer=message)
