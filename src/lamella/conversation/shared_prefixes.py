"""Learn how often the system prompts of a store are used again, over all of its conversations.

``SharedPrefixRegistry`` remembers when a prefix (model, tools and system prompt) was sent. The shared table of the store has
the times and gaps, but no text. ``lamella ledger --prefixes`` prints them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Lock

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import decode, encode

from lamella.core.layout.shared_prefix import PrefixUses, is_long_lifetime_worth_it
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.errors import LamellaError
from lamella.ports import SharedTable

_ROW_NAME = "shared-prefixes"
_KEPT_FOR = timedelta(days=30)
_MAX_PREFIXES = 50
# Uses within this time of the last one count as the same use, so that a busy conversation does not write each turn.
_MIN_STORED_GAP = timedelta(seconds=30)


class SharedPrefix(Struct, frozen=True, kw_only=True):
    """A prefix that conversations of a store begin with.

    ``tokens`` includes the tool definitions. ``lifetime`` and ``long_lifetime`` are the two lifetimes of the
    provider's cache in seconds. ``keeps_longer`` says whether the longer one costs less, as far as is known now.
    """

    key: str
    model: str
    tokens: int
    uses: PrefixUses
    lifetime: float
    long_lifetime: float
    keeps_longer: bool

    @property
    def gap_counts(self) -> tuple[int, int, int]:
        """How many remembered gaps ended within the short lifetime, within the longer one, and after both."""
        gaps = self.uses.gaps
        short, all_within = (sum([gap <= limit for gap in gaps]) for limit in (self.lifetime, self.long_lifetime))
        return short, all_within - short, len(gaps) - all_within


class SharedPrefixRegistry:
    """The prefixes of one store; safe for threads. Processes that write at once may lose a use, never more."""

    def __init__(self, shared_table: SharedTable) -> None:
        self._shared_table = shared_table
        self._lock = Lock()
        self._known: dict[str, SharedPrefix] = {}
        self._stored_at: dict[str, datetime] = {}

    def find_uses(self, key: str, *, at: datetime) -> PrefixUses:
        """Return the uses of a prefix; an unknown one has none."""
        with self._lock:
            if not self._was_stored_recently(key, at):
                self._known |= self._read_stored_prefixes(at)
            known = self._known.get(key)
            return PrefixUses() if known is None else known.uses

    def record_use(
        self, key: str, *, model: str, tokens: int, profile: CacheProfile, at: datetime, has_long_lifetime: bool
    ) -> None:
        """Record that a prefix was sent. If it cannot be stored, it is known to this process only."""
        if profile.lifetime is None or profile.longer is None:
            return
        with self._lock:
            if not self._was_stored_recently(key, at):
                self._known |= self._read_stored_prefixes(at)
            known = PrefixUses() if (found := self._known.get(key)) is None else found.uses
            # A use soon after the last one is not stored, so it must not count here either: a process that opens the
            # store later would decide otherwise than this one.
            if _was_used_recently(known, at) and known.has_long_lifetime == has_long_lifetime:
                return
            uses = known.with_use(at, has_long_lifetime=has_long_lifetime)
            self._known[key] = SharedPrefix(
                key=key,
                model=model,
                tokens=tokens,
                uses=uses,
                lifetime=profile.lifetime,
                long_lifetime=profile.longer[0],
                keeps_longer=is_long_lifetime_worth_it(uses.gaps, profile),
            )
            self._stored_at[key] = at
            self._trim_and_save_prefixes(at)

    def list_prefixes(self, *, at: datetime) -> Sequence[SharedPrefix]:
        """Return the prefixes, last used first."""
        with self._lock:
            return _sort_by_last_use(self._read_stored_prefixes(at) | self._known)

    def _was_stored_recently(self, key: str, at: datetime) -> bool:
        """Return whether the use of this prefix that this process stored last is recent."""
        stored = self._stored_at.get(key)
        return stored is not None and stored <= at < stored + _MIN_STORED_GAP

    def _read_stored_prefixes(self, at: datetime) -> dict[str, SharedPrefix]:
        """Return the stored prefixes, but those that this process knows better."""
        text = self._shared_table.get_many(_ROW_NAME, at=at).get(_ROW_NAME)
        try:
            stored = {} if text is None else decode(text, type=dict[str, SharedPrefix])
        except (DecodeError, ValidationError):
            # Another version wrote it. It is only a statistic: begin again.
            return {}
        return {
            key: one
            for key, one in stored.items()
            if (own := self._known.get(key)) is None or _was_used_later(one, own)
        }

    def _trim_and_save_prefixes(self, at: datetime) -> None:
        """Keep the prefixes that were used last, and store them; a failure to store is ignored."""
        self._known = {one.key: one for one in _sort_by_last_use(self._known)[:_MAX_PREFIXES]}
        with suppress(LamellaError):
            self._shared_table.set(_ROW_NAME, encode(self._known).decode(), at=at, expires_at=at + _KEPT_FOR)


def _was_used_recently(uses: PrefixUses, at: datetime) -> bool:
    return uses.last is not None and uses.last <= at < uses.last + _MIN_STORED_GAP


def _was_used_later(one: SharedPrefix, other: SharedPrefix) -> bool:
    return one.uses.last is not None and (other.uses.last is None or one.uses.last > other.uses.last)


def _sort_by_last_use(prefixes: Mapping[str, SharedPrefix]) -> list[SharedPrefix]:
    used = [one for one in prefixes.values() if one.uses.last is not None]
    return sorted(used, key=lambda one: (one.uses.last, one.key), reverse=True)
