"""The working set at a terminal: what people call what is in it, and what a name that they type means there."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from lamella.engine.dialogue.reading.waiting import Commands
from lamella.engine.dialogue.reading.working_set import (
    list_present,
    list_working_set,
    name_artifact,
    name_brought,
    name_present,
)
from lamella.engine.keeping.stored import StoredChat
from lamella.faces.cli.terminal.lines import show_line
from lamella.views.words import cut_words

_SHOWN = 3
_ROOM = 24


def is_sticky(stored: StoredChat) -> bool:
    """Whether what is attached stays attached until it is detached."""
    return stored.standing[1].attachments == "sticky"


def list_attached(stored: StoredChat) -> list[str]:
    """What is in the working set, by the names that people know, less those that leave it with the next message."""
    waits = stored.commands
    gone = {*waits.detach, *waits.drop}
    there = list_working_set(*stored.standing)
    return list(dict.fromkeys(name_artifact(artifact) for artifact in there if artifact.id not in gone))


def list_held(stored: StoredChat) -> list[str]:
    """What of that stays attached; passages that a search found linger, and nobody attached them."""
    library = stored.standing[0].library
    lingers = {name_artifact(entry.artifact) for entry in library.values() if entry.held is None}
    return [name for name in list_attached(stored) if name not in lingers]


def name_waiting(waits: Commands) -> list[str]:
    """What the next message attaches, by the names that people know; a folder stands for its notes."""
    return list(dict.fromkeys(name_brought(one) or name_artifact(one) for one in waits.attach))


def tell_waiting(stored: StoredChat) -> str:
    """What waits for the next message, behind a status line; a picture by its file's name."""
    waits = stored.commands
    if waits == Commands():
        return ""
    known = name_present(stored.standing[0])
    out = dict.fromkeys([*waits.detach, *waits.drop])
    told = "".join(f" · +{show_line(name)}" for name in name_waiting(waits))
    told += "".join(f" · -{show_line(known.get(name, name))}" for name in out)
    told += "".join(f" · pin {show_line(known.get(name, name))}" for name in waits.pin)
    return told + "".join(f" · unpin {show_line(known.get(name, name))}" for name in waits.unpin)


def list_droppable(stored: StoredChat) -> list[str]:
    """What stands in the prompt and may be dropped, by the names that people know."""
    return list(dict.fromkeys(name_artifact(one) for one in list_present(stored.standing[0]) if one.policy != "pin"))


def list_pinnable(stored: StoredChat) -> list[str]:
    """What is in the library and not pinned yet."""
    return [name for name, entry in stored.standing[0].library.items() if entry.artifact.policy != "pin"]


def list_pinned(stored: StoredChat) -> list[str]:
    """What is pinned: ids of artifacts, then of messages."""
    state = stored.standing[0]
    artifacts = [name for name, entry in state.library.items() if entry.artifact.policy == "pin"]
    return [*artifacts, *sorted(state.pinned)]


def tell_names(names: Sequence[str]) -> str:
    """The last of these names before a prompt, and how many more there are; nothing for none."""
    if not names:
        return ""
    shown = [cut_words(show_line(PurePosixPath(name).name or name), _ROOM) for name in names[-_SHOWN:]]
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return f"[{', '.join([*more, *shown])}] "
