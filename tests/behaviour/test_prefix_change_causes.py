"""The cause of a move is what the person did: a compaction that takes an updated note in is still a compaction."""

import pytest
from tests.conftest import Watched
from tests.unit.conversation.backends import make_chat

from lamella import Conversation, Note
from lamella.core.log.call import PrefixChangeCause

LONG = "word " * 400


def updated(converse: type[Watched], layout: str) -> Watched:
    """A conversation whose library holds a note, of which a newer text was attached since."""
    chat = converse(layout=layout, compaction={"steps": ["expendable"]})
    chat.ask("Read this.", attach=[Note(path="a.md", text=f"{LONG} old")])
    chat.reply("I did.")
    chat.ask("Fold it.", fold=True)
    chat.reply("Folded.")
    for number in range(4):
        chat.ask(f"Question {number}? {LONG}")
        chat.reply(f"Answer {number}.")
    chat.ask("It changed.", attach=[Note(path="a.md", text=f"{LONG} new")])
    chat.reply("So it did.")
    return chat


@pytest.mark.moves_prefix(reason="a fold and a compaction move the prefix")
def test_in_place_compaction_of_update_is_named_as_cause(converse: type[Watched]) -> None:
    chat = updated(converse, "in_place")
    receipt = chat.compact(to=0.01)
    assert receipt is not None
    assert [step.name for step in receipt.steps] == ["expendable"]
    assert chat.ask("And now?").prefix_change.prefix_change.cause is PrefixChangeCause.COMPACTED


@pytest.mark.moves_prefix(reason="a library takes every note in, and a compaction moves the prefix")
def test_library_update_would_have_moved_prefix_without_compaction(converse: type[Watched]) -> None:
    chat = updated(converse, "library")
    assert chat.compact(to=0.01) is not None
    movement = chat.ask("And now?").prefix_change.prefix_change
    assert (movement.cause, movement.segment) == (PrefixChangeCause.ARTIFACT_UPDATED, "a.md")


@pytest.mark.parametrize(("before", "now"), [("auto", "in_place"), ("in_place", "auto"), ("library", "in_place")])
@pytest.mark.parametrize("by_hand", [True, False], ids=["by hand", "by itself"])
def test_layout_change_explains_prefix_change_despite_compaction(before: str, now: str, *, by_hand: bool) -> None:
    conversation = make_chat(layout=before, window=60_000 if by_hand else 2_600, reserve=0)
    for number in range(3):
        conversation.ask(f"Question {number}?", attach=[Note(path=f"{number}.md", text=LONG)])
        conversation.reply(LONG)
    if by_hand:
        assert conversation.compact(to=0.02) is not None
    conversation.set(layout=now)
    prefix = conversation.ask("And now?" if by_hand else f"And now? {LONG}").prefix_change
    assert (prefix.prefix_change.cause, prefix.triggered) == (PrefixChangeCause.LAYOUT_CHANGED, True)


@pytest.mark.parametrize("history", ["window", "strip"])
def test_hiding_messages_of_the_digest_is_an_explained_change(history: str) -> None:
    chat = Conversation(layout="library", window=6_000, reserve=200, history_turns=3)
    for number in range(2):
        chat.ask(f"Always use tables for item {number}. {LONG[:300]}")
        chat.reply(LONG)
    chat.compact(0.01)
    chat.set(history=history)
    for number in range(8):
        turn = chat.ask(f"Point {number}.")
        chat.reply("Fine.")
        assert turn.prefix_change.triggered
