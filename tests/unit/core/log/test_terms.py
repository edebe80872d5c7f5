"""Terms: the words that stand in every store, in settings and in transcripts."""

from enum import StrEnum

import pytest

from lamella.core.log.terms import (
    Attachments,
    CacheMarks,
    CarryForward,
    Effort,
    History,
    ImageNotes,
    Layout,
    Rewrite,
    SecretRule,
)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (Layout, ["library", "in_place", "auto"]),
        (CarryForward, ["full", "preview"]),
        (History, ["full", "window", "strip"]),
        (Effort, ["default", "none", "minimal", "low", "medium", "high", "xhigh", "max"]),
        (Attachments, ["turn", "sticky"]),
        (CacheMarks, ["explicit", "automatic"]),
        (ImageNotes, ["text", "handle"]),
        (SecretRule, ["warn", "refuse", "off"]),
        (Rewrite, ["history_edited", "branch"]),
    ],
)
def test_each_choice_has_the_words_that_people_and_stores_write(choice: type[StrEnum], words: list[str]) -> None:
    assert [one.value for one in choice] == words
