"""Verifying: every hash derived again, and everything that is not what it was named precisely."""

from collections.abc import Iterator, Sequence

from lamella.adapters.stores.chain import FIRST, find_erased, link
from lamella.adapters.stores.database import Row, Transaction
from lamella.adapters.stores.rows import RECORD_COLUMNS, is_content, is_key, is_text, read_record
from lamella.core.log.records import Record
from lamella.core.text.content import hash_bytes
from lamella.errors import StoreDamagedError, TextError
from lamella.holdings import Damage


def verify_conversation(transaction: Transaction, conversation: str) -> list[Damage]:
    """What is wrong with one conversation: its events, and the contents it holds."""
    found = transaction.rows(
        "SELECT version, head, erased, name, title, created, updated FROM conversations WHERE id = ?", conversation
    )
    if not found:
        return [Damage(conversation=conversation, place="conversation", what="is not in this store")]
    version, head, erased, *told = found[0]
    chain = follow_events(transaction, conversation)
    if erased is not None and (version == 0 or not chain.is_whole):
        return verify_tombstone(transaction, conversation)
    if not chain.seq and (true := _find_true_key(transaction, head)) is not None:
        return [_accuse_key(conversation, true)]
    chain.deny(erased)
    chain.end(version, head)
    if chain.is_whole:
        chain.compare(told)
    return [*chain.damages, *_verify_holdings(transaction, conversation, chain.records)]


def _find_true_key(transaction: Transaction, head: object) -> str | None:
    """The conversation whose last event a row without events has; keys are a part of what events are hashed with."""
    rows = transaction.rows("SELECT conversation FROM events WHERE hash = ?", head) if is_text(head) else []
    return next((key for (key,) in rows if is_key(key)), None)


def follow_events(transaction: Transaction, conversation: str) -> "HashChain":
    """Walk along all events of a conversation."""
    chain = HashChain(conversation)
    rows = transaction.rows(
        f"SELECT {RECORD_COLUMNS}, hash FROM events WHERE conversation = ? ORDER BY seq", conversation
    )
    for row in rows:
        chain.follow(row)
    return chain


class HashChain:
    """A walk along the events of a conversation. Damage to one event does not accuse those after it."""

    def __init__(self, conversation: str) -> None:
        self.damages: list[Damage] = []
        self.records: list[Record] = []
        self.seq = 0
        self.head = FIRST
        self._conversation = conversation
        # What the next event may build on: the hash that stands in the row before it, and the one that should.
        self._previous: set[str] = {FIRST}

    @property
    def is_whole(self) -> bool:
        """Whether all events are there, as they were written."""
        return len(self.records) == self.seq and all(damage.derived for damage in self.damages)

    def follow(self, row: Row) -> None:
        seq, stored = row[0], str(row[-1])
        if not isinstance(seq, int):
            self._damage("events", f"one has {seq!r} for its number")
            return
        if seq != self.seq + 1:
            self._miss(self.seq + 1, seq - 1)
            self._report(seq, "cannot be checked without the event before it")
            self._previous = set()
        self.seq, self.head = seq, stored
        try:
            record = read_record(self._conversation, row[:-1])
            derived = {link(name, self._conversation, seq=seq, record=record) for name in self._previous}
        except (StoreDamagedError, TextError) as error:
            self._report(seq, error.message)
            derived = set()
        else:
            self.records.append(record)
            if derived and stored not in derived:
                self._report(seq, f"has the hash {stored}; what it says gives {min(derived)}")
        self._previous = {stored} | derived

    def deny(self, erased: object) -> None:
        """Compare what the row says of an erasure: one that is erased has no events, and counts none."""
        if erased is not None:
            self._derive(f"says that it was erased at {erased!r}; its events are there")

    def end(self, version: object, head: object) -> None:
        """Compare what is there with what the row says of it."""
        if isinstance(version, int) and version > self.seq and head != self.head:
            self._miss(self.seq + 1, version)
        elif version != self.seq:
            said = f"{version:,}" if isinstance(version, int) else repr(version)
            self._derive(f"has {self.seq:,} events and says that it has {said}")
        elif head not in self._previous:
            self._derive(f"says that its last event has the hash {head}")

    def compare(self, told: Sequence[object]) -> None:
        """Compare what the row tells beside: its name and title are texts, its times those of its events."""
        name, title, created, updated = told
        if not is_key(name):
            self._derive(f"has {name!r} for its name")
        if not is_text(title):
            self._derive(f"has {title!r} for its title")
        first, last = (self.records[0].at, self.records[-1].at) if self.records else ("", "")
        for what, said, true in (("began", created, first), ("changed", updated, last)):
            if said != true and self.records:
                self._derive(f"says that it {what} at {said!r}; its events say {true!r}")

    def _derive(self, what: str) -> None:
        found = Damage(conversation=self._conversation, place="conversation", what=what, derived=True)
        self.damages.append(found)

    def _miss(self, first: int, last: int) -> None:
        self._damage(f"event {first}" if first == last else f"events {first} to {last}", "missing")

    def _report(self, seq: int, what: str) -> None:
        self._damage(f"event {seq}", what)

    def _damage(self, place: str, what: str) -> None:
        self.damages.append(Damage(conversation=self._conversation, place=place, what=what))


def _verify_holdings(transaction: Transaction, conversation: str, records: Sequence[Record]) -> Iterator[Damage]:
    rows = transaction.rows("SELECT hash FROM holdings WHERE conversation = ? ORDER BY hash", conversation)
    held = [name for (name,) in rows]
    named = {name for record in records for name in record.contents}
    erased = find_erased(records)
    for name in sorted(named - set(held) - erased):
        yield Damage(conversation=conversation, place=f"content {name}", what="missing, and never erased")
    for name in held:
        if name not in named:
            yield Damage(conversation=conversation, place=f"content {name}", what="held, and no event names it")
        yield from _verify_content(transaction, conversation, name)


def _verify_content(transaction: Transaction, conversation: str, name: str) -> Iterator[Damage]:
    rows = transaction.rows("SELECT data FROM contents WHERE hash = ?", name)
    data = rows[0][0] if rows else None
    if data is None:
        yield Damage(conversation=conversation, place=f"content {name}", what="missing, and never erased")
    elif not is_content(name, data):
        found = (
            f"its {len(data):,} bytes have the hash {hash_bytes(data)}" if isinstance(data, bytes) else "is no bytes"
        )
        yield Damage(conversation=conversation, place=f"content {name}", what=found)


def verify_tombstone(transaction: Transaction, conversation: str) -> list[Damage]:
    """What is left of an erased conversation beside its tombstone."""
    rows = transaction.rows("SELECT erased, title FROM conversations WHERE id = ?", conversation)
    if not rows or rows[0][0] is None:
        return [Damage(conversation=conversation, place="conversation", what="was not erased from this store")]
    events = transaction.rows("SELECT seq FROM events WHERE conversation = ? ORDER BY seq", conversation)
    held = transaction.rows("SELECT hash FROM holdings WHERE conversation = ? ORDER BY hash", conversation)
    kept = transaction.rows("SELECT version FROM checkpoints WHERE conversation = ? ORDER BY version", conversation)
    left = [*(f"event {seq}" for (seq,) in events), *(f"content {name}" for (name,) in held)]
    left += [f"checkpoint {version}" for (version,) in kept]
    shelved = transaction.rows("SELECT name FROM shelf WHERE conversation = ? ORDER BY name", conversation)
    left += [f"line {name}" for (name,) in shelved]
    left += ["title"] if rows[0][1] else []
    return [Damage(conversation=conversation, place=place, what="left after erasure") for place in left]


def verify_strays(transaction: Transaction) -> list[Damage]:
    """Contents that no conversation holds, and events and holdings of no conversation."""
    loose = transaction.rows(
        "SELECT hash FROM contents WHERE NOT EXISTS (SELECT 1 FROM holdings WHERE holdings.hash = contents.hash)"
        " ORDER BY hash"
    )
    strays = [Damage(conversation=None, place=f"content {name}", what="held by no conversation") for (name,) in loose]
    rows = [row for row in transaction.rows("SELECT id, head FROM conversations") if not is_key(row[0])]
    strays += [_accuse_key(key, _find_true_key(transaction, head)) for key, head in rows]
    for table in ("events", "holdings", "checkpoints"):
        rows = transaction.rows(
            f"SELECT DISTINCT conversation FROM {table} WHERE NOT EXISTS"
            f" (SELECT 1 FROM conversations WHERE conversations.id = {table}.conversation) ORDER BY conversation"
        )
        strays += [_accuse_stray(name, table) for (name,) in rows]
    return strays


def _accuse_key(key: object, true: str | None) -> Damage:
    """A row under a key that is none, or that its events do not have; they tell the true one."""
    return Damage(conversation=true, place="conversation", what=f"has {key!r} for its key", derived=true is not None)


def _accuse_stray(name: object, table: str) -> Damage:
    """Rows whose conversation is not there; its row follows from events, if there can be one of that key."""
    if is_key(name):
        return Damage(conversation=name, place=table, what="belong to no conversation", derived=table == "events")
    return Damage(conversation=None, place=table, what=f"have {name!r} for the key of their conversation")
