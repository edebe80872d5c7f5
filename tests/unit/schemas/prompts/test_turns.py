"""A turn as data: the fields in docs/reference/json-output.md, with the values of the turn."""

from decimal import Decimal

import pytest
from tests.bodies import as_json
from tests.contracts.repository import doc
from tests.contracts.tables import names

from lamella import Conversation, Note, Turn
from lamella.schemas.ledger import replay_header_to_json
from lamella.schemas.prompts import estimate_cached_tokens_by_layer, turn_prompt_to_json
from lamella.tokenizers.counter import OfflineTokenCounter

NOTE = Note(path="garden.md", text="# Garden\nBeans along the fence.\n")


MEASURE = OfflineTokenCounter().get_tokenizer("anthropic:claude-opus-5-5")


@pytest.fixture
def turn() -> Turn:
    chat = Conversation(system="You are terse.", conversation_key="demo", model="anthropic:claude-opus-5-5")
    return chat.ask("What grows here?", attach=[NOTE])


@pytest.mark.layout("library")
def test_turn_has_the_documented_fields_in_their_order(turn: Turn) -> None:
    body = as_json(turn_prompt_to_json(turn))
    page = doc("reference/json-output.md")
    # Only a turn that was planned by price has its plan, only a stored one a check of its request, and only one that was
    # sent several times its earlier requests.
    absent = {"placement", "check", "earlier_requests"}
    assert list(body) == [name for name in names(page, under="TurnPromptJson") if name not in absent]
    envelope = body["envelope"]
    assert list(envelope) == [name for name in names(page, under="EnvelopeJson") if name != "why"]
    segments = [segment for layer in envelope["layers"] for segment in layer["segments"]]
    assert {tuple(segment) for segment in segments} == {tuple(names(page, under="SegmentJson"))}


def test_planned_turn_json_has_its_plan() -> None:
    chat = Conversation(layout="auto", model="anthropic:claude-sonnet-5")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("yes")
    body = as_json(turn_prompt_to_json(chat.ask("two")))
    plan = body["placement"]
    documented = names(doc("reference/json-output.md"), under="TurnPromptJson")
    assert list(body) == [name for name in documented if name not in ("check", "earlier_requests")]
    assert plan["why"]
    assert plan["expected"] <= plan["next_best"]


def test_turn_json_has_messages_tokens_and_cost(turn: Turn) -> None:
    body = as_json(turn_prompt_to_json(turn))
    assert body["turn"] == 1
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["tokens"]["total"] == turn.tokens.total
    assert body["prefix"] == {"cause": "first_turn", "segment": None, "common_tokens": 0}
    assert body["cache"]["read"] == 0
    assert turn.cost is not None
    assert Decimal(body["cost"]["amount"]) == turn.cost.amount
    assert body["compaction"] is None
    layers = body["envelope"]["layers"]
    assert [layer["id"] for layer in layers] == ["L1_SYSTEM", "L2_PREVIOUS", "L3_TURN", "L4_STRIP", "L5_USER"]
    (note,) = layers[2]["segments"]
    assert (note["id"], note["kind"], note["form"], note["place"]) == ("garden.md", "note", "full", "message:1")


def test_turn_without_a_price_has_no_cost() -> None:
    assert turn_prompt_to_json(Conversation().ask("Hello")).cost is None


@pytest.mark.layout("library")
def test_replay_header_has_layout_if_there_is_a_turn(turn: Turn) -> None:
    assert as_json(replay_header_to_json("demo", turn)) == {"lamella": 1, "conversation": "demo", "layout": "library"}
    assert as_json(replay_header_to_json("demo", None)) == {"lamella": 1, "conversation": "demo", "layout": None}


def test_reported_cache_is_distributed_over_layers(turn: Turn) -> None:
    whole = estimate_cached_tokens_by_layer(turn, MEASURE, read=70, prompt=70)
    assert list(whole) == ["L1_SYSTEM", "L2_PREVIOUS", "L3_TURN", "L4_STRIP", "L5_USER"]
    assert [whole[layer.id] for layer in turn.envelope.layers] == [layer.tokens for layer in turn.envelope.layers]
    some = estimate_cached_tokens_by_layer(turn, MEASURE, read=turn.envelope.layers[0].tokens, prompt=turn.tokens.total)
    assert some["L1_SYSTEM"] == turn.envelope.layers[0].tokens
    assert some["L5_USER"] == 0
    assert (
        estimate_cached_tokens_by_layer(
            turn, MEASURE, read=2 * turn.envelope.layers[0].tokens, prompt=2 * turn.tokens.total
        )
        == some
    )


@pytest.mark.parametrize(("read", "prompt"), [(None, 70), (70, None), (0, 70), (0, 0)])
def test_unreported_cache_covers_no_layer(turn: Turn, read: int | None, prompt: int | None) -> None:
    assert set(estimate_cached_tokens_by_layer(turn, MEASURE, read=read, prompt=prompt).values()) == {0}
