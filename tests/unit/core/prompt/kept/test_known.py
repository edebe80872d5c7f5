"""What is known and what stands where, as it is kept: each text once, and none that a block is rendered from again."""

from collections.abc import Collection

import pytest
from tests.unit.core.compaction.talking import QUARTERS, note

from lamella.core.artifacts.model import Trust
from lamella.core.artifacts.unread import UnreadTexts
from lamella.core.log.events.artifact import store_artifact
from lamella.core.log.placement import Form
from lamella.core.prompt.kept.known import (
    Shelves,
    find_waiting,
    list_needed,
    unpack_artifacts,
    unpack_library,
    unpack_pieces,
    unpack_standing,
)
from lamella.core.prompt.layers.library import LibraryEntry, list_handles, shelve
from lamella.core.values import replace

NOTE = note("a.md", "Text.\n\n" * 40)
CONTENTS = {NOTE.hash: NOTE.text.encode()}


def read_nothing(hashes: Collection[str]) -> dict[str, str]:
    raise AssertionError(f"{hashes} were read")


NOTHING_READ = UnreadTexts((), read_nothing)


@pytest.mark.parametrize("form", [Form.FULL, Form.HANDLE, Form.PREVIEW])
def test_what_stands_for_an_artifact_is_rendered_again_or_stands_there(form: Form) -> None:
    one = shelve(NOTE, form=form, count=QUARTERS.count)
    shelves = Shelves()
    packed = shelves.pack_standing(one)
    assert [isinstance(piece, str) for piece in shelves.kept] == [one.form is not Form.FULL]
    artifacts = unpack_artifacts(shelves.stored, CONTENTS, unread=NOTHING_READ)
    assert unpack_pieces(shelves.kept, artifacts, {}) == shelves.pieces
    assert unpack_pieces(shelves.kept, (), shelves.blocks) == shelves.pieces
    assert unpack_standing(packed, artifacts, shelves.pieces) == one


@pytest.mark.parametrize("form", [Form.FULL, Form.HANDLE, Form.PREVIEW])
def test_a_text_waits_unless_it_stands_whole(form: Form) -> None:
    shelves, one = Shelves(), shelve(NOTE, form=form, count=QUARTERS.count)
    shelves.pack_standing(one)
    waits = one.form is not Form.FULL
    assert find_waiting(shelves.stored, shelves.kept) == ({0} if waits else set())
    assert list_needed(shelves.stored[0], waits=waits) == (() if waits else (NOTE.hash,))


def test_a_summary_that_stands_for_a_text_does_not_wait_with_it() -> None:
    stored = store_artifact(replace(NOTE, condensed="Short."))
    assert list_needed(stored, waits=True) == (stored.condensed,)
    with pytest.raises(LookupError):
        unpack_artifacts([stored], {}, waiting={0}, unread=NOTHING_READ)


def test_what_is_packed_again_is_not_read_for_that() -> None:
    handle = shelve(NOTE, form=Form.HANDLE, count=QUARTERS.count)
    first = Shelves()
    kept = first.pack_standing(handle)
    artifacts = unpack_artifacts(first.stored, {}, waiting={0}, unread=NOTHING_READ)
    again = unpack_standing(kept, artifacts, first.pieces)
    second = Shelves()
    assert second.pack_standing(again) == kept
    assert (second.stored, second.kept) == (first.stored, first.kept)
    assert unpack_standing(kept, second.artifacts, second.pieces) == again


def test_what_is_listed_stays_so_and_what_is_known_is_told() -> None:
    entry = LibraryEntry(artifact=NOTE, at=3, form=Form.HANDLE, held=False, listed=True)
    shelves = Shelves()
    packed = shelves.pack_entry(entry)
    listed = list_handles([entry], count=QUARTERS.count)["a.md"]
    assert unpack_standing(shelves.pack_standing(listed), shelves.artifacts, shelves.pieces) == listed
    assert shelves.artifacts == [NOTE]
    assert unpack_library({"a.md": packed}, shelves.artifacts) == {"a.md": entry}


def test_an_artifact_that_is_not_what_its_kind_makes_of_it_is_not_kept() -> None:
    with pytest.raises(ValueError, match=r"a\.md"):
        Shelves().name_artifact(replace(NOTE, trust=Trust.WEB))


def test_an_artifact_without_its_content_is_not_read() -> None:
    with pytest.raises(LookupError):
        unpack_artifacts([store_artifact(NOTE)], {}, unread=NOTHING_READ)
