"""Resuming gives what asking turn by turn gives, on every branch."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.moves import Kept, stored_conversation_plans
from tests.invariants.reopened_prompts import NAME, Lasting

from lamella.conversation.past_turns import BranchHistory
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.branch import branch_content_hashes, read_turns
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import Turn, TurnSettings
from lamella.core.prompt.advance import add_reply_to_waiting_turn, advance_by_turn
from lamella.core.prompt.layers.history import ConversationHistory, HistoryTurn
from lamella.core.prompt.layers.model import LAYER_ORDER
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.stores.memory import InMemoryStore
from lamella.tokenizers.counter import OfflineTokenCounter

TRIED = settings.get_profile("invariants")
COUNTER = OfflineTokenCounter()
START = PromptState(conversation=NAME, tokenizer_name=COUNTER.get_tokenizer(None).name)


def ask_all(past: Sequence[Turn]) -> PromptState:
    """Every turn asked and answered in its order, each counted as its model counts."""
    state = START
    for number, turn in enumerate(past, start=1):
        tokenizer = COUNTER.get_tokenizer(turn.model or state.model)
        opened = advance_by_turn(state, replace(turn, reply=None, reply_id=None), choose_layout, tokenizer=tokenizer)
        if number == len(past) and turn.reply is None:
            return opened
        state = add_reply_to_waiting_turn(opened, turn.reply or "", reply_id=turn.reply_id)
    return state


def said(exchange: HistoryTurn) -> tuple[str, str, int, str, str, int]:
    """What an exchange says, wherever it is."""
    user, reply = exchange.question, exchange.reply
    return user.id, user.text, user.segment.tokens, reply.id, reply.text, reply.segment.tokens


def compared(sent: Prompt | None) -> tuple[object, ...] | None:
    """What is sent, and what the next request is compared with."""
    if sent is None:
        return None
    named = (sent.conversation_id, sent.epoch, sent.turn_settings, sent.model, sent.tools, sent.attached, sent.warnings)
    return (
        *named,
        sent.messages,
        sent.total,
        sent.system_library,
        sent.unlayered_artifacts,
        *map(sent.segments, LAYER_ORDER),
    )


def without_layout(state: PromptState) -> PromptState:
    """The state without how it is laid out, and without the request before it."""
    return replace(
        state,
        history=ConversationHistory(),
        last_prompt=None,
        system_library={},
        library_rendered_from=None,
        placed={},
        tokenizer_name="",
    )


def branches_of(kept: Kept) -> list[list[Turn]]:
    """What was asked and answered on every branch."""
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        Lasting(kept, Path(folder), lambda: store).walk([False] * len(kept.moves))
    log = FoldedLog(NAME)
    log.extend(store.load(NAME))
    told = [log.branch_records(head) for head in log.list_branch_heads()]
    return [
        read_turns(branch, store.read_contents(NAME, branch_content_hashes(branch)), defaults=TurnSettings())
        for branch in told
    ]


def check(past: Sequence[Turn]) -> None:
    asked = ask_all(past)
    model = next((turn.model for turn in reversed(past) if turn.model), None)
    resumed = BranchHistory(past).compute_state(START, choose_layout, tokenizer=COUNTER.get_tokenizer(model))
    assert resumed.waits_for_reply is asked.waits_for_reply
    assert compared(resumed.last_prompt) == compared(asked.last_prompt)
    assert without_layout(resumed) == without_layout(asked)
    assert list(resumed.library) == list(asked.library)
    assert resumed.system_library == asked.system_library
    assert list(resumed.system_library) == list(asked.system_library)
    assert resumed.placed == asked.placed
    assert list(resumed.placed) == list(asked.placed)
    assert (resumed.history.epoch_start, resumed.history.message_count) == (
        asked.history.epoch_start,
        asked.history.message_count,
    )
    assert [said(turn) for turn in resumed.history.turns] == [said(one) for one in asked.history.turns]
    start = asked.history.epoch_start
    assert resumed.history.turns[start:] == asked.history.turns[start:]


@TRIED
@given(stored_conversation_plans())
def test_each_branch_replays_like_turn_by_turn(kept: Kept) -> None:
    for branch in branches_of(kept):
        check(branch)


@TRIED
@given(stored_conversation_plans(tree=False))
def test_each_prefix_of_conversation_replays_like_turn_by_turn(kept: Kept) -> None:
    (past,) = branches_of(kept)
    for end in range(len(past) + 1):
        check(past[:end])
        if end:
            check([*past[: end - 1], replace(past[end - 1], reply=None, reply_id=None)])
