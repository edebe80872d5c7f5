"""Queries: words, quoted spans, and what every text has that holds a span."""

import pytest

from lamella.core.search.query import MOST_CHARS, SpanClue, find_clues, read_query


def test_a_query_without_quotes_is_one_span_and_its_words() -> None:
    query = read_query("  The  user_name of\nK-37 ")
    assert query.words == ("the", "user_name", "user", "name", "of", "k-37", "k", "37")
    assert [tuple(span) for span in query.spans] == [("The user_name of K-37", "the user_name of k-37")]
    assert not query.exact


def test_each_quoted_span_is_demanded_once() -> None:
    query = read_query('"One two" and “three” and "One  two" and ""')
    assert [span.compared for span in query.spans] == ["one two", "three"]
    assert query.exact


def test_of_a_very_long_query_the_beginning_gives_the_words() -> None:
    assert len(read_query("word " * MOST_CHARS + "last").words) == 1


def test_a_word_before_the_space_that_a_long_span_is_cut_at_is_whole() -> None:
    word = "b" * (MOST_CHARS - len("a  "))
    assert find_clues(f"a {word} c") == [SpanClue(word=word)]
    assert find_clues(f"a {word}bc") == [SpanClue(part=f"{word}b", core=word)]


@pytest.mark.parametrize(
    ("span", "clues"),
    [
        ("lete my no", [SpanClue(word="my")]),
        ("a to be, or not b", [SpanClue(word="to"), SpanClue(word="be"), SpanClue(word="or"), SpanClue(word="not")]),
        ("lete my", [SpanClue(part="lete", core="lete")]),
        ("a needle", [SpanClue(part="needle", core="needl")]),
        ("k-37", [SpanClue(part="37", core="3")]),
        ("été", [SpanClue(part="été", core="t")]),
        ("é", []),
        ("?!", []),
        ("日東京で", [SpanClue(word="東京")]),
        ("東京", []),
    ],
)
def test_a_span_is_looked_for_by_whole_words_inside_it_else_by_a_part(span: str, clues: list[SpanClue]) -> None:
    assert find_clues(span) == clues
