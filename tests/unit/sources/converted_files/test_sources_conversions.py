"""Pages, videos and documents over the cache, from a site on loopback and from files."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from tests.documents import make_docx, make_pdf, make_pptx, make_xlsx, paragraph
from tests.sites import redirect, reply, site
from tests.unit.pictures import png

from lamella.core.artifacts.model import ArtifactKind
from lamella.errors import (
    AddressNotAllowedError,
    ExtraNotInstalledError,
    SourceUnreadableError,
)
from lamella.sources.conversion_process import Converter
from lamella.sources.converted_files import CachedSourceReader, ConversionCache, SizeLimitedCacheFolder, get_file_format
from lamella.sources.converters import ConversionLimits, ConvertedText, FileFormat
from lamella.sources.web import Fetcher, FetchLimits, parse_allowlist

STORY = "<h1>Tides</h1>" + "<p>The harbour was closed for nine days, and no ship came in at all.</p>" * 3
Open = Callable[..., CachedSourceReader]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    def open_it(*, languages: Sequence[str] = ("en",)) -> CachedSourceReader:
        limits = FetchLimits(max_bytes=1_000_000, max_seconds=5, idle_timeout=2)
        return CachedSourceReader(
            cache=ConversionCache(
                SizeLimitedCacheFolder(tmp_path / "cache", max_bytes=10_000_000), now=partial(datetime.now, UTC)
            ),
            converter=Converter(ConversionLimits(seconds=20)),
            open_fetcher=lambda: Fetcher(limits, allowlist=parse_allowlist(["127.0.0.1"])),
            languages=languages,
        )

    return open_it


def test_page_is_fetched_once_and_cached(opened: Open) -> None:
    with site(lambda _path, _headers: reply(STORY.encode())) as here:
        first = opened().read_page(ArtifactKind.URL, f"{here.url}/a#install")
        again = opened().read_page(ArtifactKind.URL, f"{here.url}/a")
    assert first == again
    assert (first.title, (first.text or "")[:19]) == ("Tides", "# Tides\n\nThe harbou")
    assert here.paths == ["/a"]


def test_refresh_sends_validator_and_stores_changes(opened: Open) -> None:
    version = ['"1"']

    def answer(_path: str, headers: Mapping[str, str]) -> Sequence[bytes]:
        if headers.get("if-none-match") == version[0]:
            return reply(status="304 Not Modified")
        return reply(f"{STORY}{version[0]}".encode(), headers={"ETag": version[0], "Last-Modified": "then"})

    with site(answer) as here:
        first = opened().read_page(ArtifactKind.URL, here.url)
        assert opened().read_page(ArtifactKind.URL, here.url, fresh=True).text == first.text
        version[0] = '"2"'
        assert opened().read_page(ArtifactKind.URL, here.url, fresh=True).text != first.text
    assert [headers.get("if-none-match") for _, headers in here.asked] == [None, '"1"', '"1"']
    assert here.asked[1][1]["if-modified-since"] == "then"


def test_failed_page_refresh_keeps_text_with_reason(opened: Open) -> None:
    told: list[str] = []
    with site(lambda _path, _headers: reply(STORY.encode())) as here:
        first = opened().read_page(ArtifactKind.URL, here.url)
    assert opened().read_page(ArtifactKind.URL, here.url, fresh=True, report=told.append).text == first.text
    assert "stays as it was read on" in told[0]
    assert "cannot be reached" in told[0]


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain; charset=utf-8", "Größe\r\n<b>".encode(), "Größe\n<b>"),
        ("text/markdown", b"# A\n\nb", "# A\n\nb"),
        ("application/json", b'{"a": [1]}', '{"a": [1]}'),
        ("application/ld+json", b"{}", "{}"),
        ("", b"just words", "just words"),
        ("application/octet-stream", b"<!DOCTYPE html><h2>Hours</h2>", "## Hours"),
        ("text/html", make_pdf(["From a PDF."]), "## Page 1\n\nFrom a PDF."),
        ("application/pdf", make_pdf(["From a PDF."]), "## Page 1\n\nFrom a PDF."),
    ],
)
def test_other_content_type_is_read_as_its_type(opened: Open, kind: str, body: bytes, text: str) -> None:
    with site(lambda _path, _headers: reply(body, kind=kind)) as here:
        assert opened().read_page(ArtifactKind.URL, here.url).text == text


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        ("image/png", b"\x89PNG", "is a picture"),
        ("text/html", b"\x89PNG\r\n", "no text to read"),
        ("video/mp4", b"x", "no text to read"),
        ("text/plain", b"a\x00b", "no text to read"),
        ("text/plain", b" \n", "is empty"),
        ("text/html", b"<script>app()</script>", "has no text to read"),
        ("application/pdf", b"%PDF-1.4 no", "is a broken PDF"),
    ],
)
def test_content_without_text_is_described(opened: Open, kind: str, body: bytes, told: str) -> None:
    with site(lambda _path, _headers: reply(body, kind=kind)) as here:
        with pytest.raises(SourceUnreadableError, match=told):
            opened().read_page(ArtifactKind.URL, here.url)
        with pytest.raises(SourceUnreadableError, match="That was found on"):
            opened().read_page(ArtifactKind.URL, here.url)
    assert len(here.asked) == 1


def test_redirect_to_private_network_is_refused_each_time(opened: Open) -> None:
    with site(lambda _path, _headers: redirect("http://169.254.169.254/")) as here:
        for _ in range(2):
            with pytest.raises(AddressNotAllowedError, match=r"169\.254\.169\.254"):
                opened().read_page(ArtifactKind.URL, here.url)
    assert len(here.asked) == 2


def test_missing_fetcher_names_its_extra(opened: Open) -> None:
    def missing() -> Fetcher:
        raise ModuleNotFoundError("No module named 'httpcore2'", name="httpcore2")

    whole = opened()
    bare = CachedSourceReader(cache=whole.cache, converter=whole.converter, open_fetcher=missing)
    with pytest.raises(ExtraNotInstalledError, match="httpcore2") as caught:
        bare.read_page(ArtifactKind.URL, "https://e.org")
    assert '".[web]"' in caught.value.hint


class NoChild(Converter):
    """Knows what a text depends on, and converts nothing."""

    def convert(self, form: FileFormat, data: bytes, *, name: str, charset: str | None = None) -> ConvertedText:
        raise AssertionError(f"{name} is converted once more")


FILES = {
    "a.pdf": (make_pdf(["Words."]), "## Page 1"),
    "a.docx": (make_docx(paragraph("Words.")), "Words."),
    "a.PPTX": (make_pptx(), "## Slide 1: Tides"),
    "a.xlsx": (make_xlsx({"A": [["Words."]]}), "## Sheet: A"),
}


def read_text(conversions: CachedSourceReader, place: Path) -> str:
    return conversions.read_document(place, name=place.name, read_bytes=place.read_bytes).text or ""


@pytest.mark.parametrize("name", FILES)
def test_document_is_converted_once(opened: Open, tmp_path: Path, name: str) -> None:
    data, text = FILES[name]
    place = tmp_path / name
    place.write_bytes(data)
    assert read_text(opened(), place).startswith(text)
    old = place.stat().st_mtime - 60
    os.utime(place, (old, old))
    no_child = replace(opened(), converter=NoChild())
    assert read_text(no_child, place).startswith(text)


def test_file_that_looks_the_same_is_not_even_read_through(opened: Open, tmp_path: Path) -> None:
    place = tmp_path / "a.pdf"
    place.write_bytes(make_pdf(["Words."]))
    conversions = opened()
    later = CachedSourceReader(
        # Long enough after that nobody can have written it again in the same moment.
        cache=ConversionCache(conversions.cache.folder, now=lambda: datetime(2100, 1, 1, tzinfo=UTC)),
        converter=conversions.converter,
        open_fetcher=conversions.open_fetcher,
    )
    reads: list[int] = []

    def read_bytes() -> bytes:
        reads.append(1)
        return place.read_bytes()

    for _ in range(3):
        later.read_document(place, name="a.pdf", read_bytes=read_bytes)
    assert len(reads) == 1
    place.write_bytes(make_pdf(["Other."]))
    assert "Other." in (later.read_document(place, name="a.pdf", read_bytes=read_bytes).text or "")


def test_file_written_a_moment_ago_is_read_through_again(opened: Open, tmp_path: Path) -> None:
    place = tmp_path / "a.pdf"
    for word in ("Words.", "Swords"):
        place.write_bytes(make_pdf([word]))
        assert word in read_text(opened(), place)


def test_same_bytes_elsewhere_are_the_same_text(opened: Open, tmp_path: Path) -> None:
    for name in ("one.pdf", "two.pdf"):
        (tmp_path / name).write_bytes(make_pdf(["Words."]))
    first = read_text(opened(), tmp_path / "one.pdf")
    no_child = replace(opened(), converter=NoChild())
    assert read_text(no_child, tmp_path / "two.pdf") == first


def test_broken_document_is_remembered_until_refresh(opened: Open, tmp_path: Path) -> None:
    place = tmp_path / "a.pdf"
    place.write_bytes(b"%PDF-1.4 no")
    with pytest.raises(SourceUnreadableError, match="broken PDF"):
        read_text(opened(), place)
    with pytest.raises(SourceUnreadableError, match="That was found on"):
        read_text(opened(), place)
    with pytest.raises(SourceUnreadableError, match=r"broken PDF\.\nhint"):
        opened().read_document(place, name="a.pdf", read_bytes=place.read_bytes, fresh=True)


def test_unconvertible_file_is_reported() -> None:
    with pytest.raises(SourceUnreadableError, match="is no office file"):
        get_file_format("old.doc")


def test_url_without_video_is_reported(opened: Open) -> None:
    with pytest.raises(SourceUnreadableError, match="shows no video"):
        opened().read_video(ArtifactKind.YOUTUBE, "https://e.org/watch?v=x")


def test_image_of_the_web_is_fetched_once_and_looked_at(opened: Open) -> None:
    answers = {"/map": reply(png(6, 4), kind="text/html"), "/page": reply(STORY.encode(), kind="image/png")}
    with site(lambda path, _headers: answers[path]) as here:
        for _ in range(2):
            assert opened().read_image(f"{here.url}/map") == png(6, 4)
        with pytest.raises(SourceUnreadableError, match="not a picture that models take"):
            opened().read_image(f"{here.url}/page")
    assert here.paths == ["/map", "/page"]
