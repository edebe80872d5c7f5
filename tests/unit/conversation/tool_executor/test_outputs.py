"""What tools give becomes text within bounds, or an error that says why not."""

import pytest

from lamella.conversation.tool_executor import MAX_OUTPUT_CHARS, format_tool_failure, output_to_text
from lamella.errors import SourceNotFoundError


def test_text_is_as_it_is_and_anything_else_is_json() -> None:
    assert output_to_text("sun") == "sun"
    assert output_to_text({"city": "Zürich", "at": [1, None]}) == '{"city": "Zürich", "at": [1, null]}'


def test_a_hundred_megabytes_are_kept_by_their_ends_and_what_is_lost_is_said() -> None:
    text = "a" + "x" * 100_000_000 + "z"
    kept = output_to_text(text)
    assert len(kept) < MAX_OUTPUT_CHARS + 200
    assert kept[0] + kept[-1] == "az"
    assert f"[{len(text) - MAX_OUTPUT_CHARS:,} of {len(text):,} characters are not kept" in kept


def test_a_value_without_an_end_is_written_no_further_than_it_is_kept() -> None:
    kept = output_to_text(["x" * 1_000] * 1_000_000)
    assert len(kept) < MAX_OUTPUT_CHARS + 200
    assert kept.endswith(f"[The rest is not kept: a result has at most {MAX_OUTPUT_CHARS:,} characters.]")


@pytest.mark.parametrize("value", [b"\x89PNG", bytearray(4), memoryview(b"1234")])
def test_bytes_are_no_text(value: object) -> None:
    with pytest.raises(ValueError, match="the result is binary, 4 bytes, and no text"):
        output_to_text(value)


def test_half_of_a_character_is_no_text_either() -> None:
    with pytest.raises(ValueError, match="half of a character"):
        output_to_text("\ud83d")


def test_a_failure_is_told_by_its_name_and_one_of_ours_by_its_words_and_what_to_do() -> None:
    assert format_tool_failure(KeyError("sun.md")) == "KeyError: 'sun.md'"
    assert format_tool_failure(SourceNotFoundError("There is no sun.md.", hint="Did you mean son.md?")) == (
        "There is no sun.md. Did you mean son.md?"
    )


def test_a_failure_that_cannot_be_told_is_named() -> None:
    class Mute(Exception):  # noqa: N818 - what it is called is the point
        def __str__(self) -> str:
            raise RuntimeError

    assert format_tool_failure(Mute()) == "Mute"
