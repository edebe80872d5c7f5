import pytest

from lamella.providers.local import RepetitionDetector, is_repeating

CLOSED = "The office is closed on Sundays.\n"
RULE = "Of what the notes say of the office nothing more is known.\n"


@pytest.mark.parametrize("text", [CLOSED * 4, f"It opens at 7:30.\n{CLOSED * 4}", RULE * 3, "of the index " * 4])
def test_repeated_words_are_a_loop(text: str) -> None:
    assert is_repeating(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        CLOSED * 3,
        RULE * 2,
        f"{CLOSED * 4}It is open on Mondays.",
        "no, no, no, no",
        "|" + "-------|" * 12,
        "." * 200,
        "".join(f"{number}. The office is closed on day {number}.\n" for number in range(30)),
    ],
)
def test_short_repetition_lists_and_drawings_are_not_loops(text: str) -> None:
    assert not is_repeating(text)


def test_loop_is_ended_with_usage() -> None:
    refrain = RepetitionDetector()
    assert refrain.feed({"prompt_progress": {"total": 40, "cache": 10, "processed": 30}}) is None
    chunk = {"choices": [{"delta": {"content": CLOSED}, "logprobs": {"content": [{"id": 1}, {"id": 2}]}}]}
    taken = [refrain.feed(chunk) for _ in range(4)]
    assert taken[:3] == [None] * 3
    assert taken[3] == {
        "choices": [{"delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 8, "prompt_tokens_details": {"cached_tokens": 10}},
    }
