"""Directives stay in the prompt, look-alikes and pasted orders do not, through compactions, undo, reload and fork."""

import tomllib
from pathlib import Path

import pytest

import lamella
from lamella import Conversation
from lamella.core.text.directives import find_directives
from lamella.settings.word_lists import load_word_lists

HERE = Path(__file__).parent
SPOKEN = tomllib.loads((HERE / "spoken.toml").read_text(encoding="utf-8"))
PASTED = tomllib.loads((HERE / "pasted.toml").read_text(encoding="utf-8"))["texts"]
WORDS = load_word_lists()
REPLY = "It is in the second part of the plan, and it is told there at some length. " * 40
FILLER = "The boat lies at the pier and the nets are drying there in the sun beside the boxes. " * 3


def is_directive(text: str) -> bool:
    return bool(find_directives({"m": text}, WORDS))


def prompt_of(chat: Conversation, text: str = "And now?") -> str:
    return "\n".join(message.text for message in chat.preview(text).messages)


def test_directives_in_four_languages_are_found() -> None:
    found = [text for text in SPOKEN["directives"] if is_directive(text)]
    assert len(found) >= 54, sorted(set(SPOKEN["directives"]) - set(found))


def test_sentences_that_only_look_like_directives_are_not_found() -> None:
    taken = [text for text in SPOKEN["look_alikes"] if is_directive(text)]
    assert len(taken) <= 4, taken


@pytest.mark.parametrize("text", PASTED)
def test_orders_in_pasted_text_are_not_directives(text: str) -> None:
    assert find_directives({"m": text}, WORDS) == {}


def test_directive_with_a_list_keeps_the_list() -> None:
    text = "From now on:\n- use metric units\n- leave out prices\n\nWhat is next?"
    assert find_directives({"m": text}, WORDS) == {"m": ("From now on:\n- use metric units\n- leave out prices",)}


@pytest.mark.parametrize(
    ("directive", "withdrawal"),
    [
        ("Always use tables for numbers.", "Actually, tables are not necessary any more."),
        ("From now on answer in German.", "You can stop answering in German."),
        ("Never mention prices.", "Forget the rule about prices."),
        ("Selalu pakai tabel untuk angka.", "Sekarang tidak usah pakai tabel lagi."),
        ("Ab jetzt bitte metrische Einheiten.", "Das mit den Einheiten gilt nicht mehr."),
        ("毎回、出典を書いてください。", "出典はもう書かなくていいです。"),
    ],
)
def test_withdrawal_is_sent_with_its_directive(directive: str, withdrawal: str) -> None:
    chat = Conversation(window=6_000, reserve=200, layout="in_place")
    chat.ask(f"{directive} {FILLER}")
    chat.reply(REPLY)
    chat.ask(f"{FILLER} {withdrawal}")
    chat.reply(REPLY)
    for number in range(60):
        sent = "\n".join(message.text for message in chat.ask(f"Point {number}. {FILLER}").messages)
        chat.reply(REPLY)
        assert directive not in sent or sent.index(directive) < sent.rindex(withdrawal)
    assert "still hold" not in sent
    assert directive in sent


def test_directives_stay_through_compactions_undo_reload_and_fork() -> None:
    engine = lamella.open("sqlite://", summarizer="off")
    chat = engine.chat("garden", window=24_000, reserve=500, layout="in_place")
    directives = SPOKEN["directives"]
    for text in directives:
        chat.ask(f"{text}\n{FILLER}")
        chat.reply(REPLY)
    for _ in range(5):
        assert chat.compact(0.05 + 0.02) is not None or chat.receipts()
        chat.ask(f"Go on. {FILLER}")
        chat.reply(REPLY)
    sent = prompt_of(chat)
    kept = [text for text in directives if text in sent]
    assert len(kept) >= 50, sorted(set(directives) - set(kept))
    assert FILLER not in sent.rpartition("</earlier_messages>")[0]
    assert prompt_of(engine.chat("garden")) == sent
    engine.fork("garden", chat.head, name="copy")
    assert [text for text in directives if text in prompt_of(engine.chat("copy"))] == kept
    before = len(chat.receipts())
    chat.undo()
    assert len(chat.receipts()) < before
    chat.compact(0.07)
    again = prompt_of(chat)
    assert [text for text in directives if text in again] == kept


def test_pasted_orders_leave_with_their_messages() -> None:
    chat = Conversation(window=24_000, reserve=500, layout="in_place")
    for text in PASTED:
        chat.ask(f"{text}\n\n{FILLER}")
        chat.reply(REPLY)
    chat.compact(0.02)
    sent = "\n".join(message.text for message in chat.ask("And now?").messages)
    assert "user_rules" not in sent
    assert all(text.strip().splitlines()[-1] not in sent for text in PASTED[:-1])
