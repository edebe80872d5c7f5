"""Conversations as a list, the last changed first."""

from collections.abc import Sequence

from rich.table import Table

from lamella.faces.cli.terminal.console import make_console
from lamella.faces.cli.terminal.lines import show_line
from lamella.views.stores import ChatBody


def print_chats(rows: Sequence[ChatBody]) -> None:
    """Each with its name, its title, when it was changed, and how many events it has."""
    table = Table("id", "title", "changed", "events", box=None, pad_edge=False)
    for row in rows:
        changed = row["updated"][:19].replace("T", " ")
        table.add_row(show_line(row["name"]), show_line(row["title"]), changed, f"{row['events']:,}")
    make_console().print(table)
