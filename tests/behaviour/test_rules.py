"""Rules: listed with their source, added and removed by hand, in every later prompt, whatever is compacted."""

import pytest

import lamella
from lamella import Conversation, Engine, StoredConversation
from lamella.errors import InvalidOperationError

WISH = "Always cite the page of whatever you quote from."
RULE = "Answer in one sentence."
LONG = "It is said in the plan, in its second part, and at some length. " * 60
LAYOUTS = ("library", "in_place", "auto")


def open_chat(**settings: object) -> tuple[Engine, StoredConversation]:
    engine = lamella.open("sqlite://", summarizer="off")
    given = {"layout": "in_place", "window": 6_000, "reserve": 500, "model": "test:plain", **settings}
    return engine, engine.chat("desk", **given)


def say(chat: StoredConversation | Conversation, text: str, reply: str = "Fine.") -> str:
    sent = "\n".join(message.text for message in chat.ask(text).messages)
    chat.reply(reply)
    return sent


def talk_long(chat: StoredConversation | Conversation, turns: int = 9) -> str:
    for number in range(turns):
        sent = say(chat, f"What is on desk {number}?", LONG)
    return sent


def test_what_was_said_is_listed_with_its_message() -> None:
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
def test_a_rule_added_by_hand_stands_until_it_is_removed(layout: str) -> None:
    engine, conversation = open_chat(layout=layout)
    with engine:
        say(conversation, "Hello?")
        conversation.add_rule(RULE)
        assert f"- {RULE}\n" in say(conversation, "Is that so?")
        sent = talk_long(conversation)
        assert conversation.receipts()
        assert sent.count(RULE) == 1
        conversation.compact(0.1)
        assert say(conversation, "Still?").count(RULE) == 1
        conversation.remove_rule(conversation.rules()[0].id)
        turn = conversation.ask("And without?")
        assert all(RULE not in message.text for message in turn.messages)
        assert turn.prefix_change.triggered
        conversation.reply("Yes.")
        assert RULE not in talk_long(conversation, 3)
        assert conversation.rules() == ()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_found_rule_that_was_removed_is_not_kept(layout: str) -> None:
    engine, conversation = open_chat(layout=layout)
    with engine:
        say(conversation, f"{WISH} Never guess.")
        assert conversation.remove_rule("1").text == WISH
        assert [one.text for one in conversation.rules()] == ["Never guess."]
        assert WISH in say(conversation, "Well?"), "what the user said still stands as long as its message does"
        talk_long(conversation)
        conversation.compact(0.1)
        sent = say(conversation, "And?")
        assert "- Never guess.\n" in sent
        assert WISH not in sent
        say(conversation, WISH)
        assert conversation.rules()[-1].text == WISH, "said again, it holds again"


def test_of_two_that_contradict_both_stand_and_the_newest_is_marked() -> None:
    engine, conversation = open_chat()
    with engine:
        say(conversation, "Always answer in English.")
        conversation.add_rule("Always answer in Indonesian.")
        say(conversation, "Well?")
        talk_long(conversation)
        conversation.compact(0.1)
        sent = say(conversation, "And?")
        assert "- Always answer in English.\n- (newest) Always answer in Indonesian.\n" in sent


def test_undo_forks_and_branches_know_rules() -> None:
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


def test_deleting_the_question_that_a_rule_came_with_leaves_the_rule() -> None:
    engine, conversation = open_chat()
    with engine:
        say(conversation, "Hello?")
        conversation.add_rule(RULE)
        say(conversation, "Well?")
        say(conversation, "More?")
        conversation.delete(conversation.turns()[1].message.id)
        assert RULE in say(conversation, "Next?")


def test_a_rule_that_waits_is_there_when_the_conversation_is_opened_again() -> None:
    engine, conversation = open_chat()
    with engine:
        say(conversation, "Hello?")
        conversation.add_rule(RULE)
        again = engine.chat("desk")
        assert [one.text for one in again.rules()] == [RULE]
        assert RULE in say(again, "Well?")
        assert engine.chat("desk").preview("More?").messages == again.preview("More?").messages


@pytest.mark.parametrize("history", ["window", "strip"])
def test_wishes_of_turns_that_are_not_shown_stay(history: str) -> None:
    engine, conversation = open_chat(history=history, history_turns=2, layout="library")
    with engine:
        say(conversation, f"Thanks. {WISH}")
        conversation.add_rule(RULE)
        for number in range(4):
            sent = say(conversation, f"What is on desk {number}?")
        assert f"- {WISH}\n- (newest) {RULE}\n" in sent
        assert engine.chat("desk").preview("More?").messages == conversation.preview("More?").messages
        conversation.remove_rule(WISH)
        assert f"- {WISH}" not in say(conversation, "Well?")


def test_a_transcript_tells_of_rules() -> None:
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


def test_a_conversation_in_memory_has_rules() -> None:
    chat = Conversation(window=6_000, reserve=500)
    say(chat, WISH)
    chat.add_rule(RULE)
    assert RULE in say(chat, "Well?")
    assert [one.text for one in chat.rules()] == [WISH, RULE]
    chat.remove_rule("2")
    assert RULE not in say(chat, "And?")


def test_what_cannot_be_a_rule_is_refused() -> None:
    engine, conversation = open_chat()
    with engine:
        with pytest.raises(InvalidOperationError, match="1 to 400"):
            conversation.add_rule("x" * 401)
        with pytest.raises(InvalidOperationError, match="1 to 400"):
            conversation.add_rule(" ")
        with pytest.raises(InvalidOperationError, match="no rule 'k'"):
            conversation.remove_rule("k")
        with pytest.raises(InvalidOperationError, match="are for them"):
            add_many(conversation)
        assert 2 < len(conversation.rules()) < 40


def add_many(chat: StoredConversation) -> None:
    for number in range(40):
        chat.add_rule(f"Rule {number}: " + "be brief and clear " * 6)


@pytest.mark.parametrize("history", ["window", "strip"])
def test_cues_of_ones_own_count_for_turns_that_history_does_not_show(history: str) -> None:
    wish = "Roger wilco means page numbers everywhere."
    settings = {"history": history, "history_turns": 2, "window": 60_000, "layout": "library"}
    engine, conversation = open_chat(**settings, compaction={"cues": ["roger wilco"]})
    with engine:
        say(conversation, wish)
        sent = talk_long(conversation, 4)
        assert wish in sent
        assert [rule.text for rule in conversation.rules()] == [wish]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rules_of_a_large_window_leave_room_for_a_question_in_a_small_one(layout: str) -> None:
    engine, conversation = open_chat(layout=layout, window=40_000)
    with engine:
        for number in range(60):
            say(conversation, f"Always name harbour {number}, {LONG[:160]}")
        conversation.compact(to=0.02)
        for number in range(40):
            conversation.add_rule(f"Name tower {number}, whatever is asked, as it was said in the plan.")
        say(conversation, "And now?")
        for window in (4_000, 1_000, 600):
            conversation.set(window=window, reserve=50)
            turn = conversation.ask("And now?")
            sent = "\n".join(message.text for message in turn.messages)
            assert turn.tokens.total <= 0.95 * (window - 50)
            conversation.reply("Fine.")
        assert "older; recall finds them" in sent
        assert all(not one.certificate.lost_count for one in conversation.receipts() if one.certificate)
        assert len(conversation.rules()) == 100
        assert "tower 0," not in sent
        (found, *_) = conversation.recall("tower 0")
        assert found.passage.text.startswith("Name tower 0, whatever is asked")


def test_wishes_of_a_large_window_go_before_the_talk_of_a_small_one() -> None:
    engine, conversation = open_chat(window=60_000)
    with engine:
        for number in range(150):
            say(conversation, f"Always name harbour {number}, {LONG[:100]}")
        conversation.compact(to=0.02)
        talk_long(conversation, 4)
        conversation.set(window=8_000)
        turn = conversation.ask("And now?")
        assert turn.compaction is not None
        assert turn.compaction.steps[0].name == "rules"
        sent = "\n".join(message.text for message in turn.messages)
        assert "What is on desk 0?" in sent
        assert turn.tokens.by_layer["L4_STRIP"] < 0.85 * 7_500
