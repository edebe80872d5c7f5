"""The common prefix of two requests in tokens: never too many, and exact where text tokenizes separately."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.artifacts.kinds import make_image_data
from lamella.core.ledger.cache_profile import count_common_message_tokens
from lamella.core.messages import Message, Role
from lamella.core.values import replace
from lamella.tokenizers.counter import OfflineTokenCounter
from lamella.tokenizers.o200k import encode

MEASURE = OfflineTokenCounter().get_tokenizer("openai:gpt-5")
words = st.lists(st.sampled_from(["alpha", " beta", "\n", "\n\n", "<a>", "</a>\n", " ", "/", "1", "é"]), max_size=30)


def message(*pieces: str, role: Role = Role.USER) -> Message:
    return Message(role=role, pieces=pieces, tokens=MEASURE.count("".join(pieces)))


def true_common(old: str, new: str) -> int:
    common = 0
    for one, other in zip(encode(old), encode(new), strict=False):
        if one != other:
            break
        common += 1
    return common


@steady
@given(words, words, words)
def test_common_tokens_within_message_are_common_token_prefix(same: list[str], old: list[str], new: list[str]) -> None:
    before, now = "".join(same + old), "".join(same + new)
    if before == now:
        return
    assert count_common_message_tokens([message(before)], [message(now)], MEASURE) == true_common(before, now)


@steady
@given(words, words, words)
def test_how_a_text_is_cut_into_pieces_does_not_matter(same: list[str], old: list[str], new: list[str]) -> None:
    before, now = "".join(same + old), "".join(same + new)
    if before == now:
        return
    whole = count_common_message_tokens([message(before)], [message(now)], MEASURE)
    assert count_common_message_tokens([message(*same, *old)], [message(*same, *new)], MEASURE) == whole


def test_equal_messages_count_with_their_overhead_and_their_images() -> None:
    picture = make_image_data(b"x", media_type="image/png", width=512, height=512)
    seen = Message(role=Role.USER, pieces=("hello world",), images=(picture,), tokens=2)
    assert (
        count_common_message_tokens([seen], [seen, message("more")], MEASURE) == 2 + MEASURE.count_image(512, 512) + 3
    )


def test_messages_of_different_roles_share_nothing() -> None:
    assert count_common_message_tokens([message("hello")], [message("hello", role=Role.ASSISTANT)], MEASURE) == 0


def test_difference_far_into_a_long_text_is_found() -> None:
    start = "".join(f"line {number}\n" for number in range(5_000))
    before, now = start + "old end", start + "new end"
    assert count_common_message_tokens([message(before)], [message(now)], MEASURE) == true_common(before, now)


def test_only_diverging_line_is_tokenized() -> None:
    read: list[str] = []

    def note_down(text: str) -> list[int]:
        read.append(text)
        return encode(text)

    start = "".join(f"line {number}\n" for number in range(1_000))
    before, now = message(start + "one old end"), message(start + "one new end")
    assert count_common_message_tokens([before], [now], replace(MEASURE, encode=note_down)) == MEASURE.count(start) + 1
    assert read == ["one old end", "one new end"]


@pytest.mark.parametrize("ends", ["\n", " b", "/b", "\t", ""])
def test_line_break_followed_by_change_is_not_shared(ends: str) -> None:
    before, now = "alpha\nbeta\n<a>", f"alpha\nbeta\n{ends}"
    assert count_common_message_tokens([message(before)], [message(now)], MEASURE) == true_common(before, now)


def test_counted_pieces_are_not_counted_again() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return MEASURE.count(text)

    pieces = ("alpha\n", "beta\n")
    old = Message(role=Role.USER, pieces=(*pieces, "old end"), tokens=30, piece_token_counts=(11, 17, 2))
    shared = count_common_message_tokens([old], [message(*pieces, "new end")], replace(MEASURE, count=count))
    assert (shared, "".join(counted)) == (11 + 17, "")
