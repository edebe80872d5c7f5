"""Conversations as a list, the last changed first."""

from collections.abc import Sequence

from rich.table import Table

from lamella.faces.cli.terminal.console import print_table
from lamella.faces.cli.terminal.lines import show_line, tell_time
from lamella.views.stores import ChatBody


def print_chats(rows: Sequence[ChatBody], *, utc: bool = False) -> None:
    """Each with its name, its title, when it was changed by the clocks here or in UTC, and how many events it has."""
    table = Table("name", "title", "changed (UTC)" if utc else "changed", "events", box=None, pad_edge=False)
    for row in rows:
        changed = tell_time(row["updated"], utc=utc)
        table.add_row(show_line(row["name"]), show_line(row["title"]), changed, f"{row['events']:,}")
    print_table(table)
