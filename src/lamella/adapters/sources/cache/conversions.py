"""What is read once and kept: an entry holds until somebody asks for it anew, a failure for a while."""

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from lamella.adapters.sources.cache.entry import TRY_AGAIN, CacheEntry, KeptFailure
from lamella.adapters.sources.cache.folder import CacheFolder
from lamella.errors import (
    BadInputError,
    SourceMissingError,
    SourceTooLargeError,
    SourceUnreachableError,
    SourceUnreadableError,
)

# What is remembered of what fails. What settings refuse, or an extra would mend, is tried again each time.
_REMEMBERED: dict[str, type[BadInputError]] = {
    error.code: error
    for error in (SourceMissingError, SourceUnreadableError, SourceTooLargeError, SourceUnreachableError)
}
# How long a failure holds that somebody else may mend: of the network hardly, of what a server says a little longer.
# What is wrong with the bytes of a file is wrong for as long as they are known by their hash.
_UNREACHABLE, _REFUSED, _BROKEN = timedelta(minutes=1), timedelta(minutes=10), timedelta(days=365)
# From when on it is said that a text is not of today.
_OLD = timedelta(days=1)
# What the keys of files begin with; they are known by their bytes, and as old as those.
FILES = "document:"

Read = Callable[[CacheEntry | None], CacheEntry | None]
Tell = Callable[[str], None]


class ConversionCache:
    """Texts that take long to have. ``now`` says what time it is."""

    def __init__(self, folder: CacheFolder, *, now: Callable[[], datetime]) -> None:
        self.folder = folder
        self.now = now

    def obtain(self, key: str, read: Read, *, name: str, under: str, fresh: bool, tell: Tell) -> CacheEntry:
        """What is kept under a key, else what ``read`` gives; to be ``fresh`` it is read in any case.

        ``read`` gets what is kept, and gives none where that is still so. Where reading anew fails, what is kept stays,
        and that is told; ``under`` names the limits that a failure holds for.
        """
        kept = self.folder.find(key, CacheEntry)
        if kept is not None and not fresh:
            if kept.text is not None:
                self._tell_age(kept, name, tell)
                return kept
            if kept.failure is not None and self._holds(kept.failure, under):
                raise _recall(kept.failure, again=key.startswith(FILES))
        try:
            found = read(kept)
        except BadInputError as error:
            return self._fail(error, kept or CacheEntry(key=key), name=name, under=under, tell=tell)
        at = self._stamp()
        if found is None:
            assert kept is not None, "only what is kept can be unchanged"
            found = replace(kept, checked=at, failure=None)
        else:
            found = replace(found, key=key, read=at, checked=at, failure=None)
        self.folder.keep(found)
        return found

    def _fail(self, error: BadInputError, kept: CacheEntry, *, name: str, under: str, tell: Tell) -> CacheEntry:
        if error.code in _REMEMBERED:
            failure = KeptFailure(
                code=error.code,
                message=error.message,
                hint=error.advice if isinstance(error.advice, str) else "",
                at=self._stamp(),
                until=(self.now() + _find_hold(error, kept.key)).isoformat(timespec="seconds"),
                under=under,
            )
            self.folder.keep(replace(kept, failure=failure))
        if kept.text is None:
            raise error
        tell(f"{name} stays as it was read on {_tell_moment(kept.read)}: {error.message}")
        return kept

    def _tell_age(self, kept: CacheEntry, name: str, tell: Tell) -> None:
        if self.now() - datetime.fromisoformat(kept.checked) >= _OLD and not kept.key.startswith(FILES):
            tell(f"{name} is as it was read on {_tell_moment(kept.read)}; refresh it to read it anew.")

    def _holds(self, failure: KeptFailure, under: str) -> bool:
        return failure.under == under and self.now() < datetime.fromisoformat(failure.until)

    def _stamp(self) -> str:
        return self.now().isoformat(timespec="seconds")


def _find_hold(error: BadInputError, key: str) -> timedelta:
    if key.startswith(FILES):
        return _BROKEN
    return _UNREACHABLE if isinstance(error, SourceUnreachableError) else _REFUSED


def _recall(failure: KeptFailure, *, again: bool) -> BadInputError:
    """A failure as it is told once more: when it was, and how it is tried again."""
    error = _REMEMBERED.get(failure.code, SourceUnreadableError)
    retry = "Refresh it to try again" if again else f"Try again after {_tell_moment(failure.until)}"
    told = f"{failure.message} That was found on {_tell_moment(failure.at)}."
    return error(told, hint=f"{retry}. {failure.hint.removeprefix(TRY_AGAIN)}")


def _tell_moment(stamp: str) -> str:
    return f"{datetime.fromisoformat(stamp):%Y-%m-%d %H:%M}"
