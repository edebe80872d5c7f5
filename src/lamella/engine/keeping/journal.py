"""The journal of a stored conversation: turns and replies as events."""

from collections.abc import Callable, Sequence
from datetime import datetime

from lamella.core.log.call import Call
from lamella.core.log.ids import Voice, message_id, turn_id
from lamella.core.log.receipt import Receipt
from lamella.core.log.records import Written
from lamella.core.log.turn import Turn
from lamella.core.log.writing import (
    join_written,
    write_calls,
    write_message,
    write_receipt,
    write_reply,
    write_results,
)
from lamella.core.messages.delta import Reply
from lamella.core.messages.rounds import ToolOutput
from lamella.engine.dialogue.world import LeftTurn


class ChatJournal:
    """Writes down what one dialogue asks and answers.

    ``edits`` names the message that its first turn replaces, ``leaves`` one that it leaves with the empty reply again.
    """

    def __init__(
        self,
        conversation: str,
        *,
        append: Callable[[Written], None],
        moment: Callable[[datetime | None], str],
        edits: str | None = None,
        leaves: str | None = None,
    ) -> None:
        self._conversation = conversation
        self._append = append
        self._moment = moment
        self._edits = edits
        self._leaves = leaves

    def write_turn(
        self,
        turn: Turn,
        *,
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
        name = turn_id(self._conversation, parent, turn)
        parts.append(write_message(turn, message_id=name, parent=parent, at=moment, edits=self._edits))
        self._append(join_written(*parts))
        self._edits = self._leaves = None

    def write_receipt(self, receipt: Receipt, *, at: datetime | None, before: str | None = None) -> None:
        """A compaction between two turns, or before one that was asked already."""
        self._append(write_receipt(receipt, at=self._moment(at), before=before))

    def write_calls(self, reply: Reply, *, parent: str, at: datetime | None, call: Call) -> None:
        """What the model asks of its tools, with the model call that gave it."""
        self._append(write_calls(reply, parent=parent, at=self._moment(at), made=(call,)))

    def write_results(self, outputs: Sequence[ToolOutput], *, parent: str, at: datetime | None) -> None:
        """What the tools gave back."""
        self._append(write_results(outputs, parent=parent, at=self._moment(at)))

    def write_reply(self, text: str, *, parent: str, at: datetime | None, calls: Sequence[Call] = ()) -> None:
        """A reply to the turn asked last, with the model calls that gave it."""
        name = message_id(self._conversation, parent=parent, role=Voice.REPLY, text=text)
        self._append(write_reply(text, message_id=name, parent=parent, at=self._moment(at), calls=calls))
