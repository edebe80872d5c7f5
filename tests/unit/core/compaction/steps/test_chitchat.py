"""Chitchat: a closed list, and everything that is never on it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.compaction.steps import ends_with_question, is_chitchat
from lamella.settings.word_lists import load_word_lists

CHITCHAT_WORDS = frozenset(load_word_lists().acknowledgements)
STATEMENT = "The outline has five sections now."
QUESTION = "The outline is ready. Shall I go on with the abstract?"


@pytest.mark.parametrize("text", ["ok", "ya", "sip", "lanjut", "oke"])
def test_acknowledgements_of_the_documented_step_are_chitchat(text: str) -> None:
    assert is_chitchat(text, previous_reply=STATEMENT, words=CHITCHAT_WORDS)


@pytest.mark.parametrize("text", ["ok?", "bagus!", "Saya ingin membahas dampak kebijakan pada sektor publik"])
def test_documented_exceptions_are_not_chitchat(text: str) -> None:
    assert not is_chitchat(text, previous_reply=STATEMENT, words=CHITCHAT_WORDS)


@pytest.mark.parametrize(
    "text", ["kuantitatif", "opsi B", "2", "APA 7", "revisi bab 2", "halo", "bab dua", "B", "ok X"]
)
def test_short_decisions_are_not_chitchat(text: str) -> None:
    assert len(text) < 15
    assert not is_chitchat(text, previous_reply=STATEMENT, words=CHITCHAT_WORDS)


@pytest.mark.parametrize("text", ["ok", "ya", "lanjut", "yes", "sure"])
def test_answer_to_question_is_not_chitchat(text: str) -> None:
    assert not is_chitchat(text, previous_reply=QUESTION, words=CHITCHAT_WORDS)


@pytest.mark.parametrize(
    "text",
    [
        "OK",
        " Oke. ",
        "ok...",
        "Sip,",
        "thank you 🙏",
        "Terima  kasih 🙏🏽.",
        "thanks 👍👍",
        "mantap ❤️",
        "ok 。",
        "Got it…\n",
    ],
)
def test_case_space_punctuation_and_emoji_do_not_matter(text: str) -> None:
    assert is_chitchat(text, previous_reply=STATEMENT, words=CHITCHAT_WORDS)


@pytest.mark.parametrize(
    "text",
    ["ok 👎", "ok ❌", "ok 🅰️", "ya 🇮🇩", "ok 🔴", "ok ❓", "ya ❗", "ok ！", "ok ？", "ya ؟", "ok 1️⃣", "ok ②", "👍", ""],  # noqa: RUF001
)
def test_emoji_that_may_answer_is_not_chitchat(text: str) -> None:
    assert not is_chitchat(text, previous_reply=STATEMENT, words=CHITCHAT_WORDS)


def test_first_message_has_no_previous_reply() -> None:
    assert is_chitchat("ok", previous_reply="", words=CHITCHAT_WORDS)


def test_own_word_list_replaces_default() -> None:
    assert is_chitchat("Entendido.", previous_reply=STATEMENT, words={"entendido"})
    assert not is_chitchat("ok", previous_reply=STATEMENT, words={"entendido"})


@pytest.mark.parametrize("text", ["2", "ok?", "bagus!"])
def test_word_list_cannot_make_digits_or_questions_chitchat(text: str) -> None:
    assert not is_chitchat(text, previous_reply=STATEMENT, words={text})


@pytest.mark.parametrize(
    "reply",
    [
        QUESTION,
        "Which one?",
        "Done.\n\nShall I go on?\n",
        "Shall I go on? I can also stop here.",
        "你要继续吗？",  # noqa: RUF001
        "هل أكمل؟",
        "Which of these do you prefer?\n\n1. the short one\n2. the long one\n",
        "Which of these?\n- the short one\n- the long one",
        "Take one of these:\n\n- shall it be short?\n- or long",
        "Which one?\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "Is this right?\n\n```python\nx = 1\n```\n",
        "Have you seen https://example.org/page?",
        "Shall I run `make test`?",
    ],
)
def test_reply_ending_with_question_is_recognized(reply: str) -> None:
    assert ends_with_question(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        STATEMENT,
        "## What is a prefix?\n\nThe bytes that two requests share.",
        "You asked: why? Because.\n\nThat is all.",
        "See https://example.org/?q=1 for more.",
        "See www.example.org/find?q=1.",
        "The rest is code:\n\n```python\nvalue = a if b else c  # right?\n```",
        "Write `a ? b : c` instead.",
    ],
)
def test_question_mark_in_code_url_or_earlier_line_is_no_question(reply: str) -> None:
    assert not ends_with_question(reply)


def test_word_list_is_normalized() -> None:
    assert [word for word in CHITCHAT_WORDS if not is_chitchat(word, previous_reply="", words=CHITCHAT_WORDS)] == []
    assert [
        word for word in CHITCHAT_WORDS if is_chitchat(f"{word} or not", previous_reply="", words=CHITCHAT_WORDS)
    ] == []


@steady
@given(st.text(max_size=40), st.text(max_size=80))
def test_text_with_digit_or_question_mark_is_not_chitchat(text: str, after: str) -> None:
    assert not is_chitchat(f"{text}?", previous_reply=after, words=CHITCHAT_WORDS)
    assert not is_chitchat(f"{text}7", previous_reply=after, words=CHITCHAT_WORDS)
    assert not is_chitchat(text, previous_reply=f"{after}\n\nShall I?", words=CHITCHAT_WORDS)


@steady
@given(st.sampled_from(sorted(CHITCHAT_WORDS)), st.text(alphabet=" .,…👍🙏\n", max_size=6))
def test_every_listed_word_is_chitchat_with_trailing_marks(word: str, trail: str) -> None:
    assert is_chitchat(word.upper() + trail, previous_reply=STATEMENT, words=CHITCHAT_WORDS)


@pytest.mark.parametrize(
    "reply", ["://" * 300_000, "a`" * 500_000, "?" * 1_000_000, "- \n" * 300_000, "www." * 250_000]
)
def test_reply_of_a_million_odd_characters_is_read_in_one_pass(reply: str) -> None:
    assert ends_with_question(reply + "\nDone?")
