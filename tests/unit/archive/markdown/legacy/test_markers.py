"""Markers of the other program: removed from answers, and kept where they are code."""

import pytest

from lamella.archive.markdown.legacy import BANNER_MARKER, REASONING_MARKER, strip_reasoning_and_tool_banners

THOUGHT = '<!--AGENT_REASONING:complete:3:["Reading \\"a\\"","Done"]-->'


@pytest.mark.parametrize(
    ("answer", "said", "counted"),
    [
        (f"{THOUGHT}\nYes.", "Yes.", {REASONING_MARKER: 1}),
        (f"One.\n\n{THOUGHT}\n\nTwo.", "One.\n\nTwo.", {REASONING_MARKER: 1}),
        (f"In a {THOUGHT}sentence.", "In a sentence.", {REASONING_MARKER: 1}),
        ("<think>a\n\nb</think>\n\nYes.", "Yes.", {REASONING_MARKER: 1}),
        ("<thinking>a</thinking>Yes.\n<think>b</think>\nNo.", "Yes.\nNo.", {REASONING_MARKER: 2}),
        ("<think>stopped while", "", {REASONING_MARKER: 1}),
        ("<!--TOOL_CALL_START:a:t:T:e::true-->x\ny<!--TOOL_CALL_END:a:r-->Yes.", "Yes.", {BANNER_MARKER: 1}),
        ("<!--TOOL_CALL_START:a:t:T:e::true-->Yes.", "Yes.", {BANNER_MARKER: 1}),
        ("Yes.<!--TOOL_CALL_END:a:-->", "Yes.", {BANNER_MARKER: 1}),
    ],
)
def test_marker_is_removed_and_counted(answer: str, said: str, counted: dict[str, int]) -> None:
    assert strip_reasoning_and_tool_banners(answer) == (said, counted)


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
def test_text_that_is_not_marker_is_kept(answer: str) -> None:
    assert strip_reasoning_and_tool_banners(answer) == (answer, {})
