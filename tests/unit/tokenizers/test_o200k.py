"""o200k_base, counted offline: the literals were recorded with OpenAI's own tokenizer and its own vocabulary file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.tokenizers.o200k import TokenCountMemo, count_tokens, encode, split_at_token_boundaries

RECORDED = [
    ("", 0),
    ("hello world", 2),
    ("<|endoftext|>", 7),
    ("before <|endoftext|> after", 9),
    ("日本語のテキストです。", 8),
    ("你好\uff0c世界", 3),
    ("👩‍👩‍👧‍👦", 11),
    ("🙂🙂🙂", 3),
    ("naïve café", 4),
    ("مرحبا بالعالم", 4),
    ("    indented\n\n\n", 4),
    ("a\r\nb", 3),
    ("1234567", 3),
    ("x" * 100, 13),
    ("# Heading\n\n- item one\n- item two\n", 11),
    ("def f(x):\n    return x + 1\n", 11),
    ("\t\ttabs", 3),
    ("https://example.org/a?b=c&d=e#f", 13),
]


@pytest.mark.parametrize(("text", "tokens"), RECORDED)
def test_o200k_counts_match_openai(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_token_ids_match_vocabulary() -> None:
    assert list(encode("hello world")) == [24912, 2375]
    assert list(encode("<|endoftext|>")) == [27, 91, 419, 1440, 919, 91, 29]


@steady
@given(st.lists(st.sampled_from(["a", " ", "\n", "\n\n", "/", "word", "🙂", "\t"]), max_size=60), st.integers(1, 9))
def test_chunks_of_text_count_like_whole_text(parts: list[str], size: int) -> None:
    text = "".join(parts)
    chunks = list(split_at_token_boundaries(text, size))
    assert "".join(chunks) == text
    assert sum(len(encode(chunk)) for chunk in chunks) == len(encode(text))


def test_long_text_is_counted_in_chunks() -> None:
    line = "some words on a line\n"
    assert count_tokens(line * 100_000) == 100_000 * count_tokens(line)


def test_memo_counts_once_and_evicts_least_recently_used() -> None:
    memo = TokenCountMemo(max_entries=2)
    assert [memo.count(text) for text in ("hello world", "<|endoftext|>", "hello world", "🙂🙂🙂")] == [2, 7, 2, 3]
    assert memo.count("<|endoftext|>") == 7
