"""Branches in a list: each can be told from the others."""

from lamella.core.log.events.message import MessageEvent
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.ids import Voice
from lamella.core.log.nodes import Node, Told
from lamella.faces.cli.branches import tell_branch


def said(text: str, role: Voice = Voice.USER, at: str = "2026-03-01T12:34:56Z") -> Node:
    made = MessageEvent if role is Voice.USER else ReplyEvent
    return Node(event=made(id="a1", parent="", text=text), at=at)


def test_a_branch_is_told_by_its_length_its_time_its_last_question_and_the_answer() -> None:
    turn = Told(message=said("When is high tide?"), reply=said("At noon.", Voice.REPLY, "2026-03-01T12:35:00Z"))
    assert (
        tell_branch("a1", [turn, turn], active=True) == "* a1  2 turns  2026-03-01 12:35  When is high tide? → At noon."
    )


def test_long_words_are_cut_between_words_and_cannot_act_on_a_terminal() -> None:
    long = "a question of many words, " * 9
    turn = Told(message=said(f"\x1b[2J{long}"), reply=None)
    line = tell_branch("a1", [turn], active=False)
    assert line.endswith("  \\x1b[2Ja question of many words, a question of many… → no answer")


def test_a_branch_on_which_nothing_was_said_is_told_as_that() -> None:
    assert tell_branch("a1", [], active=True) == "* a1  nothing was said"
