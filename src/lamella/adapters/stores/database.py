"""What differs between databases, as a small protocol. The logic above it is written once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from lamella.holdings import Damage

Result = TypeVar("Result")
Row = tuple[Any, ...]

# Both databases take far more values in one statement; this keeps statements short.
_CHUNK = 500


class Transaction(Protocol):
    """Statements that happen together or not at all. Values stand in SQL as ``?``."""

    def run(self, sql: str, *values: object) -> int:
        """One statement; how many rows it changed."""
        ...

    def run_each(self, sql: str, rows: Sequence[Row]) -> int:
        """One statement for each row of values; how many rows they changed."""
        ...

    def rows(self, sql: str, *values: object) -> list[Row]: ...


class Database(Protocol):
    """One database: how it begins, commits, locks, and says what went wrong."""

    @property
    def dialect(self) -> str:
        """The folder of its migrations."""
        ...

    @property
    def lock_row(self) -> str:
        """What a SELECT ends in so that nobody else changes the row before this transaction is over."""
        ...

    @property
    def joins(self) -> bool:
        """Whether one statement may change several tables; it needs no transaction around it then."""
        ...

    def run(self, sql: str, *values: object) -> int:
        """One statement by itself, durable when this returns, and how many rows it changed; as ``write`` else."""
        ...

    def find_deadline(self) -> float:
        """Until when whoever sends something now waits for it, in seconds by the clock of the database."""
        ...

    def query(self, sql: str, *values: object) -> list[Row]:
        """The rows of one statement, which needs no transaction around it."""
        ...

    def each(self, read: Callable[[Row], Result], sql: str, *values: object) -> list[Result]:
        """What ``read`` makes of each row of such a statement as it comes: none is held longer than that.

        It may be given rows again, where the database went away meanwhile.
        """
        ...

    def read(self, work: Callable[[Transaction], Result]) -> Result:
        """Run work on one consistent state."""
        ...

    def write(self, work: Callable[[Transaction], Result]) -> Result:
        """Run work and commit it; durable when this returns. Work that was lost on the way may be run again."""
        ...

    def migrate(self, work: Callable[[Transaction], Result]) -> Result:
        """Run work alone: nobody else migrates meanwhile."""
        ...

    def tables(self, transaction: Transaction) -> set[str]:
        """The tables that are there."""
        ...

    def begin_erasing(self, transaction: Transaction) -> None:
        """Keep everyone else from taking hold of contents until the transaction is over, and note that it erases."""
        ...

    def purge(self) -> None:
        """Remove the bytes of what was erased from where they may linger."""
        ...

    def inspect(self) -> Iterator[Damage]:
        """What the database itself finds wrong with its files."""
        ...

    def find_lingering(self) -> Iterator[Damage]:
        """Where bytes of what was erased may linger."""
        ...

    def close(self) -> None: ...


def split(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Values in pieces that fit one statement."""
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]


def marks(values: Sequence[object]) -> str:
    """As many question marks as there are values, in brackets."""
    return f"({', '.join('?' * len(values))})"
