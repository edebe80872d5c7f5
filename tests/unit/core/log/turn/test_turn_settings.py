"""Turn settings: the words in every store, in settings and in transcripts."""

from enum import StrEnum

import pytest

from lamella.core.log.turn import (
    AttachmentMode,
    BreakpointMode,
    CarryForwardMode,
    HistoryChangeReason,
    HistoryMode,
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
        (HistoryChangeReason, ["history_edited", "branch"]),
    ],
)
def test_choices_are_the_stored_words(choice: type[StrEnum], words: list[str]) -> None:
    assert [one.value for one in choice] == words
