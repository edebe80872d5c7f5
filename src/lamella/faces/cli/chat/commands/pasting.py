"""Pasting at a terminal: a picture from the clipboard, or one as letters, goes with the next message."""

from lamella.engine.dialogue.ask import Ask
from lamella.errors import CallError
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.terminal.clipboard import list_givers, read_picture
from lamella.faces.cli.terminal.telling import tell


def paste(talk: TerminalChat, rest: str) -> None:
    """Attach the picture on the clipboard, or the one that a data URI is."""
    name = _find_name(talk)
    picture = talk.files.take_picture(rest or _read_clipboard(), title=name)
    talk.command(Ask(text="", attach=(picture.attachment(),)))
    stays = " and stays attached until /detach" if talk.sticks else ""
    tell(f"{name}, {len(picture.data or b''):,} bytes, goes with the next message{stays}.")


def _find_name(talk: TerminalChat) -> str:
    """What nothing that waits or was sent is called yet."""
    taken = {*talk.complete("/drop"), *talk.complete("/detach")}
    return next(name for number in range(1, len(taken) + 2) if (name := f"pasted-{number}") not in taken)


def _read_clipboard() -> bytes:
    data = read_picture()
    if data is None:
        programs = " or ".join(list_givers())
        raise CallError(
            "There is no picture on the clipboard that can be read from here.",
            hint=f"Copy one, where there is {programs}; or /attach its file, or /paste data:image/png;base64,…",
        )
    return data
