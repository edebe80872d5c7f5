"""The visible text: messages as people read them, and as they left them."""

import pytest

from lamella.archive.markdown.page import (
    VisibleMessage,
    is_same_text_ignoring_blanks,
    pair_messages,
    parse_page,
    render_page,
)
from lamella.core.log.turn import MessageAuthor

STAMP = "2026/11/15 10:00:00"


def user(text: str, context: str = "", stamp: str = STAMP) -> VisibleMessage:
    return VisibleMessage(role=MessageAuthor.USER, text=text, context=context, stamp=stamp)


def ai(text: str, stamp: str = STAMP) -> VisibleMessage:
    return VisibleMessage(role=MessageAuthor.REPLY, text=text, stamp=stamp)


def test_rendered_messages_match_exact_layout() -> None:
    page = render_page([user("Summarize this", "[Context: Notes: a.md]"), ai("Here is\n\na summary"), user("Thanks")])
    assert page == (
        "**user**: Summarize this\n"
        "[Context: Notes: a.md]\n"
        "[Timestamp: 2026/11/15 10:00:00]\n"
        "\n"
        "**ai**: Here is\n"
        "\n"
        "a summary\n"
        "[Timestamp: 2026/11/15 10:00:00]\n"
        "\n"
        "**user**: Thanks\n"
        "[Timestamp: 2026/11/15 10:00:00]\n"
        "\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n",
        "\n\n\n",
        "\n\nleading and trailing\n\n",
        "  spaces  \n  kept  ",
        "**user**: quoted\n**ai**: quoted\n**ai**:\n**user**: ",
        "[Context: Notes: b.md]\n[Timestamp: 2020/01/01 00:00:00]\n\n",
        "first\n[Timestamp: 2020/01/01 00:00:00]",
        "---\nlamella: 1\n---\n",
        "<!-- lamella-context: {} -->\n-->\n<!-- lamella-context: {} -->",
        "one\r\ntwo\r\n",
        "\x00\x0b\x0c\x1c\x1d\x85\u2028\u2029",
        "&#13;\n\\\\**ai**: x",
    ],
)
def test_any_text_round_trips_for_both_authors(text: str) -> None:
    messages = (user(text), ai(text), user(text, "[Context: Notes: a.md]"), ai(text))
    page = parse_page(render_page(messages))
    assert page.messages == messages
    assert page.preface == ""


def test_blanks_that_editors_trim_do_not_hide_an_empty_message() -> None:
    page = parse_page("**user**:\n[Timestamp: x]\n\n**ai**:\n[Timestamp: y]")
    assert page.messages == (user("", stamp="x"), ai("", stamp="y"))


def test_message_without_time_ends_before_the_blank_lines() -> None:
    page = parse_page("**user**: one\n\ntwo\n\n\n**ai**: three\n")
    assert [m.text for m in page.messages] == ["one\n\ntwo", "three"]


def test_text_below_the_time_belongs_to_the_message() -> None:
    (message,) = parse_page("**user**: one\n[Timestamp: x]\n\nadded by hand\n").messages
    assert message.text == "one\n[Timestamp: x]\n\nadded by hand"


def test_text_before_first_message_is_preface() -> None:
    page = parse_page("\n# A heading\n\n**user**: one\n")
    assert page.preface == "# A heading"
    assert len(page.messages) == 1


def test_each_question_is_own_turn() -> None:
    pairs, warnings = pair_messages([user("one"), user("two"), ai("three")])
    assert [(p.user.text, p.reply.text if p.reply else None) for p in pairs] == [("one", None), ("two", "three")]
    assert warnings == []


def test_consecutive_answers_are_joined_with_warning() -> None:
    pairs, warnings = pair_messages([user("one"), ai("two"), ai("three")])
    assert [p.reply.text for p in pairs if p.reply] == ["two\n\nthree"]
    assert warnings == ["Message 3 follows another answer; the two are one answer now."]


def test_answer_without_question_follows_empty_one_with_warning() -> None:
    pairs, warnings = pair_messages([ai("one"), user("two")])
    assert [p.user.text for p in pairs] == ["", "two"]
    assert warnings == ["The file begins with an answer; it stands after an empty question."]


def test_texts_that_differ_in_trimmed_blanks_only_read_the_same() -> None:
    assert is_same_text_ignoring_blanks("one  \n two\n\n", "one\n two")
    assert not is_same_text_ignoring_blanks("one", "one two")
    assert not is_same_text_ignoring_blanks(" one", "one")
    assert not is_same_text_ignoring_blanks("one\n\ntwo", "one\ntwo")
