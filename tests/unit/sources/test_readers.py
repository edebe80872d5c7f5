"""Readers of documents and pages: what they want becomes artifacts of their kind."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.documents import make_docx, make_pdf, paragraph

from lamella.core.artifacts.model import Artifact, ArtifactKind, AttachmentPolicy, UnresolvedAttachment
from lamella.errors import LamellaError, PathOutsideVaultError, SourceUnreadableError
from lamella.sources.conversion_process import Converter
from lamella.sources.converted_files import CachedSourceReader, ConversionCache, ConversionEntry, SizeLimitedCacheFolder
from lamella.sources.readers import DocumentReader, PageReader
from lamella.sources.vault import Vault
from lamella.sources.web import Fetcher

NOW = datetime(2026, 11, 18, tzinfo=UTC)


@pytest.fixture
def conversions(tmp_path: Path) -> CachedSourceReader:
    cache = ConversionCache(SizeLimitedCacheFolder(tmp_path / "cache", max_bytes=1_000_000), now=lambda: NOW)
    return CachedSourceReader(cache=cache, converter=Converter(), open_fetcher=Fetcher)


@pytest.fixture
def documents(tmp_path: Path, conversions: CachedSourceReader) -> DocumentReader:
    root = tmp_path / "vault"
    (root / "papers").mkdir(parents=True)
    (root / "papers" / "tides.pdf").write_bytes(make_pdf(["High at noon."]))
    (root / "plan.docx").write_bytes(make_docx(paragraph("We build.")))
    (tmp_path / "secret.pdf").write_bytes(make_pdf(["Not yours."]))
    (root / "out.pdf").symlink_to(tmp_path / "secret.pdf")
    vault = Vault(root)
    return DocumentReader(conversions=lambda: conversions, locate=vault.locate, read_bytes=vault.read_bytes)


def test_vault_document_is_read_with_its_text(documents: DocumentReader) -> None:
    found = documents.read(
        UnresolvedAttachment(
            kind=ArtifactKind.PDF, name="papers/tides.pdf", via="template", policy=AttachmentPolicy.PIN
        )
    )
    assert (found.id, found.kind, found.title, found.policy) == (
        "papers/tides.pdf",
        ArtifactKind.PDF,
        "tides",
        AttachmentPolicy.PIN,
    )
    assert found.text == "## Page 1\n\nHigh at noon."
    assert (found.source.is_rereadable, found.source.via) == (True, "template")
    assert (
        documents.read(UnresolvedAttachment(kind=ArtifactKind.OFFICE, name="plan.docx", title="Plan")).title == "Plan"
    )


def test_detour_names_the_same_file(documents: DocumentReader) -> None:
    assert (
        documents.read(UnresolvedAttachment(kind=ArtifactKind.PDF, name="papers/../papers/tides.pdf")).id
        == "papers/tides.pdf"
    )


@pytest.mark.parametrize("name", ["../secret.pdf", "out.pdf", "/etc/hosts.pdf"])
def test_no_path_leads_out_of_the_vault(documents: DocumentReader, name: str) -> None:
    with pytest.raises(PathOutsideVaultError):
        documents.read(UnresolvedAttachment(kind=ArtifactKind.PDF, name=name))


def test_document_with_wrong_extension_is_reported(documents: DocumentReader) -> None:
    with pytest.raises(SourceUnreadableError, match=r"plan\.docx is not a PDF"):
        documents.read(UnresolvedAttachment(kind=ArtifactKind.PDF, name="plan.docx"))
    with pytest.raises(LamellaError):
        documents.read(UnresolvedAttachment(kind=ArtifactKind.OFFICE, name="gone.docx"))


def read_cached(conversions: CachedSourceReader, wanted: UnresolvedAttachment, key: str) -> tuple[Artifact, list[str]]:
    at = "2026-11-01T08:00:00+00:00"
    conversions.cache.folder.save(ConversionEntry(key=key, text="Words.", title="Its title", read_at=at, checked=at))
    told: list[str] = []
    return PageReader(conversions=lambda: conversions, on_warning=told.append).read(wanted), told


@pytest.mark.parametrize("kind", [ArtifactKind.URL, ArtifactKind.WEB_TAB])
def test_cached_page_has_title_and_age_warning(conversions: CachedSourceReader, kind: ArtifactKind) -> None:
    url = "https://example.org/tides"
    found, told = read_cached(conversions, UnresolvedAttachment(kind=kind, name=f"{url}#bars"), f"{kind}:{url}")
    assert (found.id, found.kind, found.title, found.text) == (url, kind, "Its title", "Words.")
    assert (found.source.url, found.source.is_rereadable) == (f"{url}#bars", True)
    assert told == [f"{url}#bars is as it was read on 2026-11-01 08:00; refresh it to read it anew."]


def test_video_is_read_as_a_video_in_the_languages_that_are_wanted(conversions: CachedSourceReader) -> None:
    url = "https://youtu.be/b4yT1de5_-x"
    german = replace(conversions, languages=("de", "en"))
    found, _ = read_cached(
        german, UnresolvedAttachment(kind=ArtifactKind.YOUTUBE, name=url, title="Mine"), f"youtube:de,en:{url}"
    )
    assert (found.id, found.kind, found.title) == (url, ArtifactKind.YOUTUBE, "Mine")
