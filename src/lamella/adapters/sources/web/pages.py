"""Pages: what stands at an address as text, by what the server and the first bytes say it is."""

from collections.abc import Mapping
from types import MappingProxyType

from lamella.adapters.sources.cache.entry import CacheEntry
from lamella.adapters.sources.conversion.converter import Converter
from lamella.adapters.sources.conversion.model import ConvertedText, FileForm
from lamella.adapters.sources.conversion.plain import clean, cut, decode
from lamella.adapters.sources.web.fetching import Fetcher, WebAnswer, check_status
from lamella.errors import SourceUnreadableError

_OFFICE = "application/vnd.openxmlformats-officedocument"
_FORMS: Mapping[str, FileForm] = MappingProxyType(
    {
        "text/html": FileForm.PAGE,
        "application/xhtml+xml": FileForm.PAGE,
        "application/pdf": FileForm.PDF,
        f"{_OFFICE}.wordprocessingml.document": FileForm.DOCUMENT,
        f"{_OFFICE}.presentationml.presentation": FileForm.SLIDES,
        f"{_OFFICE}.spreadsheetml.sheet": FileForm.SHEETS,
    }
)
_TEXTS = ("json", "xml", "yaml", "toml", "javascript", "x-sh")
_UNTYPED = ("", "application/octet-stream", "binary/octet-stream", "text/plain")
_BINARY = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"PK\x03\x04", b"\x1f\x8b", b"RIFF", b"\x7fELF")
_HEAD = 1_024


def read_page(fetcher: Fetcher, converter: Converter, url: str, *, kept: CacheEntry | None) -> CacheEntry | None:
    """The text at an address; none where the server says that what is kept is still so."""
    answer = fetcher.fetch(url, _ask_changed(kept))
    if answer.is_unchanged and kept is not None and kept.text is not None:
        return None
    check_status(answer, url)
    found = _convert(answer, converter, url)
    return CacheEntry(
        key=url,
        text=found.text,
        title=found.title,
        etag=answer.headers.get("etag"),
        modified=answer.headers.get("last-modified"),
    )


def _ask_changed(kept: CacheEntry | None) -> dict[str, str]:
    if kept is None or kept.text is None:
        return {}
    asked = {"If-None-Match": kept.etag, "If-Modified-Since": kept.modified}
    return {name: value for name, value in asked.items() if value}


def _convert(answer: WebAnswer, converter: Converter, url: str) -> ConvertedText:
    kind, charset = answer.split_type()
    form = _find_form(kind, answer.body)
    if form is not None:
        return converter.convert(form, answer.body, name=url, charset=charset)
    if kind.startswith("image/"):
        raise SourceUnreadableError(f"{url} is a picture ({kind}), not a page.", hint="Attach it as a picture.")
    is_text = kind.startswith("text/") or kind in _UNTYPED or any(word in kind for word in _TEXTS)
    if not is_text or answer.body.startswith(_BINARY) or b"\x00" in answer.body[:_HEAD]:
        raise SourceUnreadableError(
            f"{url} is {kind or 'of no kind that it says'}, which has no text to read.", hint="Attach its text."
        )
    text = clean(decode(answer.body, charset))
    if not text.strip():
        raise SourceUnreadableError(f"{url} is empty.", hint="Check the address.")
    return ConvertedText(title="", text=cut(text, converter.limits.characters))


def _find_form(kind: str, body: bytes) -> FileForm | None:
    """What bytes are taken for: their beginning counts for more than what is said of them."""
    head = body[:_HEAD].lstrip().lower()
    if head.startswith(b"%pdf-"):
        return FileForm.PDF
    if kind in _UNTYPED and head.startswith((b"<!doctype html", b"<html")) and kind != "text/plain":
        return FileForm.PAGE
    form = _FORMS.get(kind)
    if form is FileForm.PAGE and body.startswith(_BINARY):
        return None
    return form
