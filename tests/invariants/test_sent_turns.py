"""Replays show what was sent: each turn of each branch has the messages that the provider received for it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.compacting import EAGER, ScriptedTurn, TightLasting, tight_stored_conversations
from tests.invariants.moves import Deed, Kept, Move
from tests.invariants.reopened_prompts import NAME
from tests.invariants.tool_rounds import call_tools

from lamella import ContextBudgetExceededError, Turn
from lamella.conversation.conversation import Conversation
from lamella.conversation.sent_turns import iter_request_problems
from lamella.conversation.turn import ModelAnswer, RequestStatus
from lamella.core.log.turn_records import TurnRecord
from lamella.core.messages import ModelReply, StopReason
from lamella.stores.memory import InMemoryStore

TRIED = settings.get_profile("invariants")


class SentRecorder(TightLasting):
    """Plays moves with tool rounds. ``sent`` has the last messages sent for each reply and each open question."""

    def __init__(self, kept: Kept, folder: Path, store: InMemoryStore, rounds: Sequence[int]) -> None:
        super().__init__(kept, folder, lambda: store, summarizer=ScriptedTurn())
        self.sent: dict[str, Turn] = {}
        self._rounds = list(rounds)
        # Questions that were opened again without being sent.
        self._opened: set[str] = set()
        self._regenerated: set[str] = set()

    def move(self, move: Move) -> None:
        before, length = self.stored.turns(), len(self.turns)
        super().move(move)
        if move.deed is Deed.DELETE:
            self._copy(before)
            if self.stored.head != _head(before):
                # A question that is open now was not sent with the history that it follows now.
                self._opened.add(self.stored.head)
        elif move.deed in (Deed.SWITCH, Deed.FORK) and self.stored.head != _head(before):
            self._opened.add(self.stored.head)
        for turn in self.turns[length:]:
            self.sent[turn.envelope.message_id] = turn
            self._opened.discard(turn.envelope.message_id)
            if move.deed in (Deed.REGENERATE, Deed.REGENERATE_ANY):
                # Without an answer, the log does not say whether it was sent again.
                self._regenerated.add(turn.envelope.message_id)
            else:
                self._regenerated.discard(turn.envelope.message_id)
        self._find_abandoned()

    def call_tools(self, conversation: Conversation, number: int) -> Turn:
        """The model calls tools, which are run."""
        return call_tools(conversation, number)

    def _do(self, deed: Deed, move: Move, at: datetime) -> Turn | None:
        conversation = self.stored
        if deed is not Deed.REPLY:
            return super()._do(deed, move, at)
        if conversation.turns() and conversation.turns()[-1].reply is None and conversation.head not in self._opened:
            try:
                for number in range(self._rounds.pop() if self._rounds else 0):
                    self.sent[conversation.head] = self.call_tools(conversation, number)
            except ContextBudgetExceededError:
                # The results are in the log, and no request was sent with them.
                self._opened.add(conversation.head)
        question = conversation.head
        if (
            conversation.turns()
            and conversation.turns()[-1].reply is None
            and question in self.sent.keys() - self._opened
        ):
            # An answer of a model: the hash of the request that it answers is stored with it.
            conversation.reply(ModelAnswer(reply=ModelReply(text=move.text, stop=StopReason.END)), at=at)
        else:
            super()._do(deed, move, at)
        if conversation.head != question and question in self.sent and question not in self._opened:
            self.sent[conversation.head] = self.sent[question]
        return None

    def _find_abandoned(self) -> None:
        """Note the requests of questions that another one followed before they were answered."""
        for record in self.stored.turns():
            question, reply = record.message.id, record.reply
            if reply is None or reply.text or reply.id in self.sent:
                continue
            if question in self.sent and question not in self._regenerated:
                self.sent[reply.id] = self.sent[question]

    def is_ambiguous(self, record: TurnRecord) -> bool:
        """Whether the question was opened again and left without an answer: the log does not say if it was sent."""
        return record.reply is None and record.message.id in self._regenerated and record.message.id != self.stored.head

    def _copy(self, before: Sequence[TurnRecord]) -> None:
        after = self.stored.turns()
        kept = list(before)
        if len(after) < len(kept):
            names = {record.message.id for record in after}
            at = next((i for i, one in enumerate(kept) if one.message.id not in names), len(kept) - 1)
            del kept[at]
        for old, new in zip(kept, after, strict=True):
            for one, copy in ((old.message, new.message), (old.reply, new.reply)):
                if one and copy and one.id != copy.id and one.id in self.sent:
                    self.sent[copy.id] = self.sent[one.id]
                for names in (self._opened, self._regenerated):
                    if one and copy and one.id in names:
                        names.add(copy.id)


def _head(records: Sequence[TurnRecord]) -> str:
    return "" if not records else (records[-1].reply or records[-1].message).id


def _messages(turn: Turn) -> list[dict[str, object]]:
    return [message.to_dict() for message in turn.messages]


@TRIED
@given(tight_stored_conversations(), st.lists(st.sampled_from((0, 0, 1, 2)), min_size=12, max_size=12))
def test_replay_shows_the_messages_that_were_sent(kept: Kept, rounds: list[int]) -> None:
    store = InMemoryStore()
    kept = replace(kept, settings=(*kept.settings, ("compaction", EAGER)))
    with TemporaryDirectory() as folder:
        played = SentRecorder(kept, Path(folder), store, rounds)
        played.walk(kept.reopened)
        played.reopen()
        conversation = played.stored
        compared = 0
        for head in conversation.branches():
            for record, turn in zip(conversation.turns(head), conversation.replay(head=head), strict=True):
                assert turn.check is not None
                assert turn.check.status in (RequestStatus.VERIFIED, RequestStatus.UNVERIFIED), turn.check
                name = (record.reply or record.message).id
                if name in played.sent and not played.is_ambiguous(record):
                    assert _messages(turn) == _messages(played.sent[name])
                    compared += 1
        assert compared or not played.sent
        assert list(iter_request_problems(played._backend, NAME)) == []
        played.close()
