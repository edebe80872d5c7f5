"""The past turns of a branch in memory, and its tool rounds.

``BranchHistory`` has the turns, their message ids, and the compactions since the last turn. ``check_tool_outputs`` and
``build_tool_round`` match the outputs of tools with the calls of the model.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from datetime import UTC, datetime

from lamella.core.budget import Tokenizer
from lamella.core.log.compactions import results_cleared_by
from lamella.core.log.receipts import CompactionReceipt, find_first_voided_index
from lamella.core.log.turn import Turn, TurnBatch, expand_batches
from lamella.core.messages import ModelReply, StopReason, ToolCall, ToolOutput, ToolRound, Usage
from lamella.core.prompt.advance import LayoutPlanner
from lamella.core.prompt.replay import replay_turns
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.errors import InvalidOperationError


class BranchHistory:
    """The turns of a branch, all message ids, and the receipts committed since the last turn.

    Only the last turn ever changes, so ``turns`` contains only the turns that were added here and the last earlier one.
    ``turn_count`` counts all turns. ``checkpoint`` is a state with a function that loads the turns before it. The
    history then starts from that state, and the function runs only if the early turns are needed. ``message_time``
    looks up when a stored message was written. ``undone_results`` are tool results that were cleared until the user
    undid it; they are not cleared again.
    """

    def __init__(
        self,
        turns: Iterable[Turn | TurnBatch] = (),
        *,
        path: Iterable[str] = (),
        receipts: Iterable[CompactionReceipt] = (),
        find_time: Callable[[str], str | None] | None = None,
        checkpoint: tuple[PromptState, Callable[[], Iterable[Turn | TurnBatch]]] | None = None,
        undone_results: frozenset[str] = frozenset(),
    ) -> None:
        self._checkpoint = checkpoint
        self._early_turns: list[Turn | TurnBatch] | None = None
        self._stored_turns = list(turns)
        # The names of a batch are message ids, two for each turn: the question and its reply.
        self.turn_count = sum(
            [1 if isinstance(part, Turn) else len(part.message_ids) // 2 for part in self._stored_turns]
        )
        self.turn_count += 0 if checkpoint is None else checkpoint[0].turn_count
        self.turns: list[Turn] = []
        last = self._stored_turns.pop() if self._stored_turns else None
        if isinstance(last, TurnBatch):
            self._stored_turns += [before] if (before := last.without_last()) else []
        if last is not None:
            self.turns.append(last if isinstance(last, Turn) else last.get_last_turn())
        self.message_ids = list(path)
        self.receipts = tuple(receipts)
        self.undone_results = undone_results
        self._find_time = find_time
        self._times: dict[str, datetime] = {}

    def compute_state(
        self, start: PromptState, plan_layout: LayoutPlanner, *, tokenizer: Tokenizer, skip_last: int = 0
    ) -> PromptState:
        """Return the prompt state that these turns lead to, without the last ``skip_last`` turns.

        All turns are counted with the same tokenizer.
        """
        begun = start if self._checkpoint is None else self._checkpoint[0]
        turns = [*self._stored_turns, *self.turns[: len(self.turns) - skip_last]]
        return replay_turns(begun, turns, plan_layout, tokenizer=tokenizer)

    @property
    def pending_turns(self) -> Sequence[Turn]:
        """The last turn if it awaits its reply, otherwise empty."""
        return [turn for turn in self.turns[-1:] if turn.reply is None]

    def list_turns(self) -> list[Turn]:
        """Return every turn of the branch, oldest first; loads the early ones if necessary."""
        return expand_batches(self._list_parts())

    def _list_parts(self) -> list[Turn | TurnBatch]:
        """Return every turn, with turn batches left unexpanded."""
        if self._early_turns is None:
            self._early_turns = [] if self._checkpoint is None else list(self._checkpoint[1]())
        return [*self._early_turns, *self._stored_turns, *self.turns]

    def find_turn_counting_back(self, back: int) -> Turn | None:
        """Return the turn that was asked this many turns ago, the last one for 1; None if there are not so many."""
        if back <= len(self.turns):
            return self.turns[-back]
        parts = [*self._stored_turns, *self.turns]
        if back > len(expand_batches(parts[-back:])):
            parts = self._list_parts()
        turns = expand_batches(parts[-back:])
        return turns[-back] if back <= len(turns) else None

    def append_turn(self, turn: Turn, *, message_id: str, at: datetime | None = None) -> None:
        """Append a turn; the pending receipts belong to it from now on."""
        self.turns.append(turn)
        self.turn_count += 1
        self.message_ids.append(message_id)
        self.receipts = ()
        if at is not None:
            self._times[message_id] = at

    def set_reply(self, text: str, *, message_id: str, at: datetime | None = None) -> None:
        """Set the reply of the last turn."""
        self.turns[-1] = replace(self.turns[-1], reply=text, reply_id=message_id)
        self.message_ids.append(message_id)
        if at is not None:
            self._times[message_id] = at

    def message_time(self, message: str) -> str | None:
        """Return when a message was written as an ISO 8601 string in UTC, or None if unknown."""
        if self._find_time is not None:
            return self._find_time(message)
        at = self._times.get(message)
        return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")

    def add_receipt(self, receipt: CompactionReceipt) -> None:
        """Add a compaction after the last message."""
        self.receipts = (*self.receipts, receipt)

    def list_receipts(self) -> list[CompactionReceipt]:
        """Return every active receipt, oldest first."""
        # Turn batches have no receipts: only single turns carry them.
        turns = (part for part in self._list_parts() if isinstance(part, Turn))
        return [*(receipt for turn in turns for receipt in turn.receipts), *self.receipts]

    def compactions_to_undo(self, receipt: str | None) -> Sequence[CompactionReceipt]:
        """Return the named compaction, by default the last one, and all compactions after it.

        Raises ``InvalidOperationError`` if there is no such compaction.
        """
        committed = self.list_receipts()
        names = [one.id for one in committed]
        found = find_first_voided_index(names, receipt)
        if found is None:
            raise InvalidOperationError(
                "There is no compaction to undo." if receipt is None else f"There is no compaction {receipt!r} here.",
                hint=f"Receipts in force: {', '.join(names)}." if names else "Nothing was compacted on this branch.",
            )
        return committed[found:]

    def without_compactions(self, voided: Iterable[CompactionReceipt]) -> "BranchHistory":
        """Return a copy of this history in which these compactions never happened."""
        voided = tuple(voided)
        gone = {receipt.id for receipt in voided}
        # Without anything to remove, a copy of the lists is enough and the early turns need not be loaded.
        if not gone:
            past = copy(self)
            past._stored_turns, past.turns, past.message_ids = (
                list(self._stored_turns),
                list(self.turns),
                list(self.message_ids),
            )
            return past
        turns = [_without_receipts(part, gone) if isinstance(part, Turn) else part for part in self._list_parts()]
        receipts = [receipt for receipt in self.receipts if receipt.id not in gone]
        undone = self.undone_results.union(*[results_cleared_by(receipt) for receipt in voided])
        past = BranchHistory(
            turns, path=self.message_ids, receipts=receipts, find_time=self._find_time, undone_results=undone
        )
        past._times = self._times
        return past


def _without_receipts(turn: Turn, receipt_ids: set[str]) -> Turn:
    if not turn.receipts:
        return turn
    return replace(turn, receipts=tuple(receipt for receipt in turn.receipts if receipt.id not in receipt_ids))


# Tool rounds.


def check_tool_outputs(calls: Sequence[ToolCall], outputs: Sequence[ToolOutput]) -> None:
    """Raise ``InvalidOperationError`` unless every call has exactly one output and every output belongs to a call."""
    called, given = [call.id for call in calls], [output.call for output in outputs]
    missing = [f"{call.name} ({call.id})" for call in calls if call.id not in given]
    unknown = [name for name in given if name not in called]
    twice = [name for name in dict.fromkeys(given) if given.count(name) > 1]
    wrong = [
        f"nothing for {', '.join(missing)}" if missing else "",
        f"{', '.join(unknown)} was not called" if unknown else "",
        f"{', '.join(twice)} more than once" if twice else "",
    ]
    if any(wrong):
        raise InvalidOperationError(
            f"The results do not match the calls: {'; '.join(one for one in wrong if one)}.",
            hint="Give one ToolOutput for each of chat.calls, with the call's id; a round is handed back as a whole.",
        )


def list_open_calls(calls: Sequence[ToolCall], outputs: Iterable[ToolOutput]) -> tuple[ToolCall, ...]:
    """Return the calls that have no output yet."""
    done = {output.call for output in outputs}
    return tuple(call for call in calls if call.id not in done)


def calls_pending_error(message: str, calls: Iterable[ToolCall]) -> InvalidOperationError:
    """Return the error for an action that is not possible while tool calls await their results."""
    tools = sorted({call.name for call in calls})
    return InvalidOperationError(
        message, hint=lambda hints: f"{hints.finish_calls_hint(tools)} Asking something else gives the calls up."
    )


def with_unique_call_ids(reply: ModelReply, *, turn: int = 1, earlier_rounds: Sequence[ToolRound] = ()) -> ModelReply:
    """Return the reply with a unique id for each tool call; models repeat ids, and some give none.

    Ids are unique among the rounds of a turn. A call without an id gets one from the number of its turn and its round,
    so it is unique in the conversation. If an id changes, the provider's own form of the reply is removed, because it
    would still contain the old ids.
    """
    taken = {call.id for one in earlier_rounds for call in one.calls}
    names: dict[str, None] = {}
    for number, call in enumerate(reply.calls, start=1):
        fresh = name = call.id or f"call-{turn}-{len(earlier_rounds) + 1}-{number}"
        while fresh in names or fresh in taken:
            fresh, number = f"{name}-{number}", number + 1
        names[fresh] = None
    calls = tuple(replace(call, id=name) for call, name in zip(reply.calls, names, strict=True))
    return reply if calls == reply.calls else replace(reply, calls=calls, provider_reply=None)


def build_tool_round(reply: ModelReply, outputs: Sequence[ToolOutput]) -> ToolRound:
    """Build a tool round from a reply with tool calls and their outputs, in the order of the calls."""
    given = {output.call: output for output in outputs}
    return ToolRound(
        text=reply.text,
        calls=reply.calls,
        outputs=tuple([given[call.id] for call in reply.calls]),
        provider_reply=reply.provider_reply,
        tokens=reply.usage.output,
    )


def reply_from_round(tool_round: ToolRound) -> ModelReply:
    """Rebuild the reply that started a tool round, as far as the round contains it."""
    return ModelReply(
        text=tool_round.text,
        stop=StopReason.TOOL_CALLS,
        calls=tool_round.calls,
        usage=Usage(output=tool_round.tokens),
        provider_reply=tool_round.provider_reply,
    )


def skipped_call_output(call: ToolCall) -> ToolOutput:
    """Return the output for a call that was never run because the conversation continued without it."""
    return ToolOutput(call=call.id, output="This call was not made: the conversation went on without it.", failed=True)


def has_skipped_calls(tool_round: ToolRound) -> bool:
    """Return whether a call of a round was never run; the results of such a round were not sent."""
    return any(
        replace(output, id=None) == skipped_call_output(call)
        for call, output in zip(tool_round.calls, tool_round.outputs, strict=True)
    )


def is_skipped_round(tool_round: ToolRound) -> bool:
    """Return whether no call of a round was run; such a round was never sent on its own."""
    return all(
        replace(output, id=None) == skipped_call_output(call)
        for call, output in zip(tool_round.calls, tool_round.outputs, strict=True)
    )
