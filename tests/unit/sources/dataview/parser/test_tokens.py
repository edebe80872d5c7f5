"""Tokens of a query: kinds, texts, and positions of invalid ones."""

import pytest

from lamella.sources.dataview.parser import MAX_QUERY_LENGTH, MAX_QUERY_TOKENS, TokenKind, tokenize_query
from lamella.sources.dataview.values import QueryError


def cut(text: str) -> list[tuple[str, str]]:
    return [(token.kind.value, token.text) for token in tokenize_query(text)[:-1]]


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("due-date", "name", "due-date"),
        ("größe_2", "name", "größe_2"),
        ("📅x", "name", "📅x"),
        ("12.50", "number", "12.50"),
        ('"a \\"b\\" \\\\ \\n"', "text", 'a "b" \\ \\n'),
        ("#a/b-c", "tag", "a/b-c"),
        ("#日記", "tag", "日記"),
        ("[[a b#c|d]]", "link", "a b#c|d"),
        ("date(2026-11-15T10:00)", "date", "2026-11-15T10:00"),
        ("DATE( eow )", "date", "eow"),
        ("dur(1 day, 2h)", "span", "1 day, 2h"),
        ("<=", "sign", "<="),
        ("=>", "sign", "=>"),
    ],
)
def test_token_kind_follows_its_text(text: str, kind: str, said: str) -> None:
    assert cut(text) == [(kind, said)]


def test_date_of_field_is_call_and_spaced_minus_is_operator() -> None:
    assert [kind for kind, _ in cut("date(due)")] == ["name", "sign", "name", "sign"]
    assert [said for _, said in cut("a - b")] == ["a", "-", "b"]
    assert [said for _, said in cut("update(today)")] == ["update", "(", "today", ")"]


def test_comment_lines_are_skipped() -> None:
    assert cut("// all\nLIST\n//of it") == [("name", "LIST")]


def test_tokens_have_positions_and_last_is_end() -> None:
    name, sign, end = tokenize_query("ab  <=")
    assert [(one.start, one.end) for one in (name, sign, end)] == [(0, 2), (4, 6), (6, 6)]
    assert end.kind is TokenKind.END


@pytest.mark.parametrize(("text", "where"), [("a\n  ;", "line 2, column 3"), ('"open', "line 1, column 1")])
def test_invalid_token_is_refused_with_position(text: str, where: str) -> None:
    with pytest.raises(QueryError, match=where):
        tokenize_query(text)


def test_query_length_and_tokens_are_limited() -> None:
    with pytest.raises(QueryError, match=f"{MAX_QUERY_LENGTH + 1:,} characters"):
        tokenize_query("a" * (MAX_QUERY_LENGTH + 1))
    with pytest.raises(QueryError, match=f"over {MAX_QUERY_TOKENS:,}"):
        tokenize_query("+" * MAX_QUERY_TOKENS)
