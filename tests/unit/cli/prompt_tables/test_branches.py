"""Branches in a list: each line identifies its branch."""

import pytest

from lamella.cli.prompt_tables import format_branch
from lamella.schemas.messages import BranchJson, ReplyJson, TurnJson

pytestmark = pytest.mark.usefixtures("zone_of_tokyo")


def said(text: str, reply: ReplyJson | None = None) -> TurnJson:
    return TurnJson(message="a1", at="2026-03-01T12:34:56Z", text=text, attached=[], reply=reply)


def test_branch_is_formatted_with_length_time_question_and_answer() -> None:
    reply = ReplyJson(message="a2", at="2026-03-01T12:35:00Z", text="At noon.", cut=None)
    branch = BranchJson(branch="a1", active=True, turns=2, last=said("When is high tide?", reply))
    assert format_branch(branch) == "* a1  2 turns  2026-03-01 21:35  When is high tide? → At noon."


def test_long_words_are_cut_between_words_and_cannot_act_on_a_terminal() -> None:
    long = "a question of many words, " * 9
    line = format_branch(BranchJson(branch="a1", active=False, turns=1, last=said(f"\x1b[2J{long}")))
    assert line.startswith("  a1  1 turn  2026-03-01 21:34  ")
    assert line.endswith("  \\x1b[2Ja question of many words, a question of many… → no answer")


def test_empty_branch_is_formatted() -> None:
    assert format_branch(BranchJson(branch="a1", active=True, turns=0, last=None)) == "* a1  empty"
