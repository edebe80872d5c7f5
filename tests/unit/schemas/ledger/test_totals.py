"""Sums over a replay: counted while turns go by, and with money only where every turn has a price."""

from decimal import Decimal

import pytest
from tests.bodies import as_json
from tests.contracts.repository import doc
from tests.contracts.tables import names

from lamella import Conversation, Note, ToolOutput, Turn
from lamella.providers import ModelReply, StopReason, ToolCall
from lamella.schemas.ledger import ReplayTotals, replay_totals_to_json
from lamella.schemas.prompts import turn_prompt_to_json

NOTE = Note(path="garden.md", text="# Garden\nBeans along the fence.\n" * 20)


PRICED = "anthropic:claude-opus-5-5"


def talk(turns: int, *, model: str | None = None) -> list[Turn]:
    """So many turns of one conversation; the note moves the prefix of the second, by joining the library."""
    chat = Conversation(conversation_key="demo", model=model)
    made = []
    for number in range(turns):
        made.append(chat.ask(f"Question {number}", attach=[] if number else [NOTE]))
        chat.reply("Beans.")
    return made


@pytest.mark.layout("library")
def test_turns_pass_through_while_counted() -> None:
    turns = talk(3, model=PRICED)
    totals = ReplayTotals()
    passing = totals.add_each_turn(turns)
    assert next(passing) is turns[0]
    assert (totals.turns, totals.prefix_breaks) == (1, 0)
    assert list(passing) == turns[1:]
    assert (totals.turns, totals.prefix_breaks, totals.compactions) == (3, 1, 0)
    assert totals.tokens == sum(turn.tokens.total for turn in turns)
    assert totals.cost == sum(turn.cost.amount for turn in turns if turn.cost)
    assert totals.naive_ratio == totals.cost / totals.naive_cost


def test_totals_include_each_request_of_a_turn_with_tools() -> None:
    chat = Conversation(conversation_key="demo", model=PRICED)
    first = chat.ask("How many beds?", attach=[NOTE])
    call = ToolCall(id="c1", name="count", arguments="{}")
    chat.reply(ModelReply(text="", calls=(call,), stop=StopReason.TOOL_CALLS))
    last = chat.submit_tool_outputs([ToolOutput(call="c1", output="Two.")])
    chat.reply("Two.")
    assert first.cost is not None
    assert last.cost is not None
    for (replayed,) in (list(chat.replay()), list(chat.sent_turns())):
        totals = ReplayTotals()
        assert list(totals.add_each_turn([replayed])) == [replayed]
        assert replayed.earlier_requests == (first.to_earlier_request(),)
        assert (totals.turns, totals.requests) == (1, 2)
        assert totals.tokens == first.tokens.total + last.tokens.total
        assert totals.cost == first.cost.amount + last.cost.amount
        assert totals.naive_cost == first.cost.naive + last.cost.naive
        (earlier,) = as_json(turn_prompt_to_json(replayed))["earlier_requests"]
        assert earlier["tokens"] == first.tokens.total
    assert "earlier_requests" not in as_json(turn_prompt_to_json(first))


def test_sums_have_the_documented_fields() -> None:
    totals = ReplayTotals()
    assert len(list(totals.add_each_turn(talk(2, model=PRICED)))) == 2
    body = as_json(replay_totals_to_json(totals))
    assert sorted(body) == sorted(names(doc("reference/json-output.md"), under="ReplayTotalsJson"))
    assert body["tokens"] == totals.tokens
    assert body["cost"] == f"{totals.cost:f}".rstrip("0")


def test_one_turn_without_a_price_leaves_the_whole_without_money() -> None:
    totals = ReplayTotals(cost=Decimal(1), naive_cost=Decimal(2), perfect_cache_cost=Decimal(1))
    assert len(list(totals.add_each_turn(talk(1)))) == 1
    body = as_json(replay_totals_to_json(totals))
    assert (body["cost"], body["naive_cost"], body["limit_cost"]) == (None, None, None)


def test_empty_replay_has_zero_totals() -> None:
    assert as_json(replay_totals_to_json(ReplayTotals())) == {
        "requests": 0,
        "tokens": 0,
        "cache_read_share": 0.0,
        "prefix_breaks": 0,
        "compactions": 0,
        "cost": "0",
        "naive_cost": "0",
        "limit_cost": "0",
    }
    assert ReplayTotals().naive_ratio is None
