"""Rules: listed with their source, added and removed, and part of every later prompt after any compaction."""

from pathlib import Path

import pytest

import lamella
from lamella import Conversation, Engine
from lamella.errors import InvalidOperationError

WISH = "Always cite the page of whatever you quote from."
RULE = "Answer in one sentence."
LONG = "It is said in the plan, in its second part, and at some length. " * 60
LAYOUTS = ("library", "in_place", "auto")


def open_chat(**settings: object) -> tuple[Engine, Conversation]:
    engine = lamella.open("sqlite://", summarizer="off")
    given = {"layout": "in_place", "window": 6_000, "reserve": 500, "model": "test:plain", **settings}
    return engine, engine.chat("desk", **given)


def say(chat: Conversation | Conversation, text: str, reply: str = "Fine.") -> str:
    sent = "\n".join(message.text for message in chat.ask(text).messages)
    chat.reply(reply)
    return sent


def make_long_conversation(chat: Conversation | Conversation, turns: int = 9) -> str:
    for number in range(turns):
        sent = say(chat, f"What is on desk {number}?", LONG)
    return sent


def test_detected_rule_is_listed_with_its_message() -> None:
    engine, conversation = open_chat()
    with engine:
        say(conversation, f"Thanks. {WISH}")
        (found,) = conversation.rules()
        assert (found.text, found.turn, found.origin) == (WISH, 1, "found")
        assert found.message == conversation.turns()[0].message.id
        added = conversation.add_rule(f"  {RULE}\n")
        assert (added.text, added.message, added.turn, added.origin) == (RULE, "", 2, "user")
        say(conversation, "And now?")
        assert [(one.turn, one.origin) for one in conversation.rules()] == [(1, "found"), (2, "user")]
        assert conversation.rules()[1].message == conversation.turns()[1].message.id


@pytest.mark.parametrize("layout", LAYOUTS)
def test_added_rule_is_sent_until_removed(layout: str) -> None:
    engine, conversation = open_chat(layout=layout)
    with engine:
        say(conversation, "Hello?")
        conversation.add_rule(RULE)
        assert f"- {RULE}\n" in say(conversation, "Is that so?")
        sent = make_long_conversation(conversation)
        assert conversation.receipts()
        assert sent.count(RULE) == 1
        conversation.compact(0.1)
        assert say(conversation, "Still?").count(RULE) == 1
        conversation.remove_rule(conversation.rules()[0].id)
        turn = conversation.ask("And without?")
        assert all(RULE not in message.text for message in turn.messages)
        assert turn.prefix_change.triggered
        conversation.reply("Yes.")
        assert RULE not in make_long_conversation(conversation, 3)
        assert conversation.rules() == ()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dismissed_rule_candidate_is_not_listed(layout: str) -> None:
    engine, conversation = open_chat(layout=layout)
    with engine:
        say(conversation, f"{WISH} Never guess. {LONG[:300]}")
        assert conversation.remove_rule("1").text == WISH
        assert [one.text for one in conversation.rules()] == ["Never guess."]
        assert WISH in say(conversation, "Well?"), "a message stays as it was said"
        make_long_conversation(conversation)
        conversation.compact(0.01)
        sent = say(conversation, "And?")
        assert "[1] Never guess.\n" in sent
        assert WISH not in sent
        say(conversation, WISH)
        assert conversation.rules()[-1].text == WISH, "said again, it is a candidate again"


def test_contradictory_directives_are_both_kept_in_order() -> None:
    engine, conversation = open_chat()
    with engine:
        say(conversation, f"Always answer in English. {LONG[:300]}")
        say(conversation, f"Well, always answer in Indonesian. {LONG[:300]}")
        make_long_conversation(conversation)
        conversation.compact(0.01)
        sent = say(conversation, "And?")
        assert "[1] Always answer in English.\n[3] Well, always answer in Indonesian.\n" in sent
        assert "still hold" not in sent


def test_rules_survive_undo_forks_and_branches() -> None:
    engine, conversation = open_chat()
    with engine:
        say(conversation, "Hello?")
        before = conversation.head
        conversation.add_rule(RULE)
        say(conversation, "Well?", LONG)
        say(conversation, "And?", LONG)
        plain = conversation.preview("Next?").messages
        receipt = conversation.compact(0.01)
        assert receipt is not None
        assert RULE in conversation.preview("Next?").messages[0].text
        conversation.undo(receipt.id)
        assert conversation.preview("Next?").messages == plain
        engine.fork("desk", conversation.head, name="copy")
        copy = engine.chat("copy")
        assert [one.text for one in copy.rules()] == [RULE]
        assert RULE in say(copy, "Next?")
        conversation.fork(before)
        assert conversation.rules() == ()
        assert RULE not in say(conversation, "Elsewhere?")


def test_deleting_question_keeps_its_added_rule() -> None:
    engine, conversation = open_chat()
    with engine:
        say(conversation, "Hello?")
        conversation.add_rule(RULE)
        say(conversation, "Well?")
        say(conversation, "More?")
        conversation.delete(conversation.turns()[1].message.id)
        assert RULE in say(conversation, "Next?")


def test_pending_rule_survives_reopen() -> None:
    engine, conversation = open_chat()
    with engine:
        say(conversation, "Hello?")
        conversation.add_rule(RULE)
        again = engine.chat("desk")
        assert [one.text for one in again.rules()] == [RULE]
        assert RULE in say(again, "Well?")
        assert engine.chat("desk").preview("More?").messages == again.preview("More?").messages


@pytest.mark.parametrize("history", ["window", "strip"])
def test_only_added_rules_of_turns_that_are_not_shown_stay(history: str) -> None:
    engine, conversation = open_chat(history=history, history_turns=2, layout="library")
    with engine:
        say(conversation, f"Thanks. {WISH}")
        conversation.add_rule(RULE)
        for number in range(4):
            sent = say(conversation, f"What is on desk {number}?")
        assert f"- {RULE}\n" in sent
        assert WISH not in sent or history == "strip"
        assert engine.chat("desk").preview("More?").messages == conversation.preview("More?").messages


def test_transcript_includes_rules() -> None:
    engine, conversation = open_chat()
    with engine:
        say(conversation, "Hello?")
        conversation.add_rule(RULE)
        say(conversation, "Well?")
        conversation.remove_rule(RULE)
        say(conversation, "And?")
        turns = conversation.transcript()["turns"]
        assert isinstance(turns, list)
        assert [(turn.get("rules"), turn.get("ended_rules")) for turn in turns] == [
            (None, None),
            ([RULE], None),
            (None, [RULE]),
        ]


def test_conversation_in_memory_has_rules() -> None:
    chat = Conversation(window=6_000, reserve=500)
    say(chat, WISH)
    chat.add_rule(RULE)
    assert RULE in say(chat, "Well?")
    assert [one.text for one in chat.rules()] == [WISH, RULE]
    chat.remove_rule("2")
    assert RULE not in say(chat, "And?")


def test_invalid_rule_is_refused() -> None:
    engine, conversation = open_chat()
    with engine:
        with pytest.raises(InvalidOperationError, match="1 to 400"):
            conversation.add_rule("x" * 401)
        with pytest.raises(InvalidOperationError, match="1 to 400"):
            conversation.add_rule(" ")
        with pytest.raises(InvalidOperationError, match="no rule 'k'"):
            conversation.remove_rule("k")


def test_rule_is_in_system_prompt_until_removed() -> None:
    engine, conversation = open_chat()
    with engine:
        say(conversation, "Hello?")
        conversation.add_rule("Close no block with </user_rules>.")
        turn = conversation.ask("And now?")
        assert str(turn.prefix_change.prefix_change) == "system_changed(rules)"
        assert turn.messages[0].text.endswith(
            "<user_rules>\nRules that the user set for this conversation:\n- Close no block with <\\/user_rules>.\n"
            "</user_rules>"
        )
        conversation.reply("Fine.")
        (rule,) = conversation.rules()
        conversation.remove_rule(rule.id)
        assert "user_rules" not in say(conversation, "Well?")


def test_confirmed_candidate_is_a_rule() -> None:
    engine, conversation = open_chat()
    with engine:
        say(conversation, f"Thanks. {WISH}")
        (candidate,) = conversation.rules()
        assert (candidate.origin, candidate.turn) == ("found", 1)
        assert "user_rules" not in say(conversation, "Well?")
        conversation.add_rule(candidate.text)
        assert [(one.text, one.origin) for one in conversation.rules()] == [(WISH, "user")]
        assert f"- {WISH}\n</user_rules>" in say(conversation, "And?")


def test_custom_cues_detect_directives() -> None:
    directive = "Roger wilco means page numbers everywhere."
    engine, conversation = open_chat(compaction={"cues": ["roger wilco"]})
    with engine:
        say(conversation, f"{directive} {LONG[:300]}")
        make_long_conversation(conversation, 4)
        conversation.compact(0.01)
        assert f"[1] {directive}\n" in say(conversation, "Well?")
        assert [rule.text for rule in conversation.rules()] == [directive]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("history", ["full", "window", "strip"])
def test_directive_is_never_sent_without_its_withdrawal(history: str, layout: str) -> None:
    directive, withdrawal = "Always use tables for numbers.", "Actually, tables are not necessary any more."
    chat = Conversation(window=6_000, reserve=200, layout=layout, history=history, history_turns=3)
    say(chat, f"{directive} {LONG[:300]}", LONG[:600])
    say(chat, f"Well. {LONG[:300]}", LONG[:600])
    chat.compact(0.01)
    say(chat, f"{withdrawal} {LONG[:300]}")
    for number in range(8):
        sent = say(chat, f"Point {number}.")
        assert directive not in sent or withdrawal in sent


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("history", ["window", "strip"])
def test_directive_is_hidden_with_its_withdrawal_once_history_is_limited(history: str, layout: str) -> None:
    directive, withdrawal = "Always use tables for numbers.", "Actually, tables are not necessary any more."
    chat = Conversation(window=6_000, reserve=200, layout=layout, history_turns=3)
    say(chat, f"{directive} {LONG[:300]}", LONG[:600])
    say(chat, f"Well. {LONG[:300]}", LONG[:600])
    chat.compact(0.01)
    assert directive in say(chat, f"{withdrawal} {LONG[:300]}")
    chat.set(history=history)
    for number in range(8):
        sent = say(chat, f"Point {number}.")
        assert directive not in sent or withdrawal in sent
    chat.compact(0.01)
    assert directive not in say(chat, "Well?")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_withdrawal_of_shown_directive_stays_when_its_turn_is_removed(layout: str) -> None:
    directive, withdrawal = "Always use tables for numbers.", "Actually, tables are not necessary any more."
    chat = Conversation(window=6_000, reserve=200, layout=layout, history_turns=10)
    say(chat, f"{directive} {LONG[:300]}", LONG[:600])
    say(chat, f"Well. {LONG[:300]}", LONG[:600])
    chat.compact(0.01)
    chat.set(history="window")
    say(chat, f"{withdrawal} {LONG[:300]}", LONG[:600])
    say(chat, "Well?", LONG[:600])
    assert chat.compact(0.01) is not None
    sent = say(chat, "And now?")
    assert directive in sent
    assert withdrawal in sent
    assert f"{withdrawal} {LONG[:300]}" not in sent


def test_directive_stays_hidden_after_reopening(tmp_path: Path) -> None:
    directive, store = "Always use tables for numbers.", f"sqlite:///{tmp_path / 'chat.db'}"
    engine = lamella.open(store, summarizer="off")
    with engine:
        chat = engine.chat("desk", window=6_000, reserve=200, layout="library", history_turns=3, model="test:plain")
        say(chat, f"{directive} {LONG[:300]}", LONG[:600])
        say(chat, f"Well. {LONG[:300]}", LONG[:600])
        chat.compact(0.01)
        chat.set(history="window")
        for number in range(20):
            sent = say(chat, f"Point {number}.")
        assert directive not in sent
    engine = lamella.open(store, summarizer="off")
    with engine:
        assert directive not in say(engine.chat("desk"), "And now?")
