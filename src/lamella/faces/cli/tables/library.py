"""The library for people: a row for each artifact, then what waits for the next turn."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from rich.table import Table

from lamella import Turn
from lamella.engine.dialogue.library import LibraryRow
from lamella.engine.dialogue.reading.waiting import Commands
from lamella.engine.dialogue.reading.working_set import name_artifact, name_present
from lamella.engine.keeping.stored import StoredChat
from lamella.faces.cli.terminal.console import print_table
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.faces.cli.terminal.telling import tell
from lamella.views.amounts import plain
from lamella.views.library import find_amount, find_more

_LEFT_OUT = 12
_DIGITS = 6
_PIN = "pin"
_TOO_MUCH = (
    "That is more than fits. What may be is made smaller with the next question; where that is not enough, it is "
    "refused, and all of this waits. Detach something, or attach lines or a heading of it."
)


def print_library(stored: StoredChat, rows: Sequence[LibraryRow]) -> None:
    """Every artifact, what is left out of folders, and what waits."""
    waits = stored.commands
    if not rows and not waits:
        tell(f"Nothing was ever attached to {show_line(stored.name)}.")
        return
    headings = ("artifact", "kind", "form", "tokens", "age", "working set", "cached", "detaching saves")
    table = Table(*headings, box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            show_line(row.name),
            row.kind,
            row.form,
            f"{row.tokens:,}",
            "next turn" if row.waits else tell_count(row.age_turns, "turn"),
            _tell_held(row),
            {True: "yes", False: "no", None: "unknown"}[row.cached],
            f"{row.saves:,}",
        )
    print_table(table)
    for line in (*_tell_left_out(rows), *_tell_commands(stored, waits)):
        tell(line)


def _tell_held(row: LibraryRow) -> str:
    if not row.in_working_set:
        return "no"
    return "pinned" if row.policy == "pin" else "yes"


def _tell_left_out(rows: Sequence[LibraryRow]) -> Iterator[str]:
    for row in rows:
        if row.left_out:
            yield f"Left out of {show_line(row.name)}, {tell_count(len(row.left_out), 'note')}:"
            yield from (f"  {show_line(path)}" for path in row.left_out[:_LEFT_OUT])
            more = len(row.left_out) - _LEFT_OUT
            if more > 0:
                yield f"  and {more:,} more; --json has all of them"


def print_done(stored: StoredChat, waits: Commands, *, before: Turn, after: Turn) -> None:
    """What a command came to: what waits now, and the next request with it."""
    for line in waits.said:
        tell(f"note: {show_line(line)}", err=True)
    lines = list(_tell_commands(stored, waits))
    tell("\n".join(lines) if lines else f"Nothing waits for the next turn of {show_line(stored.name)}.")
    tell(_tell_next(before, after))
    if after.tokens.total > after.tokens.limit:
        tell(f"note: {_TOO_MUCH}", err=True)


def _tell_commands(stored: StoredChat, waits: Commands) -> Iterator[str]:
    """What waits for the next turn, a line for each, by the names that people know."""
    known = name_present(stored.standing[0])
    for one in waits.attach:
        tokens = f", {tell_count(waits.tokens[one.id], 'token')}" if one.id in waits.tokens else ""
        shown = " as its outline" if one.outlined else ""
        pinned = ", pinned" if one.policy == _PIN else ""
        yield f"attached to the next turn: {show_line(name_artifact(one))}, {one.kind}{shown}{tokens}{pinned}"
    for names, done in (
        (waits.detach, "detached"),
        (waits.drop, "dropped"),
        (waits.pin, "pinned"),
        (waits.unpin, "unpinned"),
        (waits.rules, "a rule"),
        (waits.ended, "no rule any more"),
    ):
        yield from (f"{done} with the next turn: {show_line(known.get(name, name))}" for name in names)


def _tell_next(before: Turn, after: Turn) -> str:
    total, more = after.tokens.total, after.tokens.total - before.tokens.total
    cost, more_cost = find_amount(after), find_more(before, after)
    told = f"The next request, before its question: {total:,} of {after.tokens.limit:,} tokens ({more:+,})"
    if cost is None or more_cost is None:
        return f"{told}."
    sign = "-" if more_cost < 0 else "+"
    return f"{told}, about {_tell_money(cost)} ({sign}{_tell_money(abs(more_cost))})."


def _tell_money(amount: Decimal) -> str:
    return f"${plain(round(amount, _DIGITS))}"
