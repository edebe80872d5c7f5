"""The estimate before a message that costs more than the last one."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import lamella
from lamella import Conversation, Note
from lamella.conversation.expired_cache import CacheExpiry, estimate_expired_cache
from lamella.testing import ScriptedProvider

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
CLAUDE = "anthropic:claude-sonnet-4-5"
LIFETIME = 300


def note(name: str, words: int = 3_000) -> Note:
    return Note(path=f"{name}.md", text=f"{name} " + "one word and another " * (words // 4))


def talk(layout: str, *, model: str | None = CLAUDE, at: datetime | None = NOON) -> Conversation:
    """Two notes were attached; the first is no longer wanted, and is before the second."""
    chat = Conversation(system="You are terse.", layout=layout, model=model, linger=2)
    for seconds, attached in ((0, [note("old")]), (15, [note("new")]), (30, [])):
        chat.ask("What is in it?", attach=attached, at=None if at is None else at + timedelta(seconds=seconds))
        chat.reply("Words.")
    return chat


def after(seconds: float) -> datetime:
    """So long after the last request."""
    return NOON + timedelta(seconds=30 + seconds)


@pytest.mark.parametrize("layout", ["in_place", "auto"])
def test_valid_cache_gives_no_warning(layout: str) -> None:
    chat = talk(layout)
    assert chat.estimate_cache_expiry(at=after(0)) is None
    assert chat.estimate_cache_expiry(at=after(LIFETIME * 0.79)) is None


def test_cost_is_estimated_before_expiry() -> None:
    soon, lapsed = (
        talk("auto").estimate_cache_expiry(at=after(seconds)) for seconds in (LIFETIME * 0.81, LIFETIME + 1)
    )
    assert soon is not None
    assert lapsed is not None
    assert (soon.expired, lapsed.expired) == (False, True)
    assert soon.expires_at == lapsed.expires_at == after(LIFETIME)
    assert (soon.tokens, soon.folded_tokens, soon.cost) == (lapsed.tokens, lapsed.folded_tokens, lapsed.cost)


def test_auto_folds_after_expiry_at_estimated_cost() -> None:
    chat, at = talk("auto"), after(LIFETIME + 1)
    cold = chat.estimate_cache_expiry(at=at)
    assert cold is not None
    assert cold.will_fold
    assert cold.folded_tokens < 0.6 * cold.tokens
    assert cold.cost is not None
    assert cold.folded_cost is not None
    assert cold.folded_cost < cold.cost
    turn = chat.ask("", at=at)
    assert turn.tokens.total == cold.folded_tokens
    assert turn.cost is not None
    assert turn.cost.amount == cold.folded_cost


def test_in_place_matches_estimate_and_folds_on_request() -> None:
    at = after(LIFETIME + 1)
    as_is, folded = talk("in_place"), talk("in_place")
    cold = as_is.estimate_cache_expiry(at=at)
    assert cold is not None
    assert not cold.will_fold
    turn, other = as_is.ask("", at=at), folded.ask("", fold=True, at=at)
    assert (turn.tokens.total, other.tokens.total) == (cold.tokens, cold.folded_tokens)
    assert turn.cost is not None
    assert other.cost is not None
    assert (turn.cost.amount, other.cost.amount) == (cold.cost, cold.folded_cost)


def test_estimate_changes_nothing() -> None:
    looked, left = talk("auto"), talk("auto")
    looked.estimate_cache_expiry(at=after(LIFETIME + 1))
    at = after(LIFETIME + 2)
    assert looked.ask("Go on.", at=at).messages == left.ask("Go on.", at=at).messages


@pytest.mark.parametrize("model", [None, "deepseek:deepseek-v4", "local"])
def test_undocumented_lifetime_is_not_guessed(model: str | None) -> None:
    assert talk("auto", model=model).estimate_cache_expiry(at=after(10 * 86_400)) is None


def test_uncached_prompt_gives_no_warning() -> None:
    at = after(LIFETIME + 1)
    never = Conversation(layout="auto", model=CLAUDE)
    assert never.estimate_cache_expiry(at=at) is None
    short = Conversation(layout="auto", model=CLAUDE)
    short.ask("Hello.", at=NOON)
    short.reply("Hello.")
    assert short.estimate_cache_expiry(at=at) is None
    assert talk("auto", at=None).estimate_cache_expiry(at=at) is None
    assert talk("auto").estimate_cache_expiry() is None


def test_missing_price_gives_tokens() -> None:
    cold = talk("auto", model="claude-of-nobodys-list").estimate_cache_expiry(at=after(LIFETIME + 1))
    assert cold is not None
    assert (cold.cost, cold.folded_cost) == (None, None)
    assert cold.folded_tokens < cold.tokens


def test_stored_chat_knows_cache_expiry_after_reopen(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url, model=CLAUDE, provider=ScriptedProvider("Words.")) as engine:
        conversation = engine.chat("garden", layout="in_place")
        conversation.ask("What is in it?", attach=[note("old")], at=NOON)
        conversation.reply("Words.", at=NOON)
    with lamella.open(url) as engine:
        conversation = engine.chat("garden")
        assert conversation.estimate_cache_expiry(at=NOON + timedelta(seconds=100)) is None
        cold = conversation.estimate_cache_expiry(at=NOON + timedelta(seconds=LIFETIME + 1))
        # By the clock of this machine, which is not that of this test.
        assert isinstance(conversation.estimate_cache_expiry(), CacheExpiry) is (
            datetime.now(UTC) > NOON + timedelta(seconds=LIFETIME * 0.8)
        )
    assert cold is not None
    assert cold.expired


def test_conversation_without_ledger_gives_no_estimate() -> None:
    class Silent:
        usage_tracker = Conversation().usage_tracker

        def preview(self, *_: object, **__: object) -> None:
            raise AssertionError("nothing has to be looked at")

    assert estimate_expired_cache(Silent(), at=NOON) is None  # type: ignore[arg-type]
