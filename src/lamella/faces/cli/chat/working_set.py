"""The working set at a terminal: what people call what is in it, and what a name that they type means there."""

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import NoReturn

from lamella.engine.dialogue.working_set import list_working_set, match_names, name_artifact
from lamella.engine.keeping.stored import StoredChat
from lamella.errors import CallError
from lamella.faces.cli.terminal.lines import cut_words, show_line

_SHOWN = 3
_ROOM = 24
_LISTED = 8


def is_sticky(stored: StoredChat) -> bool:
    """Whether what is attached stays attached until it is detached."""
    return stored.standing[1].attachments == "sticky"


def list_attached(stored: StoredChat, *, but: Collection[str] = ()) -> list[str]:
    """What is in the working set, by the names that people know, less those that leave it with the next message."""
    there = list_working_set(*stored.standing)
    gone = {one for name in but for one in match_names(name, there)}
    return list(dict.fromkeys(name_artifact(artifact) for artifact in there if artifact.id not in gone))


def check_attached(stored: StoredChat, name: str, *, waiting: Collection[str] = ()) -> None:
    """Refuse a name that means nothing in the working set."""
    if not match_names(name, list_working_set(*stored.standing)):
        _refuse(f"{show_line(name)} is not attached.", "Attached", [*waiting, *list_attached(stored)])


def _refuse(told: str, what: str, names: Sequence[str]) -> NoReturn:
    shown = ", ".join(map(show_line, names[:_LISTED])) + (f" and {len(names) - _LISTED} more" * (len(names) > _LISTED))
    raise CallError(told, hint=f"{what}: {shown}." if names else f"{what}: nothing.")


def tell_names(names: Sequence[str]) -> str:
    """The first of these names before a prompt, and how many more there are; nothing for none."""
    if not names:
        return ""
    shown = [cut_words(show_line(PurePosixPath(name).name or name), _ROOM) for name in names[:_SHOWN]]
    more = f" +{len(names) - _SHOWN}" if len(names) > _SHOWN else ""
    return f"[{', '.join(shown)}{more}] "
