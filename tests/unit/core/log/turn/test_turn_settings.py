"""Terms: the words that stand in every store, in settings and in transcripts."""

from enum import StrEnum

import pytest

from lamella.core.log.turn import (
    AttachmentMode,
    BreakpointMode,
    CarryForwardMode,
    HistoryMode,
    HistoryRewrite,
    ImageNoteMode,
    LayoutMode,
    ReasoningEffort,
    SecretPolicy,
)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (LayoutMode, ["library", "in_place", "auto"]),
        (CarryForwardMode, ["full", "preview"]),
        (HistoryMode, ["full", "window", "strip"]),
        (ReasoningEffort, ["default", "none", "minimal", "low", "medium", "high", "xhigh", "max"]),
        (AttachmentMode, ["turn", "sticky"]),
        (BreakpointMode, ["explicit", "automatic"]),
        (ImageNoteMode, ["text", "handle"]),
        (SecretPolicy, ["warn", "refuse", "off"]),
        (HistoryRewrite, ["history_edited", "branch"]),
    ],
)
def test_each_choice_has_the_words_that_people_and_stores_write(choice: type[StrEnum], words: list[str]) -> None:
    assert [one.value for one in choice] == words
