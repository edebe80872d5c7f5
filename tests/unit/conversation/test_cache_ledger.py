"""The log line of a turn: ids, hashes and numbers, if somebody listens."""

import logging
from collections.abc import Iterator

import pytest

from lamella import Conversation, Note
from lamella.conversation.cache_ledger import TURN_LOGGER, describe_turn, log_turn, preview_text, sum_used_tokens
from lamella.core.ledger.entry import LedgerEntry, PrefixChangeReport
from lamella.core.log.call import CacheOutcome, CacheVerdict, CallTiming, ModelCall, PrefixChange, PrefixChangeCause
from lamella.core.log.turn import RequestFingerprint
from lamella.core.messages import Usage

IMPRINT = RequestFingerprint(
    renderer=1, system="s", library="l", prefix="p", whole="w", segments=(1, 2, 3, 4, 1), unparsed=2
)
MOVED = PrefixChange(cause=PrefixChangeCause.ARTIFACT_ADDED, segment="https://example.org/?key=secret")
ENTRY = LedgerEntry(prefix=PrefixChangeReport(prefix_change=MOVED, common_tokens=None, triggered=False))


@pytest.fixture
def listening(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger="lamella"):
        yield caplog


def call(*, read: int | None, total: float) -> ModelCall:
    return ModelCall(
        model="m",
        verdict=CacheVerdict(outcome=CacheOutcome.HIT, prefix_change=PrefixChange(cause=PrefixChangeCause.NONE)),
        usage=Usage(plain=1, read=read),
        timing=CallTiming(build=0.5, first=total / 2, total=total),
    )


@pytest.mark.layout("library")
def test_answered_turn_is_logged_on_one_line(listening: pytest.LogCaptureFixture) -> None:
    chat = Conversation(conversation_key="garden")
    note = Note(path="secret-plan.md", text="The password is swordfish.")
    chat.ask("What is the secret?", attach=[note])
    assert listening.records == []
    chat.reply("It is swordfish.")
    turn = chat.ask("And again?", attach=[note])
    chat.reply("Swordfish.")
    first, second = listening.records
    assert (first.name, first.levelname) == ("lamella.turns", "INFO")
    told = dict(pair.split("=", 1) for pair in second.getMessage().removeprefix("turn ").split())
    envelope = turn.envelope
    assert told["conversation"] == "garden"
    assert told["message"] == envelope.message_id
    assert (told["prefix"], told["whole"]) == (envelope.prefix_hash, envelope.hash)
    assert (told["system"], told["library"]) == tuple(layer.hash for layer in envelope.layers[:2])
    assert (told["cause"], told["triggered"], told["cached"]) == ("artifact_added", "1", "-")
    assert (told["segments_L2_PREVIOUS"], told["dedup_ratio"], told["unparsed"]) == ("1", "1.0", "0")


def test_log_line_has_no_texts_or_addresses(listening: pytest.LogCaptureFixture) -> None:
    chat = Conversation(conversation_key="garden", system="Be a swordfish.")
    chat.ask("What is the secret?", attach=[Note(path="secret-plan.md", text="The password is swordfish.")])
    chat.reply("It is swordfish.")
    prompt = chat.ask("And now?").envelope.prompt
    log_turn(prompt, IMPRINT, entry=ENTRY, calls=(), level=logging.WARNING)
    for record in listening.records:
        assert "sword" not in record.getMessage()
        assert "secret" not in record.getMessage()
    assert listening.records[-1].levelname == "WARNING"
    assert "cause=artifact_added triggered=0" in listening.records[-1].getMessage()


def test_calls_are_summed_and_unknown_values_are_none() -> None:
    prompt = Conversation(conversation_key="garden").ask("hi").envelope.prompt
    told = describe_turn(prompt, IMPRINT, entry=None, calls=(call(read=3, total=1.0), call(read=4, total=2.0)))
    assert (told["calls"], told["cached"], told["predicted"]) == (2, 7, None)
    assert (told["build"], told["first"], told["total"]) == (1.0, 0.5, 3.0)
    assert (told["cause"], told["outcome"], told["triggered"]) == ("none", "hit", None)
    silent = describe_turn(prompt, IMPRINT, entry=None, calls=())
    assert (silent["calls"], silent["cached"], silent["total"], silent["cause"]) == (0, None, None, None)


def test_unprintable_name_is_escaped_in_log_line(listening: pytest.LogCaptureFixture) -> None:
    log_turn(
        Conversation(conversation_key="a b\x1b[31m").ask("hi").envelope.prompt,
        IMPRINT,
        entry=None,
        calls=(),
        level=logging.INFO,
    )
    assert r"conversation=a_b\x1b[31m message=" in listening.records[0].getMessage()


def test_nothing_is_computed_without_log_listener(caplog: pytest.LogCaptureFixture) -> None:
    chat = Conversation(conversation_key="garden")
    chat.ask("hi")
    chat.reply("hello")
    assert caplog.records == []
    assert TURN_LOGGER.name == "lamella.turns"


def test_used_tokens_and_answer_length_are_logged(listening: pytest.LogCaptureFixture) -> None:
    prompt = Conversation(conversation_key="garden", model="scripted:m").ask("hi").envelope.prompt
    used = ModelCall(
        model="m",
        verdict=CacheVerdict(outcome=CacheOutcome.HIT, prefix_change=PrefixChange(cause=PrefixChangeCause.NONE)),
        usage=Usage(plain=10, read=3, output=4),
    )
    log_turn(prompt, IMPRINT, entry=None, calls=(used, used), level=logging.INFO, text="Beans.")
    told = dict(pair.split("=", 1) for pair in listening.records[0].getMessage().removeprefix("turn ").split())
    assert (told["conversation"], told["model"], told["used"], told["length"]) == ("garden", "scripted:m", "34", "6")
    assert "preview" not in told
    assert "Beans" not in str(listening.records[0].__dict__)
    assert sum_used_tokens([]) is None


@pytest.mark.parametrize("said", ["a\nb", "a\r\nb", "a\u2028b", "a\u2029b", "a\x85b", "a\x0bb", "a\x1b[2Jb", "a\x00b"])
def test_log_line_is_single_line_for_any_answer(said: str, listening: pytest.LogCaptureFixture) -> None:
    prompt = Conversation(conversation_key="garden").ask("hi").envelope.prompt
    log_turn(prompt, IMPRINT, entry=None, calls=(), level=logging.INFO, text=said * 300, with_preview=True)
    (record,) = listening.records
    line = record.getMessage()
    assert line.splitlines() == [line]
    assert line.isprintable()
    shown = vars(record)["turn"]["preview"]
    assert shown.isprintable()
    assert shown.startswith("a")
    assert len(shown) == 203
    assert shown.endswith("...")


def test_short_answer_is_shown_whole() -> None:
    assert preview_text("Beans.\n\n  Peas.") == "Beans. Peas."
    assert preview_text("x" * 200) == "x" * 200
    assert preview_text("x" * 201) == "x" * 200 + "..."
    assert preview_text("x" + " " * 3_000 + "y") == "x..."


def test_preview_is_logged_only_if_enabled(
    listening: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for allowed in ("false", "true"):
        monkeypatch.setenv("LAMELLA_LOG_PREVIEW", allowed)
        chat = Conversation(conversation_key="garden")
        chat.ask("hi")
        chat.reply("It is\nswordfish.")
    without, shown = (record.getMessage() for record in listening.records)
    assert "sword" not in without
    assert shown.endswith("length=16 preview=It_is_swordfish.")
