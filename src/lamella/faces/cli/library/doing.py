"""Doing something with the library of a conversation, and telling what that came to."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

from lamella.engine.dialogue.ask import Ask
from lamella.errors import BadInputError, UsageError
from lamella.faces.cli.access import opened_chat
from lamella.faces.cli.tables.library import print_done
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.ports import NO_VAULT
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
    whole: bool = False,
) -> None:
    """Give a command to a conversation, and tell what waits for its next turn then, and what that comes to.

    One that is not there may be begun with it, where somebody would ``create`` it. What has to be found first is found
    once the conversation is. ``whole`` says that several things are attached, of which all are or none.
    """
    nothing, now = Ask(text=""), datetime.now(UTC)
    with opened_chat(store, chat, vault=vault, create=create) as stored:
        with told_if_slow(f"Reading for {chat}"):
            before = stored.preview(nothing, at=now)
            with _told_as_whole() if whole else nullcontext():
                done = stored.command(asked if isinstance(asked, Ask) else asked())
            after = stored.preview(nothing, at=now)
        if as_json:
            tell_json(view_commands(stored.id, done, before=before, after=after))
        else:
            print_done(stored, done, before=before, after=after)
            if any(line.endswith(NO_VAULT) for line in done.said):
                tell("hint: Name the folder that it is in, with --vault FOLDER.", err=True)


@contextmanager
def _told_as_whole() -> Iterator[None]:
    """What is wrong with one of several things says that none of them was attached, and what can be."""
    try:
        yield
    except BadInputError as error:
        advice = error.advice
        error.message = f"{error.message} Nothing was attached."
        error.hint = lambda door: (
            f"{advice if isinstance(advice, str) else advice(door)} The others can be attached without it."
        )
        raise
