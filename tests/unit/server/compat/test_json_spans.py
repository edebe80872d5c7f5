"""Spans of JSON values lead to the same values, and splicing changes nothing else."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lamella.server.compat.json_spans import (
    Replacement,
    Span,
    decode_json,
    find_members,
    find_root,
    find_text_spans,
    iter_items,
    iter_members,
    replace_spans,
)

TEXTS = st.text(st.sampled_from('ab"\\/\n\t{}[],: é😀\u2028\ud83d'), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(value=st.dictionaries(TEXTS, VALUES, max_size=5), indent=st.sampled_from([None, 1]), is_ascii=st.booleans())
def test_spans_of_members_contain_their_values(value: dict[str, Any], indent: int | None, *, is_ascii: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    found = {
        one.name: decode_json(data[one.value.start : one.value.end]) for one in iter_members(data, find_root(data))
    }
    assert found == value


@given(value=st.lists(VALUES, max_size=5), indent=st.sampled_from([None, 1]))
def test_spans_of_items_contain_their_values(value: list[Any], indent: int | None) -> None:
    data = json.dumps(value, indent=indent).encode()
    assert [decode_json(data[one.start : one.end]) for one in iter_items(data, find_root(data))] == value


@given(text=TEXTS, cuts=st.tuples(st.integers(0, 12), st.integers(0, 12)), is_ascii=st.booleans())
def test_spans_of_characters_are_found_in_the_string_as_written(
    text: str, cuts: tuple[int, int], *, is_ascii: bool
) -> None:
    start, end = sorted(min(one, len(text)) for one in cuts)
    data = json.dumps({"t": text}, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    (span,) = find_text_spans(data, find_members(data, 0)["t"], [(start, end)])
    assert decode_json(replace_spans(data, [Replacement(span, b"X")]))["t"] == text[:start] + "X" + text[end:]


def test_last_member_of_repeated_name_wins() -> None:
    data = b' {"model" : "a", "model":"b"} '
    assert find_members(data, find_root(data)) == {"model": Span(25, 28)}


def test_halves_of_surrogate_pairs_are_decoded() -> None:
    assert decode_json(b'["\\ud83d"]') == ["\ud83d"]
