"""Lists of directives, look-alikes and pasted texts that were first measured before the word lists were changed by them.

Each file says what its first measurement gave: that is the estimate for texts that nobody has seen. The bounds here are
for the rules of today, which were improved with all of these files but the last in view.
"""

import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

import lamella
from lamella import Conversation
from lamella.core.text.directives import find_directives
from lamella.settings.word_lists import load_word_lists

HERE = Path(__file__).parent / "unseen"
NAMES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
# Measured once, after the last change of the rules, which were not changed with it in view.
LAST = "ninth"
WORDS = load_word_lists()
REPLY = "It is in the second part of the plan, and it is told there at some length. " * 40
FILLER = "The boat lies at the pier and the nets are drying there in the sun beside the boxes. " * 3


class Battery(NamedTuple):
    """Directives with the part that has to be kept, look-alikes, pasted texts, and directives with their withdrawals."""

    directives: tuple[tuple[str, str], ...]
    look_alikes: tuple[str, ...]
    pasted: tuple[str, ...]
    withdrawals: tuple[tuple[str, str], ...]


def load_battery(name: str) -> Battery:
    data = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))
    if "directive" in data:
        return Battery(
            directives=tuple((one["text"], one["keep"]) for one in data["directive"]),
            look_alikes=tuple(one["text"] for one in data["look_alike"]),
            pasted=tuple(one["text"] for one in data["pasted"]),
            withdrawals=(),
        )
    return Battery(
        directives=tuple(
            (one, one) if isinstance(one, str) else (one["text"], one["keep"]) for one in data["directives"]
        ),
        look_alikes=tuple(data["look_alikes"]),
        pasted=tuple(data["pasted"]),
        withdrawals=tuple((directive, withdrawal) for directive, withdrawal in data["withdrawals"]),
    )


def find(text: str) -> tuple[str, ...]:
    return find_directives({"m": text}, WORDS).get("m", ())


@pytest.mark.parametrize("name", NAMES)
def test_counts_of_each_list_meet_their_bounds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    battery = load_battery(name)
    missed = [text for text, keep in battery.directives if not any(keep in found for found in find(text))]
    taken = [text for text in battery.look_alikes if find(text)]
    pasted = [text for text in battery.pasted if find(text)]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{name}: {len(battery.directives) - len(missed)} of {len(battery.directives)} directives found, "
            f"{len(taken)} of {len(battery.look_alikes)} look-alikes and {len(pasted)} of {len(battery.pasted)} pasted "
            "texts taken\n"
        )
    assert 6 * len(missed) <= len(battery.directives), missed
    assert 6 * len(taken) <= len(battery.look_alikes), taken
    assert pasted == []


def test_list_that_no_rule_was_changed_for_keeps_its_counts() -> None:
    battery = load_battery(LAST)
    found = [text for text, keep in battery.directives if any(keep in one for one in find(text))]
    assert len(found) >= 45
    assert len([text for text in battery.look_alikes if find(text)]) <= 2
    assert len([text for text in battery.pasted if find(text)]) <= 1


@pytest.mark.parametrize("name", NAMES)
def test_what_is_found_is_a_verbatim_part_of_the_message(name: str) -> None:
    battery = load_battery(name)
    for text in (*(text for text, _ in battery.directives), *battery.look_alikes, *battery.pasted):
        assert all(found in text for found in find(text)), (text, find(text))


@pytest.mark.parametrize("name", NAMES[2:])
def test_withdrawals_are_found_with_their_directives(name: str) -> None:
    for directive, withdrawal in load_battery(name).withdrawals:
        found = find_directives({"1": directive, "2": "The boats are in. It was a long day.", "3": withdrawal}, WORDS)
        assert "3" in found or "1" not in found, (directive, withdrawal)


@pytest.mark.parametrize("name", NAMES)
def test_directives_stay_through_compactions_undo_reload_and_fork(name: str) -> None:
    directives = load_battery(name).directives
    engine = lamella.open("sqlite://", summarizer="off")
    # Directives keep a share of the window, so that a longer list needs a larger one.
    chat = engine.chat("garden", window=400 * max(60, len(directives)), reserve=500, layout="in_place")
    for text, _ in directives:
        chat.ask(f"{text}\n\n{FILLER}")
        chat.reply(REPLY)
    for _ in range(5):
        chat.compact(0.07)
        chat.ask(f"Go on. {FILLER}")
        chat.reply(REPLY)
    kept = list_kept(chat, directives)
    assert 6 * len(kept) >= 5 * len(directives), sorted({keep for _, keep in directives} - set(kept))
    assert list_kept(engine.chat("garden"), directives) == kept
    engine.fork("garden", chat.head, name="copy")
    assert list_kept(engine.chat("copy"), directives) == kept
    chat.undo()
    chat.compact(0.07)
    assert list_kept(chat, directives) == kept


def list_kept(chat: Conversation, directives: tuple[tuple[str, str], ...]) -> list[str]:
    sent = "\n".join(message.text for message in chat.preview("And now?").messages)
    return [keep for _, keep in directives if keep in sent]


@pytest.mark.parametrize("name", NAMES)
def test_look_alikes_cost_at_most_two_percent_of_the_prompt(name: str) -> None:
    battery = load_battery(name)
    chat = Conversation(window=24_000, reserve=500, layout="in_place")
    for text in battery.look_alikes:
        chat.ask(f"{text}\n\n{FILLER}")
        chat.reply(REPLY)
    sent = chat.ask("And now?")
    digest = "\n".join(message.text for message in sent.messages).partition("</earlier_messages>")[0]
    left = [text for text in battery.look_alikes if text in digest and f"{text}\n\n{FILLER[:20]}" not in digest]
    characters = sum(len(message.text) for message in sent.messages)
    assert sum(map(len, left)) <= 0.02 * characters, left


@pytest.mark.parametrize("name", NAMES)
def test_orders_in_pasted_texts_leave_with_their_messages(name: str) -> None:
    chat = Conversation(window=24_000, reserve=500, layout="in_place")
    texts = load_battery(name).pasted
    for text in texts:
        chat.ask(f"{text}\n\n{FILLER}")
        chat.reply(REPLY)
    chat.compact(0.02)
    digest = "\n".join(message.text for message in chat.ask("And now?").messages).partition("</earlier_messages>")[0]
    assert "user_rules" not in digest
    # What is left of a message is its own words as a whole or nothing.
    for number, text in enumerate(texts):
        assert f"[{2 * number + 1}]" not in digest or text.strip()[:40] in digest
