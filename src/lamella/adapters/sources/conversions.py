"""Conversions: pages, videos, PDFs and office files as text, each fetched and converted once and then kept."""

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from lamella.adapters.files.reading import make_state
from lamella.adapters.sources.cache.conversions import FILES, ConversionCache, Tell
from lamella.adapters.sources.cache.entry import CacheEntry, PlaceEntry
from lamella.adapters.sources.conversion.converter import Converter, miss_extra
from lamella.adapters.sources.conversion.model import FileForm
from lamella.core.artifacts.ids import url_id
from lamella.core.artifacts.model import Kind, Source
from lamella.core.text.addresses import find_video
from lamella.errors import SourceUnreadableError

if TYPE_CHECKING:
    from lamella.adapters.sources.web.fetching import Fetcher

_FORMS: Mapping[str, FileForm] = MappingProxyType(
    {
        ".pdf": FileForm.PDF,
        ".docx": FileForm.DOCUMENT,
        ".docm": FileForm.DOCUMENT,
        ".pptx": FileForm.SLIDES,
        ".pptm": FileForm.SLIDES,
        ".xlsx": FileForm.SHEETS,
        ".xlsm": FileForm.SHEETS,
        ".xls": FileForm.SHEETS,
        ".ods": FileForm.SHEETS,
    }
)
_WEB = "web"


def keep_silent(_told: str) -> None:
    """For those who have nobody to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversions:
    """All that is read by converting it. ``open_fetcher`` is called by those who fetch, and imports what that takes."""

    cache: ConversionCache
    converter: Converter
    open_fetcher: "Callable[[], Fetcher]"
    languages: Sequence[str] = ("en",)

    def read_page(self, kind: Kind, url: str, *, fresh: bool = False, tell: Tell = keep_silent) -> CacheEntry:
        """The text of a page, with its title."""
        fetcher = self._open()
        from lamella.adapters.sources.web.addresses import check_url
        from lamella.adapters.sources.web.pages import read_page

        place = check_url(url)
        under = f"{fetcher.limits.name()};{self.converter.limits.name()}"
        return self.cache.obtain(
            f"{kind}:{url_id(Source(url=url), '')}",
            lambda kept: read_page(fetcher, self.converter, place, kept=kept),
            name=url,
            under=under,
            fresh=fresh,
            tell=tell,
        )

    def read_video(self, kind: Kind, url: str, *, fresh: bool = False, tell: Tell = keep_silent) -> CacheEntry:
        """The transcript of a video, with its title."""
        video = find_video(url)
        if video is None:
            raise SourceUnreadableError(
                f"{url} shows no video that is known by it.",
                hint="Give the address of a YouTube video, as in https://www.youtube.com/watch?v=….",
            )
        fetcher = self._open()

        def read(_kept: CacheEntry | None) -> CacheEntry:
            from lamella.adapters.sources.web.transcripts import read_transcript

            found = read_transcript(fetcher, video, url=url, languages=self.languages)
            return CacheEntry(key=url, text=found.text, title=found.title)

        key = f"{kind}:{','.join(self.languages)}:{url_id(Source(url=url), '')}"
        return self.cache.obtain(key, read, name=url, under=fetcher.limits.name(), fresh=fresh, tell=tell)

    def read_picture(self, url: str, *, tell: Tell = keep_silent) -> bytes:
        """The bytes of a picture on the web."""
        fetcher = self._open()
        from lamella.adapters.sources.web.addresses import check_url
        from lamella.adapters.sources.web.pictures import fetch_picture

        place = check_url(url)
        under, key = fetcher.limits.name(), f"picture:{place}"
        found = self.cache.obtain(
            key, lambda _kept: fetch_picture(fetcher, place), name=url, under=under, fresh=False, tell=tell
        )
        return b64decode(found.text or "")

    def read_document(
        self,
        place: Path,
        *,
        name: str,
        read_bytes: Callable[[], bytes],
        form: FileForm | None = None,
        fresh: bool = False,
    ) -> CacheEntry:
        """The text of a PDF or an office file, called by its ``name`` in errors; it is known by its bytes."""
        form = form or find_form(name)
        version = self.converter.version(form)
        known = self._find_hash(place)
        data = None if known is not None else read_bytes()
        digest = known or sha256(data or b"").hexdigest()
        if data is not None:
            self._keep_hash(place, digest, size=len(data))

        def read(_kept: CacheEntry | None) -> CacheEntry:
            found = self.converter.convert(form, read_bytes() if data is None else data, name=name)
            return CacheEntry(key=digest, text=found.text, title=found.title)

        return self.cache.obtain(
            f"{FILES}{digest}:{version}",
            read,
            name=name,
            under=self.converter.limits.name(),
            fresh=fresh,
            tell=keep_silent,
        )

    def _open(self) -> "Fetcher":
        try:
            return self.open_fetcher()
        except ModuleNotFoundError as error:
            raise miss_extra(str(error.name), _WEB) from error

    def _find_hash(self, place: Path) -> str | None:
        """The hash of a file's bytes, if nothing about it changed since they were read."""
        known = self.cache.folder.find(_name_place(place), PlaceEntry)
        try:
            seen = make_state(place.stat())
        except OSError:
            return None
        return known.hash if known is not None and known.state == seen.lasting else None

    def _keep_hash(self, place: Path, digest: str, *, size: int) -> None:
        try:
            seen = make_state(place.stat())
        except OSError:
            return
        if seen.size == size and seen.is_settled(int(self.cache.now().timestamp() * 1_000_000_000)):
            self.cache.folder.keep(PlaceEntry(key=_name_place(place), hash=digest, state=seen.lasting))


def find_form(name: str) -> FileForm:
    """What a file is by what its name ends in; an error if that is nothing that is converted."""
    form = _FORMS.get(PurePosixPath(name).suffix.lower())
    if form is None:
        raise SourceUnreadableError(
            f"{name} is no office file that is read.", hint=f"Those that are end in: {', '.join(_FORMS)}."
        )
    return form


def _name_place(place: Path) -> str:
    return f"place:{place}"
