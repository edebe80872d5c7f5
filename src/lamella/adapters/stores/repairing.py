"""Repairing: the row of a conversation derived again from its events, which tell all of it but its name."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count

from lamella.adapters.stores.chain import FIRST, clean_title
from lamella.adapters.stores.database import Database, Transaction
from lamella.adapters.stores.rows import is_key, tell_damage
from lamella.adapters.stores.verifying import HashChain, follow_events
from lamella.core.log.records import Record
from lamella.errors import StoreDamagedError

# Hashes of events follow from the key, too: the last of one conversation is no other's.
_HAS_NOTHING = "".join(
    f" AND NOT EXISTS (SELECT 1 FROM {table} WHERE {table}.conversation = conversations.id)"
    for table in ("events", "holdings", "checkpoints")
)


def derive_row(
    database: Database,
    transaction: Transaction,
    conversation: str,
    *,
    tell_title: Callable[[Sequence[Record]], str],
) -> None:
    """Write what the events come to into the conversation's row, which is made if it is gone."""
    walked = follow_events(transaction, conversation)
    if walked.damages or not walked.records:
        raise _damaged(conversation)
    called = _take_back(transaction, conversation, walked.head)
    _make_row(transaction, conversation, walked.records[0].at)
    found = transaction.rows(
        "SELECT name, version, head, erased FROM conversations WHERE id = ?" + database.lock_row, conversation
    )
    name, version, head, erased = found[0]
    if (erased is not None and version == 0) or not _is_end(walked, version=version, head=head):
        raise _damaged(conversation)
    transaction.run(
        "UPDATE conversations SET name = ?, version = ?, head = ?, title = ?, created = ?, updated = ?, erased = NULL"
        " WHERE id = ?",
        _find_name(transaction, conversation, called if called is not None and name in (None, conversation) else name),
        walked.seq,
        walked.head,
        clean_title(tell_title(walked.records)),
        walked.records[0].at,
        walked.records[-1].at,
        conversation,
    )


def _take_back(transaction: Transaction, conversation: str, head: str) -> object:
    """Remove rows under a false key, which have the last event and no other; the name that one of them had."""
    rows = transaction.rows(
        f"SELECT id, name FROM conversations WHERE head = ? AND id <> ?{_HAS_NOTHING}", *(head, conversation)
    )
    for key, _ in rows:
        transaction.run("DELETE FROM conversations WHERE id = ?", key)
    return next((name for _, name in rows), None)


def _make_row(transaction: Transaction, conversation: str, at: str) -> None:
    transaction.run(
        "INSERT INTO conversations (id, version, head, title, created, updated) VALUES (?, 0, ?, '', ?, ?)"
        " ON CONFLICT DO NOTHING",
        *(conversation, FIRST, at, at),
    )


def _is_end(walked: HashChain, *, version: object, head: object) -> bool:
    """Whether no event is missing at the end: a row that knows of more, and of another last one, may be right."""
    return head == walked.head or not isinstance(version, int) or version <= walked.seq


def _find_name(transaction: Transaction, conversation: str, known: object) -> str:
    """The name it has; for one whose own cannot be read, or is another's by now, its key, if no other is called so."""
    for name in _list_names(conversation, known):
        if not transaction.rows(
            "SELECT id FROM conversations WHERE name = ? AND id <> ? AND erased IS NULL", name, conversation
        ):
            return name
    raise AssertionError("count never ends")


def _list_names(conversation: str, known: object) -> Iterator[str]:
    own = (known,) if is_key(known) else ()
    return chain(own, (conversation,), (f"{conversation}-{number}" for number in count(2)))


def _damaged(conversation: str) -> StoreDamagedError:
    return StoreDamagedError(
        f"The conversation {conversation} cannot be repaired: its events are damaged or missing.", hint=tell_damage
    )
