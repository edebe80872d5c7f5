"""Marks of the other program: taken out of answers wherever they stand, and left where they are code."""

import pytest

from lamella.adapters.archive.markdown.legacy.marks import BANNER, REASONING, take_out_marks

THOUGHT = '<!--AGENT_REASONING:complete:3:["Reading \\"a\\"","Done"]-->'


@pytest.mark.parametrize(
    ("answer", "said", "counted"),
    [
        (f"{THOUGHT}\nYes.", "Yes.", {REASONING: 1}),
        (f"One.\n\n{THOUGHT}\n\nTwo.", "One.\n\nTwo.", {REASONING: 1}),
        (f"In a {THOUGHT}sentence.", "In a sentence.", {REASONING: 1}),
        ("<think>a\n\nb</think>\n\nYes.", "Yes.", {REASONING: 1}),
        ("<thinking>a</thinking>Yes.\n<think>b</think>\nNo.", "Yes.\nNo.", {REASONING: 2}),
        ("<think>stopped while", "", {REASONING: 1}),
        ("<!--TOOL_CALL_START:a:t:T:e::true-->x\ny<!--TOOL_CALL_END:a:r-->Yes.", "Yes.", {BANNER: 1}),
        ("<!--TOOL_CALL_START:a:t:T:e::true-->Yes.", "Yes.", {BANNER: 1}),
        ("Yes.<!--TOOL_CALL_END:a:-->", "Yes.", {BANNER: 1}),
    ],
)
def test_a_mark_is_taken_out_and_counted(answer: str, said: str, counted: dict[str, int]) -> None:
    assert take_out_marks(answer) == (said, counted)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "plain\n\n\n\ntext ",
        f"```\n{THOUGHT}\n```\n",
        "```html\n<think>\n</think>\n```",
        "It writes <think> before it answers.",
        "Half a mark: <!--AGENT_REASONING:complete",
        "<!-- a comment of mine -->",
    ],
)
def test_what_is_no_mark_stays_as_it_was_said(answer: str) -> None:
    assert take_out_marks(answer) == (answer, {})
