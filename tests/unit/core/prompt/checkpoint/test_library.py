"""Artifacts and placements in checkpoints: each text once, and none that a block can be rendered from."""

from collections.abc import Collection

import pytest
from tests.unit.core.compaction.stories import QUARTERS, note

from lamella.core.artifacts.model import LazyTexts, TrustLevel
from lamella.core.log.events.artifact import to_stored_artifact
from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.checkpoint import (
    CheckpointTables,
    artifact_required_hashes,
    decode_artifacts,
    decode_library,
    decode_pieces,
    decode_placed,
    lazy_artifact_indices,
)
from lamella.core.prompt.layers.library import LibraryEntry, place_handle_list, place_in_library
from lamella.core.values import replace

NOTE = note("a.md", "Text.\n\n" * 40)
CONTENTS = {NOTE.hash: NOTE.text.encode()}


def read_nothing(hashes: Collection[str]) -> dict[str, str]:
    raise AssertionError(f"{hashes} were read")


NOTHING_READ = LazyTexts((), read_nothing)


@pytest.mark.parametrize("form", [ArtifactForm.FULL, ArtifactForm.HANDLE, ArtifactForm.PREVIEW])
def test_placed_text_is_rendered_again_or_stored(form: ArtifactForm) -> None:
    one = place_in_library(NOTE, form=form, count=QUARTERS.count)
    shelves = CheckpointTables()
    packed = shelves.encode_placed(one)
    assert [isinstance(piece, str) for piece in shelves.encoded_pieces] == [one.form is not ArtifactForm.FULL]
    artifacts = decode_artifacts(shelves.stored_artifacts, CONTENTS, lazy_texts=NOTHING_READ)
    assert decode_pieces(shelves.encoded_pieces, artifacts, {}) == shelves.pieces
    assert decode_pieces(shelves.encoded_pieces, (), shelves.blocks) == shelves.pieces
    assert decode_placed(packed, artifacts, shelves.pieces) == one


@pytest.mark.parametrize("form", [ArtifactForm.FULL, ArtifactForm.HANDLE, ArtifactForm.PREVIEW])
def test_text_is_lazy_unless_sent_in_full(form: ArtifactForm) -> None:
    shelves, one = CheckpointTables(), place_in_library(NOTE, form=form, count=QUARTERS.count)
    shelves.encode_placed(one)
    waits = one.form is not ArtifactForm.FULL
    assert lazy_artifact_indices(shelves.stored_artifacts, shelves.encoded_pieces) == ({0} if waits else set())
    assert artifact_required_hashes(shelves.stored_artifacts[0], is_lazy=waits) == (() if waits else (NOTE.hash,))


def test_summary_of_lazy_text_is_loaded() -> None:
    stored = to_stored_artifact(replace(NOTE, condensed="Short."))
    assert artifact_required_hashes(stored, is_lazy=True) == (stored.condensed,)
    with pytest.raises(LookupError):
        decode_artifacts([stored], {}, lazy_indices={0}, lazy_texts=NOTHING_READ)


def test_repacking_does_not_load_texts() -> None:
    handle = place_in_library(NOTE, form=ArtifactForm.HANDLE, count=QUARTERS.count)
    first = CheckpointTables()
    kept = first.encode_placed(handle)
    artifacts = decode_artifacts(first.stored_artifacts, {}, lazy_indices={0}, lazy_texts=NOTHING_READ)
    again = decode_placed(kept, artifacts, first.pieces)
    second = CheckpointTables()
    assert second.encode_placed(again) == kept
    assert (second.stored_artifacts, second.encoded_pieces) == (first.stored_artifacts, first.encoded_pieces)
    assert decode_placed(kept, second.artifacts, second.pieces) == again


def test_listed_entry_and_known_artifact_round_trip() -> None:
    entry = LibraryEntry(
        artifact=NOTE, last_attached_turn=3, form=ArtifactForm.HANDLE, stays_attached=False, is_listed=True, repeats=2
    )
    shelves = CheckpointTables()
    packed = shelves.encode_entry(entry)
    listed = place_handle_list([entry], names_recall=False, count=QUARTERS.count)["a.md"]
    assert decode_placed(shelves.encode_placed(listed), shelves.artifacts, shelves.pieces) == listed
    assert shelves.artifacts == [NOTE]
    assert decode_library({"a.md": packed}, shelves.artifacts) == {"a.md": entry}


def test_inconsistent_artifact_is_not_stored() -> None:
    with pytest.raises(ValueError, match=r"a\.md"):
        CheckpointTables().add_artifact(replace(NOTE, trust=TrustLevel.WEB))


def test_artifact_without_content_is_not_read() -> None:
    with pytest.raises(LookupError):
        decode_artifacts([to_stored_artifact(NOTE)], {}, lazy_texts=NOTHING_READ)
