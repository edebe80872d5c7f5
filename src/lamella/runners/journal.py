"""The journal of a stored conversation: turns and replies as events."""

from collections.abc import Callable
from datetime import datetime

from lamella.core.history.events import write_event, write_message
from lamella.core.history.ids import message_id, turn_id
from lamella.core.history.records import EventKind, Written
from lamella.core.history.state import OpenTurn, TurnInput
from lamella.core.layers.model import Role


class ChatJournal:
    """Writes down what one runner asks and answers. ``edits`` names the message that its first turn replaces."""

    def __init__(
        self,
        conversation: str,
        *,
        append: Callable[[Written], None],
        moment: Callable[[datetime | None], str],
        edits: str | None = None,
    ) -> None:
        self._conversation = conversation
        self._append = append
        self._moment = moment
        self._edits = edits

    def write_asked(self, turn: TurnInput, *, unanswered: OpenTurn | None, parent: str, at: datetime | None) -> None:
        """A turn; one before it that was never answered gets its empty reply in the same append."""
        moment = self._moment(at)
        name = turn_id(self._conversation, parent, turn)
        written = write_message(turn, message_id=name, parent=parent, at=moment, edits=self._edits)
        if unanswered is not None:
            empty = write_event(EventKind.REPLY, moment, id=parent, parent=unanswered.user.id, text="")
            written = Written(records=(*empty.records, *written.records), contents=written.contents)
        self._append(written)
        self._edits = None

    def write_reply(self, text: str, *, parent: str, at: datetime | None) -> None:
        """A reply to the turn asked last."""
        name = message_id(self._conversation, parent=parent, role=Role.REPLY, text=text)
        self._append(write_event(EventKind.REPLY, self._moment(at), id=name, parent=parent, text=text))
