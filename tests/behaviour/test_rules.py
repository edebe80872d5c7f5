"""Rules: listed with their source, added and removed by hand, in every later prompt, whatever is compacted."""

import pytest

import lamella
from lamella import Chat, Conversation, Engine
from lamella.errors import CallError

WISH = "Always cite the page of whatever you quote from."
RULE = "Answer in one sentence."
LONG = "It is said in the plan, in its second part, and at some length. " * 60
LAYOUTS = ("library", "in_place", "auto")


def open_chat(**settings: object) -> tuple[Engine, Chat]:
    engine = lamella.open("sqlite://", summarizer="off")
    given = {"layout": "in_place", "window": 6_000, "reserve": 500, "model": "test:plain", **settings}
    return engine, engine.chat("desk", **given)


def say(chat: Chat | Conversation, text: str, reply: str = "Fine.") -> str:
    sent = "\n".join(message.text for message in chat.ask(text).messages)
    chat.reply(reply)
    return sent


def talk_long(chat: Chat | Conversation, turns: int = 9) -> str:
    for number in range(turns):
        sent = say(chat, f"What is on desk {number}?", LONG)
    return sent


def test_what_was_said_is_listed_with_its_message() -> None:
    engine, chat = open_chat()
    with engine:
        say(chat, f"Thanks. {WISH}")
        (found,) = chat.rules()
        assert (found.text, found.turn, found.by) == (WISH, 1, "found")
        assert found.message == chat.turns()[0].message.id
        added = chat.add_rule(f"  {RULE}\n")
        assert (added.text, added.message, added.turn, added.by) == (RULE, "", 2, "user")
        say(chat, "And now?")
        assert [(one.turn, one.by) for one in chat.rules()] == [(1, "found"), (2, "user")]
        assert chat.rules()[1].message == chat.turns()[1].message.id


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_rule_added_by_hand_stands_until_it_is_removed(layout: str) -> None:
    engine, chat = open_chat(layout=layout)
    with engine:
        say(chat, "Hello?")
        chat.add_rule(RULE)
        assert f"- {RULE}\n" in say(chat, "Is that so?")
        sent = talk_long(chat)
        assert chat.receipts()
        assert sent.count(RULE) == 1
        chat.compact(0.1)
        assert say(chat, "Still?").count(RULE) == 1
        chat.remove_rule(chat.rules()[0].id)
        turn = chat.ask("And without?")
        assert all(RULE not in message.text for message in turn.messages)
        assert turn.prefix.triggered
        chat.reply("Yes.")
        assert RULE not in talk_long(chat, 3)
        assert chat.rules() == ()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_found_rule_that_was_removed_is_not_kept(layout: str) -> None:
    engine, chat = open_chat(layout=layout)
    with engine:
        say(chat, f"{WISH} Never guess.")
        assert chat.remove_rule("1").text == WISH
        assert [one.text for one in chat.rules()] == ["Never guess."]
        assert WISH in say(chat, "Well?"), "what the user said still stands as long as its message does"
        talk_long(chat)
        chat.compact(0.1)
        sent = say(chat, "And?")
        assert "- Never guess.\n" in sent
        assert WISH not in sent
        say(chat, WISH)
        assert chat.rules()[-1].text == WISH, "said again, it holds again"


def test_of_two_that_contradict_both_stand_and_the_newest_is_marked() -> None:
    engine, chat = open_chat()
    with engine:
        say(chat, "Always answer in English.")
        chat.add_rule("Always answer in Indonesian.")
        say(chat, "Well?")
        talk_long(chat)
        chat.compact(0.1)
        sent = say(chat, "And?")
        assert "- Always answer in English.\n- (newest) Always answer in Indonesian.\n" in sent


def test_undo_forks_and_branches_know_rules() -> None:
    engine, chat = open_chat()
    with engine:
        say(chat, "Hello?")
        before = chat.head
        chat.add_rule(RULE)
        say(chat, "Well?", LONG)
        say(chat, "And?", LONG)
        plain = chat.preview("Next?").messages
        receipt = chat.compact(0.01)
        assert receipt is not None
        assert RULE in chat.preview("Next?").messages[0].text
        chat.undo(receipt.id)
        assert chat.preview("Next?").messages == plain
        engine.fork("desk", chat.head, name="copy")
        copy = engine.chat("copy")
        assert [one.text for one in copy.rules()] == [RULE]
        assert RULE in say(copy, "Next?")
        chat.fork(before)
        assert chat.rules() == ()
        assert RULE not in say(chat, "Elsewhere?")


def test_deleting_the_question_that_a_rule_came_with_leaves_the_rule() -> None:
    engine, chat = open_chat()
    with engine:
        say(chat, "Hello?")
        chat.add_rule(RULE)
        say(chat, "Well?")
        say(chat, "More?")
        chat.delete(chat.turns()[1].message.id)
        assert RULE in say(chat, "Next?")


def test_a_rule_that_waits_is_there_when_the_conversation_is_opened_again() -> None:
    engine, chat = open_chat()
    with engine:
        say(chat, "Hello?")
        chat.add_rule(RULE)
        again = engine.chat("desk")
        assert [one.text for one in again.rules()] == [RULE]
        assert RULE in say(again, "Well?")
        assert engine.chat("desk").preview("More?").messages == again.preview("More?").messages


@pytest.mark.parametrize("history", ["window", "strip"])
def test_wishes_of_turns_that_are_not_shown_stay(history: str) -> None:
    engine, chat = open_chat(history=history, history_turns=2, layout="library")
    with engine:
        say(chat, f"Thanks. {WISH}")
        chat.add_rule(RULE)
        for number in range(4):
            sent = say(chat, f"What is on desk {number}?")
        assert f"- {WISH}\n- (newest) {RULE}\n" in sent
        assert engine.chat("desk").preview("More?").messages == chat.preview("More?").messages
        chat.remove_rule(WISH)
        assert f"- {WISH}" not in say(chat, "Well?")


def test_a_transcript_tells_of_rules() -> None:
    engine, chat = open_chat()
    with engine:
        say(chat, "Hello?")
        chat.add_rule(RULE)
        say(chat, "Well?")
        chat.remove_rule(RULE)
        say(chat, "And?")
        turns = chat.transcript()["turns"]
        assert isinstance(turns, list)
        assert [(turn.get("rules"), turn.get("ended_rules")) for turn in turns] == [
            (None, None),
            ([RULE], None),
            (None, [RULE]),
        ]


def test_a_conversation_in_memory_has_rules() -> None:
    chat = Conversation(window=6_000, reserve=500)
    say(chat, WISH)
    chat.add_rule(RULE)
    assert RULE in say(chat, "Well?")
    assert [one.text for one in chat.rules()] == [WISH, RULE]
    chat.remove_rule("2")
    assert RULE not in say(chat, "And?")


def test_what_cannot_be_a_rule_is_refused() -> None:
    engine, chat = open_chat()
    with engine:
        with pytest.raises(CallError, match="1 to 400"):
            chat.add_rule("x" * 401)
        with pytest.raises(CallError, match="1 to 400"):
            chat.add_rule(" ")
        with pytest.raises(CallError, match="no rule 'k'"):
            chat.remove_rule("k")
        with pytest.raises(CallError, match="are for them"):
            add_many(chat)
        assert 2 < len(chat.rules()) < 40


def add_many(chat: Chat) -> None:
    for number in range(40):
        chat.add_rule(f"Rule {number}: " + "be brief and clear " * 6)


@pytest.mark.parametrize("history", ["window", "strip"])
def test_cues_of_ones_own_count_for_turns_that_history_does_not_show(history: str) -> None:
    wish = "Roger wilco means page numbers everywhere."
    settings = {"history": history, "history_turns": 2, "window": 60_000, "layout": "library"}
    engine, chat = open_chat(**settings, compaction={"cues": ["roger wilco"]})
    with engine:
        say(chat, wish)
        sent = talk_long(chat, 4)
        assert wish in sent
        assert [rule.text for rule in chat.rules()] == [wish]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rules_of_a_large_window_leave_room_for_a_question_in_a_small_one(layout: str) -> None:
    engine, chat = open_chat(layout=layout, window=40_000)
    with engine:
        for number in range(60):
            say(chat, f"Always name harbour {number}, {LONG[:160]}")
        chat.compact(to=0.02)
        for number in range(40):
            chat.add_rule(f"Name tower {number}, whatever is asked, as it was said in the plan.")
        say(chat, "And now?")
        for window in (4_000, 1_000, 600):
            chat.set(window=window, reserve=50)
            turn = chat.ask("And now?")
            sent = "\n".join(message.text for message in turn.messages)
            assert turn.tokens.total <= 0.95 * (window - 50)
            chat.reply("Fine.")
        assert "older; recall finds them" in sent
        assert all(not one.certificate.gone for one in chat.receipts() if one.certificate)
        assert len(chat.rules()) == 100
        assert "tower 0," not in sent
        (found, *_) = chat.recall("tower 0")
        assert found.passage.text.startswith("Name tower 0, whatever is asked")


def test_wishes_of_a_large_window_go_before_the_talk_of_a_small_one() -> None:
    engine, chat = open_chat(window=60_000)
    with engine:
        for number in range(150):
            say(chat, f"Always name harbour {number}, {LONG[:100]}")
        chat.compact(to=0.02)
        talk_long(chat, 4)
        chat.set(window=8_000)
        turn = chat.ask("And now?")
        assert turn.compaction is not None
        assert turn.compaction.steps[0].name == "rules"
        sent = "\n".join(message.text for message in turn.messages)
        assert "What is on desk 0?" in sent
        assert turn.tokens.by_layer["L4_STRIP"] < 0.85 * 7_500
