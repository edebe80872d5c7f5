"""Client messages, converted to three roles and to turns."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lamella.errors import LamellaError
from lamella.runners.code_questions import PlainTurn, normalize_line_ends, parse_messages, turns_to_messages

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
roles = st.sampled_from(["system", "user", "assistant", "pro_user", "system_warning", "tool"])
messages = st.lists(st.fixed_dictionaries({"role": roles, "content": texts, "fullContent": texts}), max_size=8)


def said(role: str, content: str) -> dict[str, object]:
    return {"role": role, "content": content}


def test_client_roles_are_mapped_and_other_fields_ignored() -> None:
    given_ones = [
        {"role": "pro_user", "content": "a", "fullContent": "a, and all of it", "id": 7},
        said("assistant", "b"),
        said("system_warning", "You are over your limit."),
    ]
    talk = parse_messages(given_ones)
    assert talk.system == "You are over your limit."
    assert [one.to_dict() for one in turns_to_messages(talk.system, talk.turns)] == [
        said("system", "You are over your limit."),
        said("user", "a"),
        said("assistant", "b"),
    ]
    assert given_ones[0]["id"] == 7, "what came in is as it was"


def test_system_messages_are_joined_without_duplicates() -> None:
    talk = parse_messages(
        [said("system", "Be terse."), said("user", "a"), said("system", "Be terse."), said("system", "In German.")]
    )
    assert talk.system == "Be terse.\n\nIn German."
    assert talk.turns == (PlainTurn("a"),)


def test_line_ends_and_boms_are_normalized() -> None:
    assert normalize_line_ends("\ufeff\ufeffa\r\nb\rc\r\r\nd") == "a\nb\nc\n\nd"


def test_consecutive_answers_are_joined_and_question_may_be_unanswered() -> None:
    talk = parse_messages([said("user", "a"), said("user", "b"), said("assistant", "c"), said("assistant", "d")])
    assert talk.turns == (PlainTurn("a"), PlainTurn("b", "c\n\nd"))


def test_leading_greeting_is_kept() -> None:
    talk = parse_messages([said("assistant", "Hello. Which language?"), said("user", "Go.")])
    assert [turn.answer for turn in talk.turns] == ["Hello. Which language?", ""]
    assert talk.turns[0].question, "providers want a question before an answer"
    assert [one.role for one in turns_to_messages("", talk.turns)] == ["assistant", "user"]


def test_unknown_role_counts_as_user_with_warning() -> None:
    talk = parse_messages([said("function", "42"), said("function", "43")])
    assert talk.turns == (PlainTurn("42"), PlainTurn("43"))
    assert talk.warnings == ("Unknown role 'function': its messages count as the user's.",)


def test_empty_greeting_is_no_turn() -> None:
    assert parse_messages([said("assistant", ""), said("user", "a")]).turns == (PlainTurn("a"),)
    asked = "(The conversation begins.)"
    assert [one.content for one in turns_to_messages("", [PlainTurn(asked), PlainTurn("b")])] == [asked, "b"]


@given(messages)
@example([{"role": "assistant", "content": "\ufeff"}, {"role": "user", "content": ""}])
def test_reading_the_history_again_gives_the_same_turns(given_ones: list[dict[str, object]]) -> None:
    talk = parse_messages(given_ones)
    history = [one.to_dict() for one in turns_to_messages(talk.system, talk.turns)]
    again = parse_messages(history)
    assert (again.system.strip(), again.turns) == (talk.system.strip(), talk.turns)
    assert {one["role"] for one in history} <= {"system", "user", "assistant"}


@pytest.mark.parametrize(
    ("given_ones", "what"),
    [
        ("hello", "messages is not a list"),
        ({"role": "user"}, "messages is not a list"),
        (7, "messages is not a list"),
        (["hello"], "Message 1 is not an object"),
        ([said("user", "a"), {"content": "b"}], "Message 2 has no role"),
        ([{"role": "user"}], "Message 1 has no content"),
        ([{"role": "user", "content": ["a"]}], "Message 1 has no content"),
        ([{"role": 7, "content": "a"}], "Message 1 has no role"),
        ([said("user", "\ud800")], "half of a pair"),
    ],
)
def test_invalid_message_is_refused_by_number(given_ones: object, what: str) -> None:
    with pytest.raises(LamellaError, match=what) as caught:
        parse_messages(given_ones)
    assert caught.value.hint
