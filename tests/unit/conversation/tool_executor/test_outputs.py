"""Tool results become text within limits, or an error with the reason."""

import pytest

from lamella.conversation.tool_executor import MAX_OUTPUT_CHARS, format_tool_failure, output_to_text
from lamella.errors import SourceNotFoundError


def test_text_output_is_unchanged_and_others_are_json() -> None:
    assert output_to_text("sun") == "sun"
    assert output_to_text({"city": "Zürich", "at": [1, None]}) == '{"city": "Zürich", "at": [1, null]}'


def test_huge_text_is_kept_by_its_ends_with_notice() -> None:
    text = "a" + "x" * 100_000_000 + "z"
    kept = output_to_text(text)
    assert len(kept) < MAX_OUTPUT_CHARS + 200
    assert kept[0] + kept[-1] == "az"
    assert f"[{len(text) - MAX_OUTPUT_CHARS:,} of {len(text):,} characters are not kept" in kept


def test_endless_value_is_encoded_up_to_limit() -> None:
    kept = output_to_text(["x" * 1_000] * 1_000_000)
    assert len(kept) < MAX_OUTPUT_CHARS + 200
    assert kept.endswith(f"[The rest is not kept: a result has at most {MAX_OUTPUT_CHARS:,} characters.]")


@pytest.mark.parametrize("value", [b"\x89PNG", bytearray(4), memoryview(b"1234")])
def test_binary_output_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="the result is binary, 4 bytes, and no text"):
        output_to_text(value)


def test_lone_surrogate_output_is_refused() -> None:
    with pytest.raises(ValueError, match="half of a character"):
        output_to_text("\ud83d")


def test_failure_is_formatted_by_name_and_own_errors_by_message_and_hint() -> None:
    assert format_tool_failure(KeyError("sun.md")) == "KeyError: 'sun.md'"
    assert format_tool_failure(SourceNotFoundError("There is no sun.md.", hint="Did you mean son.md?")) == (
        "There is no sun.md. Did you mean son.md?"
    )


def test_unprintable_failure_is_formatted_by_name() -> None:
    class Mute(Exception):  # noqa: N818 - what it is called is the point
        def __str__(self) -> str:
            raise RuntimeError

    assert format_tool_failure(Mute()) == "Mute"
