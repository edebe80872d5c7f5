"""The cache history of a branch: what was sent and when, as far as cost-based planning needs it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from lamella.core.log.turn import CacheStateAfterPause, LayoutPlan

# Maximum number of cache entries to remember. Older ones are before newer ones in the request, or expired long ago.
_MAX_CACHE_ENTRIES = 24
_NO_ATTACHMENT_STATS: Mapping[str, "AttachmentStats"] = MappingProxyType({})
# Ages are counted up to this many turns. Artifacts attached longer ago count as attached this many turns ago.
AGE_BUCKETS = 8
_NO_AGES = ((0, 0),) * AGE_BUCKETS


class CacheEntry(NamedTuple):
    """A cache entry: the index of its last message, when it was last sent, and if for the long lifetime."""

    position: int
    at: datetime | None
    has_long_lifetime: bool = False


class AttachmentStats(NamedTuple):
    """Counts of how often an artifact was in the working set or left it, and was out of it or came back."""

    stayed: int = 0
    dropped: int = 0
    absent: int = 0
    returned: int = 0


class CacheHistory(NamedTuple):
    """The cache history of a branch.

    Attributes:
        entries: Positions that a provider's cache may have, in message order.
        at: When the last request was sent.
        requests: Number of requests whose preceding pause is known.
        short_expiries: How many of these pauses expired the cache and lasted up to an hour.
        long_expiries: How many expired it and lasted longer.
        kept_alive_pauses: How many would have expired it, but a keep-alive prevented that.
        stable_message: Index of the last message before the question of the last fold.
        working_set: The working set, as the model was last informed of it.
        attachment_stats: Statistics per known artifact.
        age_counts: For each age in turns since the last attachment, from 1 on: how many artifacts were in the working
            set at that age, and how many of them left it then.
    """

    entries: tuple[CacheEntry, ...] = ()
    at: datetime | None = None
    requests: int = 0
    short_expiries: int = 0
    long_expiries: int = 0
    kept_alive_pauses: int = 0
    stable_message: int | None = None
    working_set: tuple[str, ...] = ()
    attachment_stats: Mapping[str, AttachmentStats] = _NO_ATTACHMENT_STATS
    age_counts: tuple[tuple[int, int], ...] = _NO_AGES


NO_CACHE_HISTORY = CacheHistory()


def record_pause(cache_history: CacheHistory, expiry: CacheStateAfterPause) -> CacheHistory:
    """Return the cache history with the effect of one more pause counted."""
    return cache_history._replace(
        requests=cache_history.requests + (expiry is not CacheStateAfterPause.UNKNOWN),
        short_expiries=cache_history.short_expiries + (expiry is CacheStateAfterPause.SHORT),
        long_expiries=cache_history.long_expiries + (expiry is CacheStateAfterPause.LONG),
        kept_alive_pauses=cache_history.kept_alive_pauses + (expiry is CacheStateAfterPause.KEPT_ALIVE),
    )


def record_keep_alive(cache_history: CacheHistory, at: datetime | None) -> CacheHistory:
    """Return the cache history after a keep-alive at ``at``; unchanged if ``at`` is None.

    A keep-alive sends the last request again, so only entries with the time of that request are renewed.
    """
    if at is None:
        return cache_history
    entries = tuple([one._replace(at=at) if one.at == cache_history.at else one for one in cache_history.entries])
    return cache_history._replace(entries=entries, at=at)


def record_request(
    cache_history: CacheHistory,
    layout_plan: LayoutPlan,
    *,
    question_index: int,
    working_set: Iterable[str],
    known_ids: Iterable[str],
    ages: Mapping[str, int],
) -> CacheHistory:
    """Return the cache history after a request whose question is the message ``question_index``.

    ``working_set`` is the working set of its turn. ``known_ids`` are all artifacts attached before it. ``ages`` gives,
    for artifacts that were in the working set until now, how many turns ago they were last attached.
    """
    cache_history = record_keep_alive(cache_history, layout_plan.kept_alive_at)
    keep, now = layout_plan.keep_messages, tuple(working_set)
    stays = frozenset(now)
    entries_by_position = {one.position: one for one in cache_history.entries if keep is None or one.position < keep}
    entries_by_position.update({one.position: one for one in _cache_entries(layout_plan, question_index)})
    return record_pause(cache_history, layout_plan.expiry)._replace(
        entries=tuple(sorted(entries_by_position.values(), key=_get_entry_position)[-_MAX_CACHE_ENTRIES:]),
        at=layout_plan.at or cache_history.at,
        stable_message=cache_history.stable_message if keep is None else question_index - 1 if question_index else None,
        working_set=now,
        attachment_stats=_update_stats(cache_history, stays, known_ids),
        age_counts=_add_to_age_counts(
            cache_history.age_counts, ages.values(), [age for name, age in ages.items() if name not in stays]
        ),
    )


def _cache_entries(layout_plan: LayoutPlan, question_index: int) -> list[CacheEntry]:
    """List the cache entries that a request creates or renews."""
    positions = {
        *layout_plan.breakpoints,
        question_index,
        *(() if layout_plan.cached_message is None else (layout_plan.cached_message,)),
    }
    last = -1 if layout_plan.long_lifetime_until is None else layout_plan.long_lifetime_until
    return [CacheEntry(position=one, at=layout_plan.at, has_long_lifetime=one <= last) for one in positions]


def _get_entry_position(entry: CacheEntry) -> int:
    return entry.position


def add_tool_messages(cache_history: CacheHistory, messages: int) -> CacheHistory:
    """Return the cache history after the last turn sent that many more messages of tool rounds."""
    last = cache_history.entries[-1]
    return cache_history._replace(entries=(*cache_history.entries, last._replace(position=last.position + messages)))


class AttachmentStatsTable(Mapping[str, AttachmentStats]):
    """Statistics per artifact that a request updates without going through all of them.

    The count ``absent`` of an artifact outside the working set is stored without the number of requests that were
    counted so far, so that one number advances all of them. ``present`` are the artifacts of the working set.
    """

    __slots__ = ("_absent", "_present", "_requests", "totals")

    def __init__(
        self,
        absent: dict[str, AttachmentStats],
        present: dict[str, AttachmentStats],
        *,
        requests: int,
        totals: AttachmentStats,
    ) -> None:
        self._absent, self._present, self._requests, self.totals = absent, present, requests, totals

    def __getitem__(self, name: str) -> AttachmentStats:
        found = self._present.get(name)
        if found is not None:
            return found
        one = self._absent[name]
        return one._replace(absent=one.absent + self._requests)

    def __iter__(self) -> Iterator[str]:
        return chain(self._absent, self._present)

    def __len__(self) -> int:
        return len(self._absent) + len(self._present)

    def with_request(
        self, before: Collection[str], now: Collection[str], known: Collection[str]
    ) -> "AttachmentStatsTable | None":
        """Return the statistics after a request; None if more changed than the working set.

        ``before`` and ``now`` are the working sets of the request before and of this one.
        """
        seen = [name for name in before if name in known]
        new = [name for name in seen if name not in self]
        moved = any(name not in known for name in self._present) or any(name in self._absent for name in seen)
        if moved or len(self) + len(new) != len(known):
            return None
        requests = self._requests + 1
        present: dict[str, AttachmentStats] = {}
        came = {name: self[name] for name in now if name in known and name not in before}
        left = {name: self.get(name, _EMPTY_STATS) for name in seen if name not in now}
        absent = {**self._absent} if came or left else self._absent
        for name in seen:
            if name in now:
                one = self.get(name, _EMPTY_STATS)
                present[name] = one._replace(stayed=one.stayed + 1)
        for name, one in left.items():
            absent[name] = AttachmentStats(one.stayed + 1, one.dropped + 1, one.absent - requests, one.returned)
        for name, one in came.items():
            absent.pop(name, None)
            present[name] = one._replace(absent=one.absent + 1, returned=one.returned + 1)
        stayed, dropped, away, returned = self.totals
        totals = AttachmentStats(
            stayed + len(seen), dropped + len(left), away + len(known) - len(seen), returned + len(came)
        )
        return AttachmentStatsTable(absent, present, requests=requests, totals=totals)


def sum_attachment_stats(stats: Mapping[str, AttachmentStats]) -> AttachmentStats:
    """Return the sums over all artifacts."""
    if isinstance(stats, AttachmentStatsTable):
        return stats.totals
    return AttachmentStats(*[sum(counts) for counts in zip(*stats.values(), strict=True)])


def _update_stats(
    cache_history: CacheHistory, working_set: Collection[str], known: Iterable[str]
) -> Mapping[str, AttachmentStats]:
    """Count for each known artifact whether it stayed in the working set, left it, stayed out, or came back."""
    before, old = frozenset(cache_history.working_set), cache_history.attachment_stats
    known = known if isinstance(known, Collection) else list(known)
    if isinstance(old, AttachmentStatsTable) and (grown := old.with_request(before, working_set, known)) is not None:
        return grown
    stats: dict[str, AttachmentStats] = {}
    for name in known:
        stayed, dropped, absent, returned = old.get(name, _EMPTY_STATS)
        if name in before:
            stats[name] = AttachmentStats(stayed + 1, dropped + (name not in working_set), absent, returned)
        else:
            stats[name] = AttachmentStats(stayed, dropped, absent + 1, returned + (name in working_set))
    return AttachmentStatsTable(
        {name: one for name, one in stats.items() if name not in working_set},
        {name: one for name, one in stats.items() if name in working_set},
        requests=0,
        totals=sum_attachment_stats(stats),
    )


_EMPTY_STATS = AttachmentStats()


def _add_to_age_counts(
    ages: tuple[tuple[int, int], ...], seen: Iterable[int], left: Iterable[int]
) -> tuple[tuple[int, int], ...]:
    """Return the age counts with more ages at which artifacts were in the working set, and at which they left."""
    stayed, removed = Counter[int](), Counter[int]()
    # Many artifacts may be attached, but there are few different ages: count them before the loop.
    for more, to in ((seen, stayed), (left, removed)):
        for age, times in Counter(more).items():
            to[age_bucket_index(age)] += times
    return tuple([(one + stayed[at], other + removed[at]) for at, (one, other) in enumerate(ages)]) if stayed else ages


def age_bucket_index(age: int) -> int:
    """Return the index into the age counts for something attached that many turns ago."""
    return min(max(age, 1), AGE_BUCKETS) - 1


class CacheHistoryBuilder:
    """Builds the cache history of many consecutive requests that do not fold, at once.

    The result equals one ``record_requests`` per request, but the counts are summed up at the end. ``attached`` is the
    working set as the model was last informed of it. ``known`` gives for each known artifact how many turns before the
    first request it was last attached.
    """

    def __init__(self, cache_history: CacheHistory, known: Mapping[str, int]) -> None:
        self._cache_history = cache_history
        self.attached = cache_history.working_set
        # Batches of layout plans, each with the message index of its first question.
        self._parts: list[tuple[Sequence[LayoutPlan], int]] = []
        self._requests = 0
        # By request number: from when an artifact is known, and since when it is in the working set.
        self._known = dict.fromkeys(known, 0)
        self._since = dict.fromkeys(cache_history.working_set, 0)
        # The request that last attached an artifact, and the request up to which its ages are counted.
        self._brought = {name: 1 - age for name, age in known.items()}
        self._aged: dict[str, int] = {}
        self._ages: tuple[Counter[int], Counter[int]] = Counter(), Counter()
        self._stayed: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._returned: Counter[str] = Counter()

    def record_requests(
        self, layout_plans: Sequence[LayoutPlan], *, question_index: int, working_set: tuple[str, ...]
    ) -> None:
        """Add requests with one working set, whose questions follow each other after two messages.

        The working set may differ from that of the requests before.
        """
        if working_set != self.attached:
            self._set_working_set(working_set)
        self._parts.append((layout_plans, question_index))
        self._requests += len(layout_plans)

    def _set_working_set(self, working_set: tuple[str, ...]) -> None:
        next_one = self._requests + 1
        for name in self.attached:
            if name not in working_set:
                self._dropped[name] += 1
                self._count_ages(name, next_one)
                self._ages[1][next_one - self._brought.get(name, next_one)] += name in self._known
                self._stayed[name] += next_one - max(self._since.pop(name), self._known.get(name, next_one))
        for name in working_set:
            if name not in self._since:
                self._returned[name] += name in self._known
                self._since[name] = next_one
        self.attached = working_set

    def add_known(self, artifact_ids: Iterable[str]) -> None:
        """Add artifacts that are known to the requests after the last one added."""
        for name in artifact_ids:
            self._count_ages(name, self._requests)
            self._known.setdefault(name, self._requests)
            self._brought[name] = self._requests

    def _count_ages(self, name: str, until: int) -> None:
        """Count the age of an artifact in each request up to ``until`` that had it in the working set."""
        if name not in self._since or name not in self._known:
            return
        first = max(self._since[name], self._known[name], self._aged.get(name, 0)) + 1
        oldest = min(until, self._brought[name] + AGE_BUCKETS)
        self._ages[0].update([request - self._brought[name] for request in range(first, oldest + 1)])
        self._ages[0][AGE_BUCKETS] += max(0, until - max(oldest, first - 1))
        self._aged[name] = until

    def finish(self) -> CacheHistory:
        """Return the cache history after all requests."""
        for name in self.attached:
            self._count_ages(name, self._requests)
        placements = [one for part, _ in self._parts for one in part]
        lapses = Counter([one.expiry for one in placements])
        return self._cache_history._replace(
            entries=self._list_entries(),
            at=next((one.at for one in reversed(placements) if one.at), self._cache_history.at),
            requests=self._cache_history.requests + len(placements) - lapses[CacheStateAfterPause.UNKNOWN],
            short_expiries=self._cache_history.short_expiries + lapses[CacheStateAfterPause.SHORT],
            long_expiries=self._cache_history.long_expiries + lapses[CacheStateAfterPause.LONG],
            kept_alive_pauses=self._cache_history.kept_alive_pauses + lapses[CacheStateAfterPause.KEPT_ALIVE],
            working_set=self.attached,
            attachment_stats={
                name: self._compute_artifact_stats(name, first)
                for name, first in self._known.items()
                if first < self._requests
            },
            age_counts=_add_to_age_counts(
                self._cache_history.age_counts, *[counted.elements() for counted in self._ages]
            ),
        )

    def _compute_artifact_stats(self, name: str, first: int) -> AttachmentStats:
        """Return the statistics of an artifact that is known from request ``first`` on."""
        stayed, dropped, absent, returned = self._cache_history.attachment_stats.get(name, _EMPTY_STATS)
        more, since = self._stayed[name], self._since.get(name)
        more += 0 if since is None else self._requests - max(since, first)
        absent += self._requests - first - more
        return AttachmentStats(stayed + more, dropped + self._dropped[name], absent, returned + self._returned[name])

    def _list_entries(self) -> tuple[CacheEntry, ...]:
        """Return the last cache entries, searched from the last request back.

        No request creates entries after its own question, so the search stops early.
        """
        entries_by_position: dict[int, CacheEntry] = {}
        for layout_plan, asked_at in self._iter_requests_backwards():
            if (
                len(entries_by_position) >= _MAX_CACHE_ENTRIES
                and asked_at < sorted(entries_by_position)[-_MAX_CACHE_ENTRIES]
            ):
                break
            for one in _cache_entries(layout_plan, asked_at):
                # The newest request comes first, so the first entry for a position has the latest time.
                entries_by_position.setdefault(one.position, one)
        for one in self._cache_history.entries:
            entries_by_position.setdefault(one.position, one)
        return tuple(sorted(entries_by_position.values(), key=_get_entry_position)[-_MAX_CACHE_ENTRIES:])

    def _iter_requests_backwards(self) -> Iterator[tuple[LayoutPlan, int]]:
        for placements, asked_at in reversed(self._parts):
            for at in range(len(placements) - 1, -1, -1):
                yield placements[at], asked_at + 2 * at
