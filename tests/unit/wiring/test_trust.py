"""Trust: every setting that names a place is known to, so that somebody else's file cannot choose it."""

from pathlib import Path
from typing import get_type_hints

import pytest

from lamella.errors import LamellaError
from lamella.settings.model import Settings
from lamella.settings.trust import TrustFile
from lamella.wiring import setting_checks as faults
from lamella.wiring.sources import USER_ONLY_SETTINGS
from lamella.wiring.trust import TRUST_FIELDS, get_trust_key

# Settings with a text that lead nowhere: words of a list, and a file that is only read.
NO_PLACES = {"profile", "layout", "carry_forward", "history", "model_facts", "reasoning_effort"} | {
    "attachments",
    "cache_marks",
    "runner",
    "note_writes",
    "secrets",
    "image_notes",
    "recall_hint",
    "instructions",
    "instructions_file",
    "summary_check",
    "video_languages",
}
# They name a model, which is a place by that name.
MODELS = {"summarizer"}


def test_every_text_setting_is_classified_as_location_or_not() -> None:
    """Whoever adds one decides which; what names a place is refused from a project's file until somebody says yes."""
    texts = {name for name, kind in get_type_hints(Settings).items() if kind in (str, str | None)}
    # Servers are a table, each with its own place; what a turn may cost is a number.
    assert texts - {*faults.USER_ONLY_SETTINGS} == {*TRUST_FIELDS, *NO_PLACES, *MODELS, *USER_ONLY_SETTINGS} - {
        *faults.USER_ONLY_SETTINGS,
        "mcp",
    }


@pytest.mark.parametrize("name", sorted(NO_PLACES))
def test_setting_without_location_cannot_be_trusted(name: str) -> None:
    with pytest.raises(LamellaError, match="names no place"):
        get_trust_key(name, "x")


def test_trust_file_in_working_folder_is_ignored() -> None:
    """Without a home the folder of the user's settings is a relative path, and a project could bring one along."""
    book = TrustFile(Path("trust.json"))
    assert book.read() == ()
    with pytest.raises(LamellaError) as caught:
        book.add("model", "anthropic", since="2026-01-01")
    assert "HOME" in caught.value.hint
