"""Queries: words, quoted phrases, and the index hints of a phrase."""

import pytest

from lamella.core.search.search import MAX_QUERY_CHARS, PhraseHint, parse_query, phrase_hints


def test_unquoted_query_is_phrase_and_words() -> None:
    query = parse_query("  The  user_name of\nK-37 ")
    assert query.words == ("the", "user_name", "user", "name", "of", "k-37", "k", "37")
    assert [tuple(span) for span in query.phrases] == [("The user_name of K-37", "the user_name of k-37")]
    assert not query.must_match_phrases


def test_each_quoted_span_is_demanded_once() -> None:
    query = parse_query('"One two" and “three” and "One  two" and ""')
    assert [span.normalized for span in query.phrases] == ["one two", "three"]
    assert query.must_match_phrases


def test_long_query_is_parsed_from_its_beginning() -> None:
    assert len(parse_query("word " * MAX_QUERY_CHARS + "last").words) == 1


def test_word_before_cut_of_long_phrase_is_whole() -> None:
    word = "b" * (MAX_QUERY_CHARS - len("a  "))
    assert phrase_hints(f"a {word} c") == [PhraseHint(word=word)]
    assert phrase_hints(f"a {word}bc") == [PhraseHint(part=f"{word}b", core=word)]


@pytest.mark.parametrize(
    ("span", "clues"),
    [
        ("lete my no", [PhraseHint(word="my")]),
        (
            "a to be, or not b",
            [PhraseHint(word="to"), PhraseHint(word="be"), PhraseHint(word="or"), PhraseHint(word="not")],
        ),
        ("lete my", [PhraseHint(part="lete", core="lete")]),
        ("a needle", [PhraseHint(part="needle", core="needl")]),
        ("k-37", [PhraseHint(part="37", core="3")]),
        ("été", [PhraseHint(part="été", core="t")]),
        ("é", []),
        ("?!", []),
        ("日東京で", [PhraseHint(word="東京")]),
        ("東京", []),
    ],
)
def test_phrase_hint_is_whole_word_or_part(span: str, clues: list[PhraseHint]) -> None:
    assert phrase_hints(span) == clues
