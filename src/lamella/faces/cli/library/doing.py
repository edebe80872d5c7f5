"""Doing something with the library of a conversation, and telling what that came to."""

from datetime import UTC, datetime
from pathlib import Path

from lamella.engine.dialogue.ask import Ask
from lamella.faces.cli.access import opened_chat
from lamella.faces.cli.tables.library import print_done
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell_json
from lamella.views.library import view_commands


def do(
    chat: str, asked: Ask, *, store: str | None, as_json: bool, vault: Path | None = None, create: bool = False
) -> None:
    """Give a command to a conversation, and tell what waits for its next turn then, and what that comes to.

    One that is not there may be begun with it, where somebody would ``create`` it.
    """
    with opened_chat(store, chat, vault=vault, create=create) as stored, told_if_slow(f"Reading for {chat}"):
        nothing, now = Ask(text=""), datetime.now(UTC)
        before = stored.preview(nothing, at=now)
        done = stored.command(asked)
        after = stored.preview(nothing, at=now)
    if as_json:
        tell_json(view_commands(stored.id, done, before=before, after=after))
    else:
        print_done(stored.name, done, before=before, after=after)
