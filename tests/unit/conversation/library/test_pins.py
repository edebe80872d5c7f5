"""Pins by the names that people give them: artifacts by their ids, messages by theirs or by their turn's number."""

import pytest
from tests.unit.core.compaction.stories import QUARTERS

from lamella import Conversation, Note
from lamella.conversation.library import message_ids_by_alias, resolve_pins
from lamella.conversation.turn import TurnRequest
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import advance_by_turn
from lamella.core.prompt.state import PromptState
from lamella.errors import ArtifactError, InvalidOperationError


def talk(turns: int = 3) -> Conversation:
    chat = Conversation(layout="in_place", window=8_000, reserve=0)
    for number in range(1, turns + 1):
        chat.ask(f"Question {number}? " + "word " * 40)
        chat.reply(f"Answer {number}. " + "word " * 40)
    return chat


def pinned(chat: Conversation, **more: object) -> list[str]:
    """The first two words of what is pinned once this is asked."""
    prompt = chat.ask("And?", **more).envelope.prompt  # type: ignore[arg-type]
    chat.reply("Yes.")
    said = {one.id: one.text for turn in prompt.history.turns for one in turn.messages}
    return sorted(" ".join(said[name].split()[:2]) for name in prompt.pinned)


def test_message_is_pinned_by_turn_number_or_id() -> None:
    chat = talk()
    assert pinned(chat, pin=["turn:1", "reply:2"]) == ["Answer 2.", "Question 1?"]
    first = next(iter(chat.preview("").envelope.prompt.history.turns)).reply.id
    assert pinned(chat, pin=[first]) == ["Answer 1.", "Answer 2.", "Question 1?"]


def test_message_aliases_map_ids_and_turns() -> None:
    state = advance_by_turn(
        PromptState(conversation="c"), Turn(text="One?", reply="One."), choose_layout, tokenizer=QUARTERS
    )
    (turn,) = state.history.turns
    asked, replied = turn.question.id, turn.reply.id
    assert message_ids_by_alias(state) == {"turn:1": asked, "reply:1": replied, asked: asked, replied: replied}


def test_pins_last_until_removed() -> None:
    chat = talk()
    assert pinned(chat, pin=["turn:1", "turn:2"]) == ["Question 1?", "Question 2?"]
    assert pinned(chat) == ["Question 1?", "Question 2?"]
    assert pinned(chat, unpin=["turn:1"]) == ["Question 2?"]
    assert pinned(chat, unpin=["turn:2"]) == []


def test_artifact_is_unpinned_by_id() -> None:
    chat = Conversation(layout="in_place")
    chat.ask("Read this.", attach=[Note(path="a.md", text="A", policy="pin")])
    chat.reply("Yes.")
    chat.ask("Let it go.", unpin=["a.md"])
    chat.reply("Yes.")
    turn = chat.ask("Out.", drop=["a.md"])
    assert turn.envelope.dropped == ("a.md",)


@pytest.mark.parametrize(("how", "done"), [("pin", "pinned"), ("unpin", "unpinned")])
def test_unknown_pin_is_refused(how: str, done: str) -> None:
    chat = talk()
    with pytest.raises(ArtifactError, match=f"turn:9 cannot be {done}") as caught:
        chat.ask("And?", **{how: ["turn:9"]})  # type: ignore[arg-type]
    assert "turn:3 or reply:3" in caught.value.hint


def test_removed_message_can_be_pinned_after_undo() -> None:
    chat = talk(8)
    assert chat.compact(to=0.02) is not None
    with pytest.raises(ArtifactError, match="turn:1 cannot be pinned"):
        chat.preview("And?", pin=["turn:1"])
    chat.undo()
    assert pinned(chat, pin=["turn:1"]) == ["Question 1?"]


def test_repeated_pin_of_missing_message_keeps_it() -> None:
    state = advance_by_turn(
        PromptState(conversation="c", pinned=frozenset({"gone"})),
        Turn(text="One?", reply="1."),
        choose_layout,
        tokenizer=QUARTERS,
    )
    assert resolve_pins(TurnRequest(text="And?", pin=("gone",)), state) == ((), None)
    assert resolve_pins(TurnRequest(text="And?", unpin=("gone",)), state) == ((), ())


@pytest.mark.parametrize("other", ["drop", "detach"])
@pytest.mark.parametrize("one", ["pin", "unpin"])
def test_keeping_and_dropping_in_one_turn_is_refused(one: str, other: str) -> None:
    chat = talk()
    chat.ask("Read this.", attach=[Note(path="a.md", text="A", policy="pin")])
    chat.reply("Yes.")
    with pytest.raises(InvalidOperationError, match=f"a.md is named by {one} and by {other} of the same turn"):
        chat.ask("And?", **{one: ["a.md"], other: ["a.md"]})  # type: ignore[arg-type]


def test_pin_and_unpin_of_same_message_are_refused() -> None:
    chat = talk()
    first = next(iter(chat.preview("").envelope.prompt.history.turns)).question.id
    with pytest.raises(InvalidOperationError, match="by pin and by unpin"):
        chat.ask("And?", pin=["turn:1"], unpin=[first])
