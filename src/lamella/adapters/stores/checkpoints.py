"""Checkpoints: what the first events of a conversation come to, kept until an erasure."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lamella.adapters.stores.database import Database, Result, Row, Transaction
from lamella.holdings import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWrite:
    """A checkpoint to keep, and the versions of those that it replaces."""

    conversation: str
    checkpoint: Checkpoint
    instead_of: tuple[int, ...]


def write_checkpoint(database: Database, transaction: Transaction, kept: CheckpointWrite) -> bool:
    """Keep a checkpoint of a conversation that has just these events, and say whether it has.

    Had something been erased since, it would bring back what was counted of it.
    """
    conversation, checkpoint = kept.conversation, kept.checkpoint
    found = transaction.rows(
        "SELECT version, head FROM conversations WHERE id = ? AND erased IS NULL" + database.lock_row, conversation
    )
    if not found or found[0][0] != checkpoint.version:
        return False
    transaction.run_each(
        "DELETE FROM checkpoints WHERE conversation = ? AND version = ?",
        [(conversation, version) for version in kept.instead_of],
    )
    transaction.run_each(
        "UPDATE checkpoints SET data = ?, apart = ? WHERE conversation = ? AND version = ?",
        [(one.data, one.apart, conversation, one.version) for one in checkpoint.before],
    )
    transaction.run(
        "INSERT INTO checkpoints (conversation, version, head, data, apart) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (conversation, version)"
        " DO UPDATE SET head = excluded.head, data = excluded.data, apart = excluded.apart",
        *(conversation, checkpoint.version, found[0][1], checkpoint.data, checkpoint.apart),
    )
    return True


def find_checkpoints(
    database: Database, conversation: str, read: Callable[[Checkpoint], Result], *, apart: bool
) -> list[Result]:
    """The checkpoints after events that are still there, and that the conversation says it has."""
    # Looked up for each checkpoint, never joined: with figures from before a conversation began, PostgreSQL expects
    # next to nothing of it, and went through all of its events for each of its checkpoints (2026-11-18).
    return database.each(
        partial(_read_row, read),
        f"SELECT version, data, {'apart' if apart else 'NULL'} FROM checkpoints WHERE conversation = ? AND head ="
        " (SELECT hash FROM events WHERE events.conversation = checkpoints.conversation AND seq = checkpoints.version)"
        " AND version <= (SELECT version FROM conversations WHERE id = checkpoints.conversation) ORDER BY version",
        conversation,
    )


def _read_row(read: Callable[[Checkpoint], Result], row: Row) -> Result:
    # Data of another type than bytes is no checkpoint; whoever reads it finds that out.
    data, apart = [some if isinstance(some, bytes) else b"" for some in row[1:]]
    return read(Checkpoint(version=row[0], data=data, apart=apart))


def remove_checkpoints(transaction: Transaction, conversation: str) -> None:
    """Remove what was derived from something that is erased now."""
    transaction.run("DELETE FROM checkpoints WHERE conversation = ?", conversation)
