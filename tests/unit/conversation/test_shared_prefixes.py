"""The shared system prompts of a store: what is learnt, stored and listed."""

from datetime import UTC, datetime, timedelta

from lamella.conversation.shared_prefixes import SharedPrefixRegistry
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.values import replace
from lamella.stores.memory import InMemoryStore
from lamella.stores.sharing import InMemorySharedTable

START = datetime(2026, 11, 1, tzinfo=UTC)
PROFILE = CacheProfile(name="two lifetimes", read=0.1, write=1.25, lifetime=300, marks=4, longer=(3_600, 2.0))


def use(prefixes: SharedPrefixRegistry, key: str, seconds: float, *, profile: CacheProfile = PROFILE) -> None:
    at = START + timedelta(seconds=seconds)
    prefixes.record_use(key, model="m", tokens=2_000, profile=profile, at=at, has_long_lifetime=True)


def test_uses_are_known_to_another_process() -> None:
    table = InMemoryStore().shared_table
    one, other = SharedPrefixRegistry(table), SharedPrefixRegistry(table)
    for seconds in (0, 1_000, 9_000):
        use(one, "a", seconds)
    use(other, "a", 9_100)
    use(one, "b", 9_200)
    now = START + timedelta(seconds=9_300)
    assert other.find_uses("a", at=now).gaps == (1_000.0, 8_000.0, 100.0)
    (newest, oldest) = SharedPrefixRegistry(table).list_prefixes(at=now)
    assert (newest.key, newest.gap_counts, newest.keeps_longer) == ("b", (0, 0, 0), True)
    assert (oldest.key, oldest.gap_counts, oldest.keeps_longer) == ("a", (1, 1, 1), True)


def test_uses_that_follow_at_once_count_once_in_every_process() -> None:
    class CountingTable(InMemorySharedTable):
        writes = 0

        def set(self, name: str, text: str, *, at: datetime, expires_at: datetime, conversation_key: str = "") -> None:
            self.writes += 1
            super().set(name, text, at=at, expires_at=expires_at, conversation_key=conversation_key)

    table = CountingTable()
    prefixes = SharedPrefixRegistry(table)
    for seconds in range(100):
        use(prefixes, "a", seconds)
    assert table.writes == 4
    later = START + timedelta(seconds=100)
    assert prefixes.find_uses("a", at=later).gaps == (30.0,) * 3
    assert SharedPrefixRegistry(table).find_uses("a", at=later) == prefixes.find_uses("a", at=later)


def test_nothing_is_learnt_where_a_provider_has_one_lifetime() -> None:
    prefixes = SharedPrefixRegistry(InMemoryStore().shared_table)
    use(prefixes, "a", 0, profile=replace(PROFILE, longer=None))
    use(prefixes, "a", 0, profile=replace(PROFILE, lifetime=None))
    assert not prefixes.list_prefixes(at=START)


def test_unreadable_row_is_replaced() -> None:
    table = InMemoryStore().shared_table
    table.set("shared-prefixes", "{", at=START, expires_at=START + timedelta(days=1))
    prefixes = SharedPrefixRegistry(table)
    use(prefixes, "a", 0)
    assert [one.key for one in SharedPrefixRegistry(table).list_prefixes(at=START)] == ["a"]
