"""What is known and what stands where, as it is kept: each text once, and none that a block is rendered from again."""

import pytest
from tests.unit.core.compaction.talking import QUARTERS, note

from lamella.core.artifacts.model import Trust
from lamella.core.log.placement import Form
from lamella.core.prompt.kept.known import (
    Shelves,
    pack_artifacts,
    unpack_artifacts,
    unpack_library,
    unpack_pieces,
    unpack_standing,
)
from lamella.core.prompt.layers.library import LibraryEntry, list_handles, shelve
from lamella.core.values import replace

NOTE = note("a.md", "Text.\n\n" * 40)
CONTENTS = {NOTE.hash: NOTE.text.encode()}


@pytest.mark.parametrize("form", [Form.FULL, Form.HANDLE, Form.PREVIEW])
def test_what_stands_for_an_artifact_is_rendered_again_or_stands_there(form: Form) -> None:
    one = shelve(NOTE, form=form, count=QUARTERS.count)
    shelves = Shelves()
    packed = shelves.pack_standing(one)
    assert [isinstance(piece, str) for piece in shelves.kept] == [one.form is not Form.FULL]
    artifacts = unpack_artifacts(pack_artifacts(shelves.artifacts) or (), CONTENTS)
    assert unpack_pieces(shelves.kept, artifacts) == shelves.pieces
    assert unpack_standing(packed, artifacts, shelves.pieces) == one


def test_what_is_listed_stays_so_and_what_is_known_is_told() -> None:
    entry = LibraryEntry(artifact=NOTE, at=3, form=Form.HANDLE, held=False, listed=True)
    shelves = Shelves()
    packed = shelves.pack_entry(entry)
    listed = list_handles([entry], count=QUARTERS.count)["a.md"]
    assert unpack_standing(shelves.pack_standing(listed), shelves.artifacts, shelves.pieces) == listed
    assert shelves.artifacts == [NOTE]
    assert unpack_library({"a.md": packed}, shelves.artifacts) == {"a.md": entry}


def test_an_artifact_that_is_not_what_its_kind_makes_of_it_is_not_kept() -> None:
    assert pack_artifacts([NOTE, replace(NOTE, trust=Trust.WEB)]) is None


def test_an_artifact_without_its_content_is_not_read() -> None:
    with pytest.raises(LookupError):
        unpack_artifacts(pack_artifacts([NOTE]) or (), {})
