"""Counting piece by piece gives what counting the joined text gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.artifacts.kinds import make_image_data, make_tool_definition
from lamella.core.budget import (
    Tokenizer,
    can_be_counted_separately,
    count_images_tokens,
    count_pieces_tokens,
    count_tools_tokens,
    tool_definition_json,
)
from lamella.tokenizers.counter import OfflineTokenCounter

OPENAI = OfflineTokenCounter().get_tokenizer("openai:gpt-5")
STARTS = ["", "\n", " ", "/", "\t", "a", "<", "\xa0", "'s", "1", "\r", "🙂", "\u2028"]
ENDS = ["", "\n", "\n\n", " ", "a", ">", "'", "1", "\r\n", "="]
pieces_of_text = st.builds("{}{}{}".format, st.sampled_from(STARTS), st.text(max_size=8), st.sampled_from(ENDS))


@steady
@given(st.lists(pieces_of_text, max_size=6))
def test_sum_over_pieces_is_the_count_of_the_joined_text(pieces: list[str]) -> None:
    assert count_pieces_tokens(pieces, OPENAI.count) == OPENAI.count("".join(pieces))


def test_separable_pieces_are_counted_separately_once() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    assert count_pieces_tokens(["<a>\n", "<b>\n", " c", "", "d"], count) == 11
    assert counted == ["<a>\n", "<b>\n cd"]


@pytest.mark.parametrize("right", ["a", "<", "1", "🙂", "#", "[", "-"])
def test_line_break_separates_tokens(right: str) -> None:
    assert can_be_counted_separately("x\n", right)


@pytest.mark.parametrize(
    ("left", "right"), [("x", "a"), ("x\n", " a"), ("x\n", "\n"), ("x\n", "/"), ("x\n", "\xa0"), ("", "a"), ("x\n", "")]
)
def test_other_texts_do_not_separate_tokens(left: str, right: str) -> None:
    assert not can_be_counted_separately(left, right)


def test_tool_definition_is_counted_as_json() -> None:
    tool = make_tool_definition("search", description="Finds.", parameters={"type": "object"})
    assert tool_definition_json(tool) == '{"description":"Finds.","name":"search","parameters":{"type":"object"}}'
    assert count_tools_tokens([tool, tool], len) == 2 * len(tool_definition_json(tool))


def test_images_are_counted_by_their_size() -> None:
    picture = make_image_data(b"x", media_type="image/png", width=512, height=512)
    assert count_images_tokens([picture, picture], OPENAI) == 2 * OPENAI.count_image(512, 512)
    assert count_images_tokens([], OPENAI) == 0


def _measure(name: str, factor: float) -> Tokenizer:
    return Tokenizer(
        name=name,
        count=len,
        encode=lambda text: [len(text)],
        count_image=lambda width, height: width * height,
        tokens_per_message=3,
        tokens_per_request=3,
        count_factor=factor,
    )


def test_tokenizers_of_same_name_are_equal() -> None:
    one, alike, other = _measure("a", 1.0), _measure("a", 2.0), _measure("b", 1.0)
    assert one == alike
    assert one != other
    assert one != "a"
    assert {one: "counted"}[alike] == "counted"
    # Kept by measure, what is counted is found at once: not all of them are in one place.
    assert hash(one) != hash(other)


def test_default_tokenizer_supports_all_images() -> None:
    picture = make_image_data(b"x", media_type="image/png", width=512, height=512)
    tokenizer = _measure("a", 1.0)
    assert tokenizer.supports_images
    assert tokenizer.image_rejection([picture], picture) == ""
