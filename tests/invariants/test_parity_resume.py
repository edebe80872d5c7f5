"""Resuming gives what asking turn by turn gives, whatever was asked, on every branch."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.lasting import NAME, Lasting
from tests.invariants.moves import Kept, kept_plans

from lamella.adapters.stores.memory import MemoryStore
from lamella.adapters.tokens.counter import OfflineCounter
from lamella.core.log.branch import path_hashes, read_turns
from lamella.core.log.log import Log
from lamella.core.log.terms import Terms
from lamella.core.log.turn import Turn
from lamella.core.planning.layouts import place
from lamella.core.prompt.advance import advance, answer
from lamella.core.prompt.layers.model import LAYER_ORDER
from lamella.core.prompt.layers.strip import Exchange, Talk
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.past import Past

TRIED = settings.get_profile("invariants")
COUNTER = OfflineCounter()
START = State(conversation=NAME, measured_by=COUNTER.measure(None).name)


def ask_all(past: Sequence[Turn]) -> State:
    """Every turn asked and answered in its order, each counted as its model counts."""
    state = START
    for number, turn in enumerate(past, start=1):
        measure = COUNTER.measure(turn.model or state.model)
        opened = advance(state, replace(turn, reply=None, reply_id=None), place, measure=measure)
        if number == len(past) and turn.reply is None:
            return opened
        state = answer(opened, turn.reply or "", reply_id=turn.reply_id)
    return state


def said(exchange: Exchange) -> tuple[str, str, int, str, str, int]:
    """What an exchange says, wherever it stands."""
    user, reply = exchange.user, exchange.reply
    return user.id, user.text, user.segment.tokens, reply.id, reply.text, reply.segment.tokens


def compared(sent: Prompt | None) -> tuple[object, ...] | None:
    """What is sent, and what the next request is compared with."""
    if sent is None:
        return None
    named = (sent.conversation_id, sent.epoch, sent.terms, sent.model, sent.tools, sent.attached, sent.warnings)
    return *named, sent.messages, sent.total, sent.shelf, sent.carried, *map(sent.segments, LAYER_ORDER)


def without_layout(state: State) -> State:
    """The state without how it is laid out, and without the request before it."""
    return replace(state, talk=Talk(), last=None, shelf={}, shelf_of=None, standing={}, measured_by="")


def branches_of(kept: Kept) -> list[list[Turn]]:
    """What was asked and answered on every branch."""
    store = MemoryStore()
    with TemporaryDirectory() as folder:
        Lasting(kept, Path(folder), lambda: store).walk([False] * len(kept.moves))
    log = Log(NAME)
    log.extend(store.load(NAME))
    told = [log.path(head) for head in log.branches()]
    return [read_turns(branch, store.read_contents(NAME, path_hashes(branch)), usual=Terms()) for branch in told]


def check(past: Sequence[Turn]) -> None:
    asked = ask_all(past)
    model = next((turn.model for turn in reversed(past) if turn.model), None)
    resumed = Past(past).fold(START, place, measure=COUNTER.measure(model))
    assert resumed.waits is asked.waits
    assert compared(resumed.last) == compared(asked.last)
    assert without_layout(resumed) == without_layout(asked)
    assert list(resumed.library) == list(asked.library)
    assert resumed.shelf == asked.shelf
    assert list(resumed.shelf) == list(asked.shelf)
    assert resumed.standing == asked.standing
    assert list(resumed.standing) == list(asked.standing)
    assert (resumed.talk.epoch_start, resumed.talk.spoken) == (asked.talk.epoch_start, asked.talk.spoken)
    assert [said(exchange) for exchange in resumed.talk.exchanges] == [said(one) for one in asked.talk.exchanges]
    start = asked.talk.epoch_start
    assert resumed.talk.exchanges[start:] == asked.talk.exchanges[start:]


@TRIED
@given(kept_plans())
def test_every_branch_resumes_to_what_asking_it_turn_by_turn_gives(kept: Kept) -> None:
    for branch in branches_of(kept):
        check(branch)


@TRIED
@given(kept_plans(tree=False))
def test_every_beginning_of_a_conversation_resumes_to_what_asking_it_gives(kept: Kept) -> None:
    (past,) = branches_of(kept)
    for end in range(len(past) + 1):
        check(past[:end])
        if end:
            check([*past[: end - 1], replace(past[end - 1], reply=None, reply_id=None)])
