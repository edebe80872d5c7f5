"""Costs of a turn, beside those of the naive way and of a perfect cache."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from genai_prices import Usage, calc_price
from tests.conftest import Watched
from tests.unit.pictures import png

from lamella import Conversation, Image, Note, ToolResult, Turn
from lamella.attach import Attachment
from lamella.core.values import replace
from lamella.stores.memory import InMemoryStore
from lamella.tokenizers.o200k import count_tokens
from lamella.wiring import open_backend

OPUS = "anthropic:claude-opus-5-5"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
TEXT = "\n".join(f"A sentence with the number {number} in it." for number in range(200))
PROMOTES = pytest.mark.moves_prefix(reason="in layout library what was attached goes into the system message")


def billed(turn: Turn, model: str = "claude-opus-5-5", provider: str = "anthropic") -> Decimal:
    assert turn.cache is not None
    usage = Usage(input_tokens=turn.cache.total, cache_read_tokens=turn.cache.read, cache_write_tokens=turn.cache.write)
    return calc_price(usage, model, provider_id=provider, genai_request_timestamp=NOON).input_price


def use(turn: Turn) -> tuple[int, int, int]:
    assert turn.cache is not None
    return turn.cache.read, turn.cache.write, turn.cache.uncached


def test_turn_cost_matches_genai_prices(converse: type[Watched]) -> None:
    chat = converse(model=OPUS, layout="in_place")
    for number in range(3):
        turn = chat.ask(f"q{number}", attach=[Note(path="a.md", text=TEXT)], at=NOON)
        chat.reply("r")
        assert turn.cost is not None
        assert turn.cost.amount == billed(turn)
    read, write, uncached = use(turn)
    assert read > 2_000
    assert write > 0
    assert uncached == 0


def test_reads_writes_and_the_rest_add_up_to_the_total(converse: type[Watched]) -> None:
    for model in (OPUS, "openai:gpt-5", "deepseek:deepseek-chat", None):
        chat = converse(model=model, layout="in_place")
        for number in range(3):
            turn = chat.ask(f"q{number}", attach=[Note(path="a.md", text=TEXT)])
            chat.reply("r")
            assert sum(use(turn)) == turn.tokens.total


def test_clock_expires_the_cache_and_moves_no_byte(converse: type[Watched]) -> None:
    chat = converse(model=OPUS, layout="in_place")
    for minutes, hit in ((0, False), (4, True), (10, False), (14, True)):
        turn = chat.ask("q", attach=[Note(path="a.md", text=TEXT)], at=NOON + timedelta(minutes=minutes))
        chat.reply("r")
        assert (use(turn)[0] > 0) is hit
        assert turn.prefix_change.cause in ("first_turn", "none")


def test_prompt_below_model_minimum_is_not_cached(converse: type[Watched]) -> None:
    chat = converse(model=OPUS)
    for _ in range(2):
        turn = chat.ask("short")
        chat.reply("r")
        assert use(turn) == (0, 0, turn.tokens.total)


def test_naive_cost_repeats_attachments_and_caches_text_before_them(converse: type[Watched]) -> None:
    chat = converse(model="openai:gpt-5", layout="in_place", system="B.")
    for number in range(2):
        turn = chat.ask(f"q{number}", attach=[Note(path="a.md", text=TEXT)], at=NOON)
        chat.reply("r")
    block = f"<note_context>\n<title>a</title>\n<path>a.md</path>\n<content>\n{TEXT}\n</content>\n</note_context>\n"
    glued = [count_tokens("B."), count_tokens("q0"), count_tokens("r"), count_tokens(f"{block}[User query]:\nq1")]
    naive = calc_price(
        Usage(input_tokens=sum(glued) + 4 * 3 + 3), "gpt-5", provider_id="openai", genai_request_timestamp=NOON
    )
    assert turn.cost is not None
    assert turn.cost.naive == naive.input_price
    assert turn.cost.amount < turn.cost.naive


def test_naive_cost_repeats_sticky_attachment_until_detached() -> None:
    chat = Conversation(model="openai:gpt-5", attachments="sticky", system="B.")
    parts = ["B."]
    for number, attached in enumerate((True, True, True, False)):
        turn = chat.ask(
            f"q{number}",
            attach=[Note(path="a.md", text=TEXT)] if not number else [],
            detach=[] if attached else ["a.md"],
            at=NOON,
        )
        chat.reply("r")
        block = f"<note_context>\n<title>a</title>\n<path>a.md</path>\n<content>\n{TEXT}\n</content>\n</note_context>\n"
        last = f"{block}[User query]:\nq{number}" if attached else f"q{number}"
        total = sum(map(count_tokens, [*parts, last])) + 3 * (len(parts) + 1) + 3
        naive = calc_price(
            Usage(input_tokens=total, cache_read_tokens=0), "gpt-5", provider_id="openai", genai_request_timestamp=NOON
        )
        assert turn.cost is not None
        assert turn.cost.naive == naive.input_price
        parts += [f"q{number}", "r"]


def test_naive_of_a_sticky_attachment_is_naive_of_one_attached_in_every_turn() -> None:
    chats = {mode: Conversation(model="openai:gpt-5", attachments=mode) for mode in ("sticky", "turn")}
    given: list[Attachment] = [Note(path="a.md", text=TEXT), Image(data=png(600, 600), title="a picture")]
    for number in range(3):
        costs = []
        for mode, chat in chats.items():
            turn = chat.ask("q", attach=given if mode == "turn" or not number else [], at=NOON)
            chat.reply("r")
            costs.append(turn.cost)
        assert costs[0] is not None
        assert costs[1] is not None
        assert costs[0].naive == costs[1].naive


@pytest.mark.parametrize("layout", ["auto", "in_place", "library"])
def test_predictions_are_the_same_after_a_conversation_is_opened_again(layout: str) -> None:
    predictions: list[list[tuple[object, ...]]] = []
    for reopens in (False, True):
        backend = replace(open_backend("memory:"), store=InMemoryStore())
        settings: dict[str, object] = {"model": OPUS, "attachments": "sticky", "layout": layout}
        chat, costs = Conversation.open(backend, "chat", settings), list[tuple[object, ...]]()
        for number in range(4):
            chat = Conversation.open(backend, "chat", settings) if reopens else chat
            given = [Note(path="a.md", text=TEXT)] if not number else []
            system = None if number else TEXT * 3
            turn = chat.ask("q", attach=given, system=system, at=NOON + timedelta(minutes=number))
            chat.reply("r", at=NOON + timedelta(minutes=number))
            assert turn.cost is not None
            costs.append((turn.cost.amount, turn.cost.naive, turn.cache))
        predictions.append(costs)
    assert predictions[0] == predictions[1]


def test_first_turn_costs_same_input_as_naive() -> None:
    turn = Conversation(model="openai:gpt-5").ask("q", attach=[Note(path="a.md", text=TEXT)])
    assert turn.cost is not None
    assert turn.cost.amount == turn.cost.naive == turn.cost.limit


@pytest.mark.layout("library")
@PROMOTES
def test_cost_limit_assumes_cache_without_misses(converse: type[Watched]) -> None:
    chat = converse(model=OPUS)
    for number in range(4):
        turn = chat.ask(f"q{number}", attach=[Note(path=f"{number}.md", text=TEXT + str(number))])
        chat.reply("r")
        assert turn.cost is not None
        assert turn.cost.limit <= turn.cost.amount
    assert turn.cost is not None
    assert turn.cost.limit < turn.cost.amount / 2


@pytest.mark.parametrize("model", [None, "local:nobody-knows-it"])
def test_model_without_price_has_cache_use_and_no_cost(converse: type[Watched], model: str | None) -> None:
    chat = converse(model=model, layout="in_place")
    for _ in range(2):
        turn = chat.ask("hello", results=[ToolResult(name="t", output="T")])
        chat.reply("r")
        assert turn.cost is None
    assert use(turn)[0] > 0


@pytest.mark.layout("library")
@PROMOTES
def test_common_tokens_are_shared_with_previous_request(converse: type[Watched]) -> None:
    chat = converse(model="openai:gpt-5", system="Base.")
    first = chat.ask("one", attach=[Note(path="a.md", text=TEXT)])
    chat.reply("r")
    second = chat.ask("two")
    chat.reply("r")
    third = chat.ask("three")
    assert first.prefix_change.common_tokens == 0
    assert second.prefix_change.common_tokens is not None
    assert second.prefix_change.common_tokens <= count_tokens("Base.")
    assert third.prefix_change.common_tokens == second.tokens.total - 3


def test_without_ledger_prefix_change_is_reported_and_nothing_predicted(converse: type[Watched]) -> None:
    chat = converse(model=OPUS, keep_ledger=False)
    chat.ask("one")
    chat.reply("r")
    turn = chat.ask("two")
    assert (turn.cache, turn.cost, turn.prefix_change.common_tokens) == (None, None, None)
    assert turn.prefix_change.cause == "none"
