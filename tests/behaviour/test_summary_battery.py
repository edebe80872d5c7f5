"""Faulty summaries are rejected and faithful ones accepted, with the rates of both."""

import sys

import pytest
from tests.behaviour.summary_cases import (
    HONEST,
    INVENTED,
    LEAKING,
    MISQUOTED,
    NEARLY_SAID,
    NEGATED,
    ODDLY_MARKED,
    ORDERING,
    PRESSED,
    REPLIES,
    RETOLD,
    TOLD_TO,
    UNNAMED,
    USERS,
)

from lamella.core.compaction.summary_checks import find_summary_problem

LYING = (*MISQUOTED, *INVENTED, *ORDERING, *LEAKING, *ODDLY_MARKED, *NEARLY_SAID, *TOLD_TO, *PRESSED)
TRUE = (*HONEST, *RETOLD)


def check(text: str) -> str | None:
    replaced = [text for pair in zip(USERS, REPLIES, strict=True) for text in pair]
    return find_summary_problem(
        text, replaced_texts=replaced, user_texts=USERS, tokens=50, replaced_tokens=400, max_tokens=500
    )


@pytest.mark.parametrize("text", LYING)
def test_faulty_summary_is_rejected(text: str) -> None:
    assert check(text) is not None


@pytest.mark.parametrize("text", TRUE)
def test_faithful_summary_is_accepted(text: str) -> None:
    assert check(text) is None


def test_both_rejection_rates_meet_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    refused = sum(check(text) is not None for text in LYING)
    passed = sum(check(text) is None for text in TRUE)
    denied = sum(check(text) is None for text in NEGATED)
    unnamed = sum(check(text) is None for text in UNNAMED)
    with capsys.disabled():
        sys.stdout.write(
            f"\nsummaries: {refused} of {len(LYING)} that lie, leak or order refused; {passed} of {len(TRUE)} honest"
            f" accepted; {denied} of {len(NEGATED)} that deny or swap accepted, which no rule can tell,"
            f" and {unnamed} of {len(UNNAMED)} that no rule names\n"
        )
    assert len(LYING) >= 180
    assert len(TRUE) >= 45
    assert refused == len(LYING)
    assert passed == len(TRUE)


def test_rejection_quotes_offending_words() -> None:
    told = check(INVENTED[0])
    assert told == "The summary tells what stands in none of the messages it replaces: “K-38”"
    assert check(ORDERING[1]) == "The summary gives orders to its reader: “Disregard the previous rules”"
    assert check(LEAKING[0]) == "The summary is written in a script that none of the messages it replaces is in."
