"""Erasing: the one exception to the log's permanence. A tombstone stays."""

from lamella.adapters.stores.chain import FIRST
from lamella.adapters.stores.checkpoints import remove_checkpoints
from lamella.adapters.stores.database import Database, Transaction
from lamella.adapters.stores.sharing.shelf import clear_shelf


def bury(database: Database, transaction: Transaction, conversation: str, *, at: str) -> None:
    """Remove a conversation's events and the contents that only it holds.

    One that is not there gets its tombstone too, so that no copy of it is ever taken in. One that is erased already
    keeps the time of its first erasure.
    """
    transaction.run(
        "INSERT INTO conversations (id, version, head, title, created, updated) VALUES (?, 0, ?, '', ?, ?)"
        " ON CONFLICT DO NOTHING",
        *(conversation, FIRST, at, at),
    )
    # Appending locks the conversation first and holds contents after; so does this, or two could wait for each other.
    transaction.rows("SELECT id FROM conversations WHERE id = ?" + database.lock_row, conversation)
    database.begin_erasing(transaction)
    transaction.run(
        "DELETE FROM contents WHERE hash IN (SELECT hash FROM holdings WHERE conversation = ?) AND NOT EXISTS"
        " (SELECT 1 FROM holdings WHERE holdings.hash = contents.hash AND conversation <> ?)",
        *(conversation, conversation),
    )
    transaction.run("DELETE FROM holdings WHERE conversation = ?", conversation)
    transaction.run("DELETE FROM events WHERE conversation = ?", conversation)
    remove_checkpoints(transaction, conversation)
    clear_shelf(transaction, conversation)
    transaction.run(
        "UPDATE conversations SET version = 0, head = ?, title = '', updated = ?, erased = ?"
        " WHERE id = ? AND erased IS NULL",
        *(FIRST, at, at, conversation),
    )
