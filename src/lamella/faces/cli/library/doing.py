"""Doing something with the library of a conversation, and telling what that came to."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from lamella.engine.dialogue.ask import Ask
from lamella.errors import UsageError
from lamella.faces.cli.access import opened_chat
from lamella.faces.cli.tables.library import print_done
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell_json
from lamella.views.library import view_commands


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names that a command was given; a blank one, as a variable without a value gives it, means nothing."""
    if not all(name.strip() for name in names):
        raise UsageError("A name is blank.", hint="Name what is meant; `lamella show CHAT` lists what there is.")
    return tuple(names)


def do(
    chat: str,
    asked: Ask | Callable[[], Ask],
    *,
    store: str | None,
    as_json: bool,
    vault: Path | None = None,
    create: bool = False,
) -> None:
    """Give a command to a conversation, and tell what waits for its next turn then, and what that comes to.

    One that is not there may be begun with it, where somebody would ``create`` it. What has to be found first is found
    once the conversation is.
    """
    nothing, now = Ask(text=""), datetime.now(UTC)
    with opened_chat(store, chat, vault=vault, create=create) as stored:
        with told_if_slow(f"Reading for {chat}"):
            before = stored.preview(nothing, at=now)
            done = stored.command(asked if isinstance(asked, Ask) else asked())
            after = stored.preview(nothing, at=now)
        if as_json:
            tell_json(view_commands(stored.id, done, before=before, after=after))
        else:
            print_done(stored, done, before=before, after=after)
