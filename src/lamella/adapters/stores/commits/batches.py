"""Batches: appends that share a transaction, in two statements for all of them.

Where a statement is sent nowhere it costs little by itself. But each lets go of the interpreter, and then waits for it
among all the threads that want it; and what is done around each is most of what an append takes.
"""

from collections.abc import Sequence

from msgspec import Struct

from lamella.adapters.stores.appending import INSERT, list_rows, move_row
from lamella.adapters.stores.commits.joined import PlacedChange
from lamella.adapters.stores.database import Row, Transaction


class BatchedAppend(Struct, frozen=True, eq=False):
    """A plain append behind what this process wrote last, as work of a transaction, by itself or with others."""

    placed: PlacedChange
    schema: int

    def __call__(self, transaction: Transaction) -> bool:
        """Whether it could be done so; if not, nothing was changed."""
        return append_together(transaction, (self,))


def append_together(transaction: Transaction, appends: Sequence[BatchedAppend]) -> bool:
    """Whether all of them could be done so. If not, some may have been, and nothing of it may be committed."""
    moves: dict[str, list[Row]] = {}
    rows: list[Row] = []
    for one in appends:
        change, hashes = one.placed.change, one.placed.hashes
        moving, values = move_row(change, hashes[-1], head=one.placed.head)
        moves.setdefault(moving, []).append((*values, one.schema))
        rows += list_rows(change, hashes, counted=True)
    for moving, all_values in moves.items():
        if transaction.run_each(moving, all_values) != len(all_values):
            return False
    transaction.run_each(INSERT, rows)
    return True
