"""Commands on the library of a chat: what is attached, detached, dropped, pinned and read anew, and what is there."""

from datetime import UTC, datetime

from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.commands import EVERYTHING
from lamella.errors import UsageError
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.tables.cold import print_cold
from lamella.faces.cli.tables.library import print_library
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell


def attach(talk: TerminalChat, rest: str) -> None:
    """Bring a file, a folder or lines of a file along with the next message."""
    if not rest:
        raise UsageError("/attach names no file.", hint="As in /attach note.md or /attach note.md:10-20.")
    # In a message it is named with the sign.
    rest = rest.removeprefix("@")
    talk.command(Ask(text="", attach=tuple(one.attachment() for one in talk.files.find(rest))))
    talk.warm()
    stays = " and stays attached until /detach" if talk.sticks else ""
    tell(f"{show_line(rest)} goes with the next message{stays}.")


def detach(talk: TerminalChat, rest: str) -> None:
    """Take something out of the working set, or everything; or leave what waits for the next message out of it."""
    before = talk.stored.commands.detach
    done = talk.command(Ask(text="", detach=(rest or EVERYTHING,)))
    if not rest:
        tell("Nothing is attached from the next message on.")
    elif done.detach != before:
        told = "is detached with the next message; /drop takes it out of the prompt as well"
        tell(f"{show_line(rest)} {told}.")
    else:
        tell(f"{show_line(rest)} is not attached with the next message.")


def drop(talk: TerminalChat, rest: str) -> None:
    """Take an artifact out of the prompt."""
    if not rest:
        raise UsageError("/drop names nothing.", hint="As in /drop note.md; /show has what is there.")
    talk.command(Ask(text="", drop=(rest,)))
    tell(f"{show_line(rest)} leaves the prompt with the next message.")


def pin(talk: TerminalChat, rest: str) -> None:
    """Keep an artifact or a message whole."""
    if not rest:
        raise UsageError("/pin names nothing.", hint="As in /pin note.md or /pin reply:2; /show has what is attached.")
    talk.command(Ask(text="", pin=(rest,)))
    tell(f"{show_line(rest)} stays whole in the prompt, from the next message on.")


def unpin(talk: TerminalChat, rest: str) -> None:
    """Let what is pinned be shortened again."""
    if not rest:
        raise UsageError(
            "/unpin names nothing.", hint="As in /unpin note.md or /unpin reply:2; /show has what is attached."
        )
    talk.command(Ask(text="", unpin=(rest,)))
    tell(f"{show_line(rest)} may be shortened or taken out again, from the next message on.")


def refresh(talk: TerminalChat, rest: str) -> None:
    """Read what is attached again; what is as it was, and what cannot be read, is said with the rest."""
    before = {one.id for one in talk.stored.commands.attach}
    done = talk.command(Ask(text="", refresh=(rest or EVERYTHING,)))
    if {one.id for one in done.attach} <= before and not done.said:
        tell("Nothing that is attached can be read anew.")


def show(talk: TerminalChat, _rest: str) -> None:
    """What is in the library, and what each takes."""
    now = datetime.now(UTC)
    print_library(talk.stored, talk.stored.library(at=now))
    print_cold(talk.stored.cold(at=now), now=now)
