"""Resuming gives what folding turn by turn gives, whatever was asked, on every branch."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from lamella.core.prompt.resume import Resumed, resume
from lamella.core.prompt.turns import close_turn, open_turn
from tests.invariants.lasting import NAME, Lasting
from tests.invariants.moves import Kept, kept_plans

from lamella.adapters.stores.memory import MemoryStore
from lamella.adapters.tokens.counter import OfflineCounter
from lamella.core.budget.thresholds import Budget
from lamella.core.log.branch import path_hashes, read_turns
from lamella.core.log.log import Log
from lamella.core.log.turn import PastTurn
from lamella.core.prompt.envelope import Sent
from lamella.core.prompt.layers.model import LAYER_ORDER
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.state import Rules, State
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")
COUNTER = OfflineCounter()


def fold(past: Sequence[PastTurn], budget: Budget) -> Resumed:
    """Every turn opened and closed in its order, each counted as its model counts."""
    state = State(conversation=NAME, measured_by=COUNTER.measure(None).name)
    for number, told in enumerate(past, start=1):
        rules = Rules(measure=COUNTER.measure(told.turn.model or state.model), budget=budget)
        opened = open_turn(state, told.turn, rules)
        if number == len(past) and told.reply is None:
            return Resumed(state=state, opened=opened)
        state = close_turn(opened, told.reply or "", rules)
    return Resumed(state=state)


def said(exchange: Exchange) -> tuple[str, str, int, str, str, int]:
    """What an exchange says, wherever it stands."""
    user, reply = exchange.user, exchange.reply
    return user.id, user.text, user.segment.tokens, reply.id, reply.text, reply.segment.tokens


def compared(sent: Sent | None) -> tuple[object, ...] | None:
    """What the next request is compared with."""
    if sent is None:
        return None
    named = (sent.conversation_id, sent.epoch, sent.layout, sent.model, sent.tools)
    return *named, sent.messages, sent.total, sent.shelf, sent.carried, *map(sent.segments, LAYER_ORDER)


def without_layout(state: State) -> State:
    """The state without how it is laid out, and without the request before it."""
    return replace(state, exchanges=(), last=None, shelf={}, standing={}, epoch_start=0, measured_by="")


def branches_of(kept: Kept) -> tuple[list[list[PastTurn]], Rules]:
    """What was asked and answered on every branch, and the rules in the end."""
    store = MemoryStore()
    with TemporaryDirectory() as folder:
        Lasting(kept, Path(folder), lambda: store).walk([False] * len(kept.moves))
    log = Log(NAME)
    log.extend(store.load(NAME))
    told = [log.path(head) for head in log.branches()]
    past = [read_turns(branch, store.read_contents(NAME, path_hashes(branch))) for branch in told]
    return past, Rules(measure=COUNTER.measure(None), budget=Budget(window=1_000_000_000))


def check(past: Sequence[PastTurn], rules: Rules) -> None:
    folded = fold(past, rules.budget)
    model = next((told.turn.model for told in reversed(past) if told.turn.model), None)
    resumed = resume(past, replace(rules, measure=COUNTER.measure(model)), conversation=NAME, model=None)
    if folded.opened is None or resumed.opened is None:
        assert folded.opened is resumed.opened
        assert compared(resumed.state.last) == compared(folded.state.last)
        check_states(resumed.state, folded.state)
    else:
        assert resumed.opened.envelope == folded.opened.envelope
        assert resumed.opened.attached == folded.opened.attached
        assert resumed.opened.tools == folded.opened.tools
        check_states(resumed.opened.state, folded.opened.state)


def check_states(resumed: State, folded: State) -> None:
    assert without_layout(resumed) == without_layout(folded)
    assert list(resumed.known) == list(folded.known)
    assert (resumed.epoch, resumed.epoch_start) == (folded.epoch, folded.epoch_start)
    assert resumed.shelf == folded.shelf
    assert list(resumed.shelf) == list(folded.shelf)
    assert resumed.standing == folded.standing
    assert list(resumed.standing) == list(folded.standing)
    assert [said(exchange) for exchange in resumed.exchanges] == [said(exchange) for exchange in folded.exchanges]
    start = folded.epoch_start
    assert resumed.exchanges[start:] == folded.exchanges[start:]


@TRIED
@given(kept_plans())
def test_every_branch_resumes_to_what_folding_it_turn_by_turn_gives(kept: Kept) -> None:
    past, rules = branches_of(kept)
    for branch in past:
        check(branch, rules)


@TRIED
@given(kept_plans(tree=False))
def test_every_beginning_of_a_conversation_resumes_to_what_folding_it_gives(kept: Kept) -> None:
    (past,), rules = branches_of(kept)
    for end in range(len(past) + 1):
        check(past[:end], rules)
        if end:
            check([*past[: end - 1], replace(past[end - 1], reply=None, reply_id=None)], rules)
