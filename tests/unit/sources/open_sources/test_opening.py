"""Which reader reads what, with a vault and without one."""

from pathlib import Path

import pytest

from lamella.core.artifacts.kinds import SourceMedium
from lamella.core.artifacts.model import ArtifactKind, UnresolvedAttachment
from lamella.errors import NotAvailableError, SourceNotFoundError
from lamella.sources.converted_files import CachedSourceReader
from lamella.sources.open_sources import make_source_opener


def test_missing_vault_is_reported_on_open(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="no vault folder"):
        make_source_opener(tmp_path / "nowhere")


def test_each_snapshot_sees_vault_at_its_time(tmp_path: Path) -> None:
    look = make_source_opener(tmp_path)
    before = look().catalog
    assert before is not None
    assert before.find_notes_named("new") == []
    (tmp_path / "new.md").write_text("New", encoding="utf-8")
    assert before.find_notes_named("new") == []
    now = look().catalog
    assert now is not None
    assert now.find_notes_named("new") == ["new.md"]


@pytest.mark.parametrize("kind", [ArtifactKind.PDF, ArtifactKind.OFFICE, ArtifactKind.URL, ArtifactKind.YOUTUBE])
def test_without_conversions_nothing_is_converted_or_fetched(tmp_path: Path, kind: ArtifactKind) -> None:
    with pytest.raises(NotAvailableError, match=rf"Nothing here reads {kind}: a\.x"):
        make_source_opener(tmp_path)().read(UnresolvedAttachment(kind=kind, name="a.x"))


def test_with_conversions_pages_are_read_anywhere_and_documents_of_a_vault(tmp_path: Path) -> None:
    web = {SourceMedium.PAGE, SourceMedium.VIDEO}
    assert web < make_source_opener(None, _never)().readers.keys()
    assert {*web, SourceMedium.PDF, SourceMedium.OFFICE} < make_source_opener(tmp_path, _never)().readers.keys()


def _never() -> CachedSourceReader:
    raise AssertionError("nothing is read here")


def test_without_a_vault_only_bytes_that_are_given_are_read() -> None:
    sources = make_source_opener(None)()
    assert (list(sources.readers), sources.catalog) == ([SourceMedium.PICTURE], None)
    with pytest.raises(SourceNotFoundError, match=r"a\.md has no text, and there is no vault"):
        sources.read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name="a.md"))
