"""Six turns: four as in ``growing``, then one that folds, then the spec once more."""

import pytest
from tests.golden.conftest import Replay

SPEC, API, LOG = "Piano Lessons/project-spec.md", "Piano Lessons/api-docs.md", "Piano Lessons/error-log.md"
FOLDS = pytest.mark.moves_prefix(reason="the fifth turn folds")


@FOLDS
def test_fold_moves_earlier_text_to_library_and_history(replayed: Replay) -> None:
    turns = replayed("folded", "in_place", "full")
    assert [turn.body["envelope"]["epoch"] for turn in turns] == [0, 0, 0, 0, 1, 1]
    assert turns[3].places("L2_PREVIOUS") == ["message:1", "message:3"]
    assert turns[4].places("L2_PREVIOUS") == ["system"] * 3
    assert [content for role, content in turns[4].messages if role == "user"][:4] == [
        "Summarize this",
        "What's the API?",
        "Explain that",
        "Debug this",
    ]
    assert str(turns[4].movement) == f"epoch_folded({SPEC})"


@FOLDS
def test_after_the_fold_the_prefix_only_grows_again(replayed: Replay) -> None:
    turns = replayed("folded", "in_place", "full")
    assert turns[5].messages[: len(turns[4].messages)] == turns[4].messages
    assert turns[5].movement.cause == "none"


@FOLDS
def test_in_full_mode_a_folded_note_is_still_a_reference(replayed: Replay) -> None:
    turns = replayed("folded", "in_place", "full")
    assert turns[4].forms("L3_TURN") == [(LOG, "reference")]
    assert turns[5].forms("L3_TURN") == [(SPEC, "reference")]


@FOLDS
def test_fold_in_preview_mode_shrinks_long_note_until_reattached(replayed: Replay) -> None:
    turns = replayed("folded", "in_place", "preview")
    assert turns[3].forms("L2_PREVIOUS") == [(SPEC, "full"), (API, "full")]
    assert turns[4].forms("L2_PREVIOUS") == [(SPEC, "preview"), (API, "full"), (LOG, "full")]
    assert turns[5].forms("L3_TURN") == [(SPEC, "full")]


@FOLDS
def test_layouts_agree_on_the_ids_and_the_order_of_the_library(replayed: Replay) -> None:
    ids = [
        [[name for name, _ in turn.forms("L2_PREVIOUS")] for turn in replayed("folded", layout, "full")]
        for layout in ("library", "in_place")
    ]
    assert ids[0] == ids[1]
