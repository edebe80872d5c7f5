"""Convert pages, videos, PDFs and office files to text, each once, through a cache on disk.

``CachedSourceReader`` reads all sources that have to be converted. ``ConversionCache`` keeps a text until a refresh is
requested, and a failure for a limited time. ``SizeLimitedCacheFolder`` has one private file per entry, written
atomically and shared by several processes.
"""

import os
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from msgspec import DecodeError, Struct, ValidationError, field, json
from msgspec.structs import replace

from lamella.core.artifacts.model import ArtifactKind, ArtifactSource, make_url_id
from lamella.core.text.content import youtube_video_id
from lamella.errors import (
    BadInputError,
    SourceNotFoundError,
    SourceTooLargeError,
    SourceUnreachableError,
    SourceUnreadableError,
)
from lamella.files import make_private_folder, replace_file, to_file_stat, write_new_file
from lamella.sources.conversion_process import Converter, extra_not_installed_error
from lamella.sources.converters import FileFormat

if TYPE_CHECKING:
    from lamella.sources.web import Fetcher

# Increase this when the meaning of entries changes. Entries with another number are ignored.
SCHEMA_VERSION = 1
# Hints of temporary failures begin with this text. When a cached failure is raised again, a time replaces it.
TRY_AGAIN_HINT = "Try again in a few minutes, or attach its text."


class CachedFailure(Struct, frozen=True, kw_only=True):
    """A cached failure with its time, its expiry and the limits (``limits_key``) it happened with.

    With other limits the source is tried again.
    """

    code: str
    message: str
    hint: str
    at: str
    until: str
    limits_key: str = field(name="under", default="")


class ConversionEntry(Struct, frozen=True, kw_only=True):
    """A cached text with its title and times, the failure since then, or both.

    ``read_at`` and ``checked`` are when the text was read and last confirmed. ``etag`` and ``last_modified_header`` are sent to the
    server to ask whether the text changed.
    """

    key: str
    schema: int = SCHEMA_VERSION
    text: str | None = None
    title: str = ""
    read_at: str = field(name="read", default="")
    checked: str = ""
    etag: str | None = None
    last_modified_header: str | None = field(name="modified", default=None)
    failure: CachedFailure | None = None


class FileHashEntry(Struct, frozen=True, kw_only=True):
    """The hash of a file's bytes with the file's state, so that a file in the same state is not read again."""

    key: str
    hash: str
    state: tuple[int, int, int, int]
    schema: int = SCHEMA_VERSION


# Files of the cache.

_Entry = TypeVar("_Entry", bound=ConversionEntry | FileHashEntry)

_SUFFIX = ".json"
# The share of the limit that remains after old entries are removed. The free space saves a full scan at the next write.
_SHARE_AFTER_CLEANUP = 0.9
# The share of the limit that this process may write before it measures what all processes together have written.
_SHARE_BETWEEN_SCANS = 0.05


class SizeLimitedCacheFolder:
    """Cache entries by key in a folder of limited size. Unreadable ones count as missing, failed writes are ignored."""

    def __init__(self, root: Path | None, *, max_bytes: int) -> None:
        """Create a cache of at most ``max_bytes`` bytes in total. Without an absolute ``root`` nothing is stored."""
        self._root = root if root is not None and root.is_absolute() else None
        self._max_bytes = max_bytes
        self._unscanned_bytes: float = max_bytes

    def load(self, key: str, kind: type[_Entry]) -> _Entry | None:
        """Return the entry for a key and mark it as used now; None if it is missing or of another schema."""
        path = self._entry_path(key)
        if path is None:
            return None
        try:
            found = json.decode(path.read_bytes(), type=kind)
        except (OSError, DecodeError, ValidationError, RecursionError, UnicodeError):
            return None
        if found.key != key or found.schema != SCHEMA_VERSION:
            return None
        # The modification time is the time of last use, by which old entries are removed.
        with suppress(OSError):
            os.utime(path)
        return found

    def save(self, entry: Struct) -> None:
        """Save an entry, replacing the one with the same key."""
        path = self._entry_path(str(getattr(entry, "key", "")))
        if path is None:
            return
        data = json.encode(entry)
        # A full or read-only disk must not keep the user from reading sources.
        with suppress(OSError):
            make_private_folder(path.parent.parent)
            make_private_folder(path.parent)
            _write_or_replace(path, data)
            self._unscanned_bytes += len(data)
            if self._unscanned_bytes >= self._max_bytes * _SHARE_BETWEEN_SCANS:
                self._unscanned_bytes = 0
                self._delete_oldest_entries()

    def _entry_path(self, key: str) -> Path | None:
        name = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return None if self._root is None else self._root / name[:2] / f"{name}{_SUFFIX}"

    def _delete_oldest_entries(self) -> None:
        assert self._root is not None, "whoever keeps something has a place for it"
        found: list[tuple[float, int, Path]] = []
        for path in self._root.glob(f"??/*{_SUFFIX}"):
            with suppress(OSError):
                state = path.stat()
                found.append((state.st_mtime, state.st_size, path))
        total = sum(size for _, size, _ in found)
        if total <= self._max_bytes:
            return
        for _, size, path in sorted(found):
            if total <= self._max_bytes * _SHARE_AFTER_CLEANUP:
                return
            with suppress(OSError):
                path.unlink()
                total -= size


def _write_or_replace(path: Path, data: bytes) -> None:
    try:
        write_new_file(path, data)
    except FileExistsError:
        replace_file(path, data)


# The read-through cache.

# Failures that are cached. Errors that a setting or an extra package would fix are not cached, and are tried again.
_CACHEABLE_ERRORS: dict[str, type[BadInputError]] = {
    error.code: error
    for error in (SourceNotFoundError, SourceUnreadableError, SourceTooLargeError, SourceUnreachableError)
}
# How long a failure is cached: briefly for network failures, longer for a server's refusal. A fault in a file's bytes
# stays as long as the entry, since the key contains the hash of the bytes.
_UNREACHABLE_RETENTION, _REFUSED_RETENTION, _BROKEN_FILE_RETENTION = (
    timedelta(minutes=1),
    timedelta(minutes=10),
    timedelta(days=365),
)
# A cached page older than this gives a warning about its age.
_MAX_AGE_WITHOUT_WARNING = timedelta(days=1)
# Prefix of the keys of files. Such a key contains the hash of the file's bytes, so the entry never becomes outdated.
FILE_KEY_PREFIX = "document:"

ReadSource = Callable[[ConversionEntry | None], ConversionEntry | None]
WarningCallback = Callable[[str], None]


class ConversionCache:
    """A cache of texts that are slow to obtain. ``now`` returns the current time."""

    def __init__(self, folder: SizeLimitedCacheFolder, *, now: Callable[[], datetime]) -> None:
        self.folder = folder
        self.now = now

    def get_or_read(
        self, key: str, read: ReadSource, *, name: str, limits_key: str, is_fresh_read: bool, report: WarningCallback
    ) -> ConversionEntry:
        """Return the cached entry for a key, or call ``read`` and cache its result.

        ``read`` gets the cached entry (or None) and returns None if that entry is still current. With ``is_fresh_read``
        it is called in any case. If reading fails and a text is cached, that text is returned and ``report`` gets a
        warning. A cached failure is raised again as long as it is valid and ``limits_key``, which names the limits in
        force, is the same.
        """
        kept = self.folder.load(key, ConversionEntry)
        if kept is not None and not is_fresh_read:
            if kept.text is not None:
                self._warn_about_age(kept, name, report)
                return kept
            if kept.failure is not None and self._is_failure_valid(kept.failure, limits_key):
                raise _cached_failure_error(kept.failure, needs_refresh=key.startswith(FILE_KEY_PREFIX))
        try:
            found = read(kept)
        except BadInputError as error:
            return self._handle_failure(
                error, kept or ConversionEntry(key=key), name=name, limits_key=limits_key, report=report
            )
        at = self._timestamp()
        if found is None:
            assert kept is not None, "only what is kept can be unchanged"
            found = replace(kept, checked=at, failure=None)
        else:
            found = replace(found, key=key, read_at=at, checked=at, failure=None)
        self.folder.save(found)
        return found

    def _handle_failure(
        self, error: BadInputError, entry: ConversionEntry, *, name: str, limits_key: str, report: WarningCallback
    ) -> ConversionEntry:
        if error.code in _CACHEABLE_ERRORS:
            failure = CachedFailure(
                code=error.code,
                message=error.message,
                hint=error.raw_hint if isinstance(error.raw_hint, str) else "",
                at=self._timestamp(),
                until=(self.now() + _choose_failure_retention(error, entry.key)).isoformat(timespec="seconds"),
                limits_key=limits_key,
            )
            self.folder.save(replace(entry, failure=failure))
        if entry.text is None:
            raise error
        report(f"{name} stays as it was read on {_format_timestamp(entry.read_at)}: {error.message}")
        return entry

    def _warn_about_age(self, entry: ConversionEntry, name: str, report: WarningCallback) -> None:
        if self.now() - datetime.fromisoformat(entry.checked) >= _MAX_AGE_WITHOUT_WARNING and not entry.key.startswith(
            FILE_KEY_PREFIX
        ):
            report(f"{name} is as it was read on {_format_timestamp(entry.read_at)}; refresh it to read it anew.")

    def _is_failure_valid(self, failure: CachedFailure, limits_key: str) -> bool:
        return failure.limits_key == limits_key and self.now() < datetime.fromisoformat(failure.until)

    def _timestamp(self) -> str:
        return self.now().isoformat(timespec="seconds")


def _choose_failure_retention(error: BadInputError, key: str) -> timedelta:
    if key.startswith(FILE_KEY_PREFIX):
        return _BROKEN_FILE_RETENTION
    return _UNREACHABLE_RETENTION if isinstance(error, SourceUnreachableError) else _REFUSED_RETENTION


def _cached_failure_error(failure: CachedFailure, *, needs_refresh: bool) -> BadInputError:
    """Return a cached failure as an error that says when it happened and how to try again."""
    error = _CACHEABLE_ERRORS.get(failure.code, SourceUnreadableError)
    retry = "Refresh it to try again" if needs_refresh else f"Try again after {_format_timestamp(failure.until)}"
    message = f"{failure.message} That was found on {_format_timestamp(failure.at)}."
    return error(message, hint=f"{retry}. {failure.hint.removeprefix(TRY_AGAIN_HINT)}")


def _format_timestamp(stamp: str) -> str:
    return f"{datetime.fromisoformat(stamp):%Y-%m-%d %H:%M}"


# The converter.

_FORMATS_BY_SUFFIX: Mapping[str, FileFormat] = MappingProxyType(
    {
        ".pdf": FileFormat.PDF,
        ".docx": FileFormat.DOCUMENT,
        ".docm": FileFormat.DOCUMENT,
        ".pptx": FileFormat.SLIDES,
        ".pptm": FileFormat.SLIDES,
        ".xlsx": FileFormat.SHEETS,
        ".xlsm": FileFormat.SHEETS,
        ".xls": FileFormat.SHEETS,
        ".ods": FileFormat.SHEETS,
    }
)
_WEB_EXTRA = "web"


def ignore_message(_message: str) -> None:
    """Ignore a message. This is the default for callers that show no warnings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedSourceReader:
    """Reads all sources that have to be converted, through the conversion cache.

    ``open_fetcher`` is called only if something is fetched, because it imports the web libraries. ``languages`` are
    the languages of video transcripts, in order of preference.
    """

    cache: ConversionCache
    converter: Converter
    open_fetcher: "Callable[[], Fetcher]"
    languages: Sequence[str] = ("en",)

    def read_page(
        self, kind: ArtifactKind, url: str, *, fresh: bool = False, report: WarningCallback = ignore_message
    ) -> ConversionEntry:
        """Return the text and title of a web page."""
        fetcher = self._get_fetcher()
        from lamella.sources.web import fetch_page_if_changed, validate_url

        checked_url = validate_url(url)
        under = f"{fetcher.limits.cache_key()};{self.converter.limits.limits_key()}"
        return self.cache.get_or_read(
            f"{kind}:{make_url_id(ArtifactSource(url=url), '')}",
            lambda kept: fetch_page_if_changed(fetcher, self.converter, checked_url, cached=kept),
            name=url,
            limits_key=under,
            is_fresh_read=fresh,
            report=report,
        )

    def read_video(
        self, kind: ArtifactKind, url: str, *, fresh: bool = False, report: WarningCallback = ignore_message
    ) -> ConversionEntry:
        """Return the transcript and title of a YouTube video."""
        video = youtube_video_id(url)
        if video is None:
            raise SourceUnreadableError(
                f"{url} shows no video that is known by it.",
                hint="Give the address of a YouTube video, as in https://www.youtube.com/watch?v=….",
            )
        fetcher = self._get_fetcher()

        def read(_kept: ConversionEntry | None) -> ConversionEntry:
            from lamella.sources.youtube import fetch_video_transcript

            found = fetch_video_transcript(fetcher, video, url=url, languages=self.languages)
            return ConversionEntry(key=url, text=found.text, title=found.title)

        key = f"{kind}:{','.join(self.languages)}:{make_url_id(ArtifactSource(url=url), '')}"
        return self.cache.get_or_read(
            key, read, name=url, limits_key=fetcher.limits.cache_key(), is_fresh_read=fresh, report=report
        )

    def read_image(self, url: str, *, report: WarningCallback = ignore_message) -> bytes:
        """Return the bytes of an image on the web."""
        fetcher = self._get_fetcher()
        from lamella.sources.web import fetch_image_entry, validate_url

        checked_url = validate_url(url)
        under, key = fetcher.limits.cache_key(), f"picture:{checked_url}"
        found = self.cache.get_or_read(
            key,
            lambda _kept: fetch_image_entry(fetcher, checked_url),
            name=url,
            limits_key=under,
            is_fresh_read=False,
            report=report,
        )
        return b64decode(found.text or "")

    def read_document(
        self,
        path: Path,
        *,
        name: str,
        read_bytes: Callable[[], bytes],
        form: FileFormat | None = None,
        fresh: bool = False,
    ) -> ConversionEntry:
        """Return the text of a PDF or an office file.

        The cache key is the hash of the file's bytes and the converter version. ``name`` is used in errors and, if
        ``form`` is None, to choose the converter.
        """
        form = form or get_file_format(name)
        version = self.converter.cache_version(form)
        known = self._find_known_hash(path)
        data = None if known is not None else read_bytes()
        digest = known or sha256(data or b"").hexdigest()
        if data is not None:
            self._save_hash(path, digest, size=len(data))

        def read(_kept: ConversionEntry | None) -> ConversionEntry:
            found = self.converter.convert(form, read_bytes() if data is None else data, name=name)
            return ConversionEntry(key=digest, text=found.text, title=found.title)

        return self.cache.get_or_read(
            f"{FILE_KEY_PREFIX}{digest}:{version}",
            read,
            name=name,
            limits_key=self.converter.limits.limits_key(),
            is_fresh_read=fresh,
            report=ignore_message,
        )

    def _get_fetcher(self) -> "Fetcher":
        try:
            return self.open_fetcher()
        except ModuleNotFoundError as error:
            raise extra_not_installed_error(str(error.name), _WEB_EXTRA) from error

    def _find_known_hash(self, path: Path) -> str | None:
        """Return the known hash of a file's bytes, or None if the file changed since it was read."""
        known = self.cache.folder.load(_document_key(path), FileHashEntry)
        try:
            seen = to_file_stat(path.stat())
        except OSError:
            return None
        return known.hash if known is not None and known.state == seen.persistent_fields else None

    def _save_hash(self, path: Path, digest: str, *, size: int) -> None:
        try:
            seen = to_file_stat(path.stat())
        except OSError:
            return
        # A file modified a moment ago can change again without a visible change of its times, so its hash is not saved.
        if seen.size == size and seen.is_settled(int(self.cache.now().timestamp() * 1_000_000_000)):
            self.cache.folder.save(FileHashEntry(key=_document_key(path), hash=digest, state=seen.persistent_fields))


def get_file_format(name: str) -> FileFormat:
    """Return the file format that a file name's ending means.

    Raises:
        SourceUnreadableError: Files with this ending are not converted.
    """
    form = _FORMATS_BY_SUFFIX.get(PurePosixPath(name).suffix.lower())
    if form is None:
        raise SourceUnreadableError(
            f"{name} is no office file that is read.", hint=f"Those that are end in: {', '.join(_FORMATS_BY_SUFFIX)}."
        )
    return form


def _document_key(path: Path) -> str:
    return f"place:{path}"
