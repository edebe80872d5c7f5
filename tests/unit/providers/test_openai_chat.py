"""Thoughts in the text of an answer are reasoning, wherever the parts of it end."""

import pytest

from lamella.core.messages import TextDelta
from lamella.providers.openai_chat import ReasoningSplitter, read_events, read_reply

CASES = [
    ("<think>Hm, </thin a.</think>\n\nYes.", "Hm, </thin a.", "Yes."),
    ("\n<think>\n\n</think>\n\nYes.", "\n\n", "Yes."),
    ("Write <think>a</think>.", "", "Write <think>a</think>."),
    ("<thinking>a", "", "<thinking>a"),
    ("<thi", "", "<thi"),
    ("  Yes. ", "", "  Yes. "),
    ("<think>never closed</th", "never closed</th", ""),
    ("<think>a</think>b <think>c</think>", "a", "b <think>c</think>"),
    (f"{' ' * 62}<think>a</think>b", "a", "b"),
    (f"{' ' * 80}<think>a</think>b", "", f"{' ' * 80}<think>a</think>b"),
]


def split(parts: list[str]) -> tuple[str, str]:
    splitter = ReasoningSplitter()
    found = [*(delta for part in parts for delta in splitter.feed(part)), *splitter.finish()]
    words = "".join(delta.text for delta in found if isinstance(delta, TextDelta))
    return "".join(delta.text for delta in found if not isinstance(delta, TextDelta)), words


@pytest.mark.parametrize(("text", "thoughts", "words"), CASES)
def test_leading_think_block_is_reasoning_at_any_split(text: str, thoughts: str, words: str) -> None:
    assert split(list(text)) == (thoughts, words)
    for at in range(len(text) + 1):
        assert split([text[:at], text[at:]]) == (thoughts, words)


def test_reply_has_separate_reasoning() -> None:
    said = {"role": "assistant", "content": "<think>Hm.</think>\n\nYes."}
    whole = read_reply({"choices": [{"message": said, "finish_reason": "stop"}]})
    streamed = read_events([{"choices": [{"delta": {"content": part}}]} for part in said["content"]])
    assert whole is not None
    assert (whole.text, whole.reasoning, streamed) == ("Yes.", "Hm.", None)
