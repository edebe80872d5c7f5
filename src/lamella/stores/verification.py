"""Verify a SQL store, and repair what can be rebuilt.

``verify_conversation`` recomputes every hash and reports each difference with its place. ``verify_orphaned_rows`` finds data
that belong to no conversation. ``rebuild_row`` rebuilds the row of a conversation from its events, which determine
everything in it except the name.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count

from lamella.core.log.events.kinds import EventRecord
from lamella.core.text.content import hash_bytes
from lamella.errors import StoreCorruptedError, TextError
from lamella.ports import StoreProblem
from lamella.stores.hash_chain import EMPTY_HASH, chain_hash, clean_title, erased_hashes
from lamella.stores.sql_schema import (
    RECORD_COLUMNS,
    Database,
    Row,
    Transaction,
    damage_hint,
    is_data_of_hash,
    is_valid_key,
    is_valid_utf8_text,
    record_from_row,
)


def verify_conversation(transaction: Transaction, conversation_key: str) -> list[StoreProblem]:
    """Return the problems of one conversation: of its events, its row and its contents."""
    found = transaction.query(
        "SELECT version, head, erased, name, title, created, updated FROM conversations WHERE id = ?", conversation_key
    )
    if not found:
        return [
            StoreProblem(conversation=conversation_key, location="conversation", description="is not in this store")
        ]
    version, head, erased, *columns = found[0]
    chain = verify_events(transaction, conversation_key)
    # Damage may have marked the row as erased. If it counts events and these are complete, the mark is the problem.
    if erased is not None and (version == 0 or not chain.is_intact):
        return verify_tombstone(transaction, conversation_key)
    if not chain.seq and (true := _find_actual_key(transaction, head)) is not None:
        return [_describe_wrong_key(conversation_key, true)]
    chain.check_not_erased(erased)
    chain.check_row(version, head)
    if chain.is_intact:
        chain.check_columns(columns)
    return [*chain.problems, *_verify_used_contents(transaction, conversation_key, chain.records)]


def _find_actual_key(transaction: Transaction, head: object) -> str | None:
    """Return the key of the conversation that has the event with this hash, or None.

    The key is part of every hash, so a row that names the hash but has no events has a wrong key.
    """
    rows = transaction.query("SELECT conversation FROM events WHERE hash = ?", head) if is_valid_utf8_text(head) else []
    return next((key for (key,) in rows if is_valid_key(key)), None)


def verify_events(transaction: Transaction, conversation_key: str) -> "HashChainVerifier":
    """Verify all events of a conversation in order and return the verifier."""
    chain = HashChainVerifier(conversation_key)
    rows = transaction.query(
        f"SELECT {RECORD_COLUMNS}, hash FROM events WHERE conversation = ? ORDER BY seq", conversation_key
    )
    for row in rows:
        chain.verify_event(row)
    return chain


class HashChainVerifier:
    """Verifies the events of a conversation one after the other; a damaged event does not make later ones wrong."""

    def __init__(self, conversation_key: str) -> None:
        self.problems: list[StoreProblem] = []
        self.records: list[EventRecord] = []
        self.seq = 0
        self.head = EMPTY_HASH
        self._conversation_key = conversation_key
        # The hashes that the next event may follow: the stored hash of the event before it, and the computed one.
        self._previous: set[str] = {EMPTY_HASH}

    @property
    def is_intact(self) -> bool:
        """Return whether all events are present and unchanged; problems that can be rebuilt do not count."""
        return len(self.records) == self.seq and all(damage.is_repairable for damage in self.problems)

    def verify_event(self, row: Row) -> None:
        """Verify the next event and add its problems."""
        seq, stored = row[0], str(row[-1])
        if not isinstance(seq, int):
            self._report_problem("events", f"one has {seq!r} for its number")
            return
        if seq != self.seq + 1:
            self._report_missing_events(self.seq + 1, seq - 1)
            self._report_event_problem(seq, "cannot be checked without the event before it")
            self._previous = set()
        self.seq, self.head = seq, stored
        try:
            record = record_from_row(self._conversation_key, row[:-1])
            derived = {chain_hash(name, self._conversation_key, seq=seq, record=record) for name in self._previous}
        except (StoreCorruptedError, TextError) as error:
            self._report_event_problem(seq, error.message)
            derived = set()
        else:
            self.records.append(record)
            if derived and stored not in derived:
                self._report_event_problem(seq, f"has the hash {stored}, but its content has {min(derived)}")
        self._previous = {stored} | derived

    def check_not_erased(self, erased: object) -> None:
        """Report a row that is marked as erased although its events are present."""
        if erased is not None:
            self._report_row_problem(f"says that it was erased at {erased!r}; its events are there")

    def check_row(self, version: object, head: object) -> None:
        """Compare the number of events and the last hash with the conversation's row."""
        # A higher version alone may be a wrong number. With another hash as well, events are missing at the end.
        if isinstance(version, int) and version > self.seq and head != self.head:
            self._report_missing_events(self.seq + 1, version)
        elif version != self.seq:
            stored = f"{version:,}" if isinstance(version, int) else repr(version)
            self._report_row_problem(f"has {self.seq:,} events and says that it has {stored}")
        elif head not in self._previous:
            self._report_row_problem(f"says that its last event has the hash {head}")

    def check_columns(self, columns: Sequence[object]) -> None:
        """Compare the other columns of the row: name and title must be text, the times must match the events."""
        name, title, created, updated = columns
        if not is_valid_key(name):
            self._report_row_problem(f"has {name!r} for its name")
        if not is_valid_utf8_text(title):
            self._report_row_problem(f"has {title!r} for its title")
        first, last = (self.records[0].at, self.records[-1].at) if self.records else ("", "")
        for what, stored, true in (("began", created, first), ("changed", updated, last)):
            if stored != true and self.records:
                self._report_row_problem(f"says that it {what} at {stored!r}; its events say {true!r}")

    def _report_row_problem(self, description: str) -> None:
        """Report a problem of the row that can be rebuilt from the events."""
        found = StoreProblem(
            conversation=self._conversation_key, location="conversation", description=description, is_repairable=True
        )
        self.problems.append(found)

    def _report_missing_events(self, first: int, last: int) -> None:
        self._report_problem(f"event {first}" if first == last else f"events {first} to {last}", "missing")

    def _report_event_problem(self, seq: int, description: str) -> None:
        self._report_problem(f"event {seq}", description)

    def _report_problem(self, location: str, description: str) -> None:
        self.problems.append(
            StoreProblem(conversation=self._conversation_key, location=location, description=description)
        )


def _verify_used_contents(
    transaction: Transaction, conversation_key: str, records: Sequence[EventRecord]
) -> Iterator[StoreProblem]:
    """Yield problems of the contents that a conversation uses: missing, damaged, or named by no event."""
    rows = transaction.query("SELECT hash FROM holdings WHERE conversation = ? ORDER BY hash", conversation_key)
    used_hashes = [name for (name,) in rows]
    named = {name for record in records for name in record.contents}
    erased = erased_hashes(records)
    for name in sorted(named - set(used_hashes) - erased):
        yield StoreProblem(
            conversation=conversation_key, location=f"content {name}", description="missing, and never erased"
        )
    for name in used_hashes:
        if name not in named:
            yield StoreProblem(
                conversation=conversation_key, location=f"content {name}", description="held, and no event names it"
            )
        yield from _verify_content(transaction, conversation_key, name)


def _verify_content(transaction: Transaction, conversation_key: str, name: str) -> Iterator[StoreProblem]:
    rows = transaction.query("SELECT data FROM contents WHERE hash = ?", name)
    data = rows[0][0] if rows else None
    if data is None:
        yield StoreProblem(
            conversation=conversation_key, location=f"content {name}", description="missing, and never erased"
        )
    elif not is_data_of_hash(name, data):
        found = (
            f"its {len(data):,} bytes have the hash {hash_bytes(data)}" if isinstance(data, bytes) else "is no bytes"
        )
        yield StoreProblem(conversation=conversation_key, location=f"content {name}", description=found)


def verify_tombstone(transaction: Transaction, conversation_key: str) -> list[StoreProblem]:
    """Return what is left of an erased conversation besides its tombstone."""
    rows = transaction.query("SELECT erased, title FROM conversations WHERE id = ?", conversation_key)
    if not rows or rows[0][0] is None:
        return [
            StoreProblem(
                conversation=conversation_key, location="conversation", description="was not erased from this store"
            )
        ]
    events = transaction.query("SELECT seq FROM events WHERE conversation = ? ORDER BY seq", conversation_key)
    used_hashes = transaction.query("SELECT hash FROM holdings WHERE conversation = ? ORDER BY hash", conversation_key)
    kept = transaction.query(
        "SELECT version FROM checkpoints WHERE conversation = ? ORDER BY version", conversation_key
    )
    left = [*(f"event {seq}" for (seq,) in events), *(f"content {name}" for (name,) in used_hashes)]
    left += [f"checkpoint {version}" for (version,) in kept]
    shelved = transaction.query("SELECT name FROM shelf WHERE conversation = ? ORDER BY name", conversation_key)
    left += [f"line {name}" for (name,) in shelved]
    left += ["title"] if rows[0][1] else []
    return [
        StoreProblem(conversation=conversation_key, location=location, description="left after erasure")
        for location in left
    ]


def verify_orphaned_rows(transaction: Transaction) -> list[StoreProblem]:
    """Return contents that no conversation uses, rows with invalid keys, and rows of missing conversations."""
    loose = transaction.query(
        "SELECT hash FROM contents WHERE NOT EXISTS (SELECT 1 FROM holdings WHERE holdings.hash = contents.hash)"
        " ORDER BY hash"
    )
    strays = [
        StoreProblem(conversation=None, location=f"content {name}", description="held by no conversation")
        for (name,) in loose
    ]
    rows = [row for row in transaction.query("SELECT id, head FROM conversations") if not is_valid_key(row[0])]
    strays += [_describe_wrong_key(key, _find_actual_key(transaction, head)) for key, head in rows]
    for table in ("events", "holdings", "checkpoints"):
        rows = transaction.query(
            f"SELECT DISTINCT conversation FROM {table} WHERE NOT EXISTS"
            f" (SELECT 1 FROM conversations WHERE conversations.id = {table}.conversation) ORDER BY conversation"
        )
        strays += [_describe_stray_rows(name, table) for (name,) in rows]
    return strays


def _describe_wrong_key(key: object, actual_key: str | None) -> StoreProblem:
    """Return the problem of a conversation row with a wrong key; ``actual_key`` is the right one, if known."""
    return StoreProblem(
        conversation=actual_key,
        location="conversation",
        description=f"has {key!r} for its key",
        is_repairable=actual_key is not None,
    )


def _describe_stray_rows(name: object, table: str) -> StoreProblem:
    """Return the problem of rows whose conversation does not exist; from events its row can be rebuilt."""
    if is_valid_key(name):
        return StoreProblem(
            conversation=name, location=table, description="belong to no conversation", is_repairable=table == "events"
        )
    return StoreProblem(
        conversation=None, location=table, description=f"have {name!r} for the key of their conversation"
    )


# Repair.

# The key is part of every event hash, so two conversations never end with the same hash. A row with this hash that has
# no data of its own therefore belongs to the conversation that has the event.
_WITHOUT_DATA_CONDITION = "".join(
    f" AND NOT EXISTS (SELECT 1 FROM {table} WHERE {table}.conversation = conversations.id)"
    for table in ("events", "holdings", "checkpoints")
)


def rebuild_row(
    database: Database,
    transaction: Transaction,
    conversation_key: str,
    *,
    get_title: Callable[[Sequence[EventRecord]], str],
) -> None:
    """Rebuild the row of a conversation from its events; a missing row is created.

    ``get_title`` returns the title from the events. Raises ``StoreCorruptedError`` if events are damaged or missing,
    or if the conversation was erased.
    """
    walked = verify_events(transaction, conversation_key)
    if walked.problems or not walked.records:
        raise _corrupted_error(conversation_key)
    called = _remove_wrong_key_rows(transaction, conversation_key, walked.head)
    _insert_row(transaction, conversation_key, walked.records[0].at)
    found = transaction.query(
        "SELECT name, version, head, erased FROM conversations WHERE id = ?" + database.row_lock_clause,
        conversation_key,
    )
    name, version, head, erased = found[0]
    if (erased is not None and version == 0) or not _is_log_complete(walked, version=version, head=head):
        raise _corrupted_error(conversation_key)
    transaction.run(
        "UPDATE conversations SET name = ?, version = ?, head = ?, title = ?, created = ?, updated = ?, erased = NULL"
        " WHERE id = ?",
        _recover_name(
            transaction, conversation_key, called if called is not None and name in (None, conversation_key) else name
        ),
        walked.seq,
        walked.head,
        clean_title(get_title(walked.records)),
        walked.records[0].at,
        walked.records[-1].at,
        conversation_key,
    )


def _remove_wrong_key_rows(transaction: Transaction, conversation_key: str, head: str) -> object:
    """Delete rows with a wrong key that name this conversation's last event.

    Returns the name in the first of them, or None.
    """
    rows = transaction.query(
        f"SELECT id, name FROM conversations WHERE head = ? AND id <> ?{_WITHOUT_DATA_CONDITION}",
        *(head, conversation_key),
    )
    for key, _ in rows:
        transaction.run("DELETE FROM conversations WHERE id = ?", key)
    return next((name for _, name in rows), None)


def _insert_row(transaction: Transaction, conversation_key: str, at: str) -> None:
    transaction.run(
        "INSERT INTO conversations (id, version, head, title, created, updated) VALUES (?, 0, ?, '', ?, ?)"
        " ON CONFLICT DO NOTHING",
        *(conversation_key, EMPTY_HASH, at, at),
    )


def _is_log_complete(verifier: HashChainVerifier, *, version: object, head: object) -> bool:
    """Return whether no event is missing at the end.

    A row with a higher version and another hash may be right, so its conversation is not repaired.
    """
    return head == verifier.head or not isinstance(version, int) or version <= verifier.seq


def _recover_name(transaction: Transaction, conversation_key: str, known: object) -> str:
    """Return the known name if it is valid and free, otherwise the key, or the key with a number."""
    for name in _iter_candidate_names(conversation_key, known):
        if not transaction.query(
            "SELECT id FROM conversations WHERE name = ? AND id <> ? AND erased IS NULL", name, conversation_key
        ):
            return name
    raise AssertionError("count never ends")


def _iter_candidate_names(conversation_key: str, known: object) -> Iterator[str]:
    own = (known,) if is_valid_key(known) else ()
    return chain(own, (conversation_key,), (f"{conversation_key}-{number}" for number in count(2)))


def _corrupted_error(conversation_key: str) -> StoreCorruptedError:
    return StoreCorruptedError(
        f"The conversation {conversation_key} cannot be repaired: its events are damaged or missing.", hint=damage_hint
    )
