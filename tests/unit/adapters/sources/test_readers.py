"""Readers of documents and pages: what they want becomes artifacts of their kind."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.documents import make_docx, make_pdf, paragraph

from lamella.adapters.sources.cache.conversions import ConversionCache
from lamella.adapters.sources.cache.entry import CacheEntry
from lamella.adapters.sources.cache.folder import CacheFolder
from lamella.adapters.sources.conversion.converter import Converter
from lamella.adapters.sources.conversions import Conversions
from lamella.adapters.sources.readers import DocumentReader, PageReader
from lamella.adapters.sources.vault import Vault
from lamella.adapters.sources.web.fetching import Fetcher
from lamella.core.artifacts.model import Artifact, Kind, Policy
from lamella.core.artifacts.wanted import Wanted
from lamella.errors import LamellaError, SourceOutsideError, SourceUnreadableError

NOW = datetime(2026, 11, 18, tzinfo=UTC)


@pytest.fixture
def conversions(tmp_path: Path) -> Conversions:
    cache = ConversionCache(CacheFolder(tmp_path / "cache", limit=1_000_000), now=lambda: NOW)
    return Conversions(cache=cache, converter=Converter(), open_fetcher=Fetcher)


@pytest.fixture
def documents(tmp_path: Path, conversions: Conversions) -> DocumentReader:
    root = tmp_path / "vault"
    (root / "papers").mkdir(parents=True)
    (root / "papers" / "tides.pdf").write_bytes(make_pdf(["High at noon."]))
    (root / "plan.docx").write_bytes(make_docx(paragraph("We build.")))
    (tmp_path / "secret.pdf").write_bytes(make_pdf(["Not yours."]))
    (root / "out.pdf").symlink_to(tmp_path / "secret.pdf")
    vault = Vault(root)
    return DocumentReader(conversions=lambda: conversions, locate=vault.locate, read_bytes=vault.read_bytes)


def test_a_document_of_the_vault_is_a_file_by_its_path_with_its_text(documents: DocumentReader) -> None:
    found = documents.read(Wanted(kind=Kind.PDF, name="papers/tides.pdf", via="template", policy=Policy.PIN))
    assert (found.id, found.kind, found.title, found.policy) == ("papers/tides.pdf", Kind.PDF, "tides", Policy.PIN)
    assert found.text == "## Page 1\n\nHigh at noon."
    assert (found.source.read, found.source.via) == (True, "template")
    assert documents.read(Wanted(kind=Kind.OFFICE, name="plan.docx", title="Plan")).title == "Plan"


def test_a_detour_names_the_same_file(documents: DocumentReader) -> None:
    assert documents.read(Wanted(kind=Kind.PDF, name="papers/../papers/tides.pdf")).id == "papers/tides.pdf"


@pytest.mark.parametrize("name", ["../secret.pdf", "out.pdf", "/etc/hosts.pdf"])
def test_no_path_leads_out_of_the_vault(documents: DocumentReader, name: str) -> None:
    with pytest.raises(SourceOutsideError):
        documents.read(Wanted(kind=Kind.PDF, name=name))


def test_a_document_that_is_called_something_else_is_told(documents: DocumentReader) -> None:
    with pytest.raises(SourceUnreadableError, match=r"plan\.docx is not a PDF"):
        documents.read(Wanted(kind=Kind.PDF, name="plan.docx"))
    with pytest.raises(LamellaError):
        documents.read(Wanted(kind=Kind.OFFICE, name="gone.docx"))


def read_kept(conversions: Conversions, wanted: Wanted, key: str) -> tuple[Artifact, list[str]]:
    at = "2026-11-01T08:00:00+00:00"
    conversions.cache.folder.keep(CacheEntry(key=key, text="Words.", title="Its title", read=at, checked=at))
    told: list[str] = []
    return PageReader(conversions=lambda: conversions, tell=told.append).read(wanted), told


@pytest.mark.parametrize("kind", [Kind.URL, Kind.WEB_TAB])
def test_a_page_that_is_kept_comes_with_its_title_and_says_that_it_is_old(conversions: Conversions, kind: Kind) -> None:
    url = "https://example.org/tides"
    found, told = read_kept(conversions, Wanted(kind=kind, name=f"{url}#bars"), f"{kind}:{url}")
    assert (found.id, found.kind, found.title, found.text) == (url, kind, "Its title", "Words.")
    assert (found.source.url, found.source.read) == (f"{url}#bars", True)
    assert told == [f"{url}#bars is as it was read on 2026-11-01 08:00; refresh it to read it anew."]


def test_a_video_is_read_as_a_video_in_the_languages_that_are_wanted(conversions: Conversions) -> None:
    url = "https://youtu.be/b4yT1de5_-x"
    german = replace(conversions, languages=("de", "en"))
    found, _ = read_kept(german, Wanted(kind=Kind.YOUTUBE, name=url, title="Mine"), f"youtube:de,en:{url}")
    assert (found.id, found.kind, found.title) == (url, Kind.YOUTUBE, "Mine")
