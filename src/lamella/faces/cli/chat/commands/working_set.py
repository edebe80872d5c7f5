"""The working set at a terminal: what people call what is in it, and what a name that they type means there."""

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import NoReturn

from lamella.engine.dialogue.reading.pins import name_said
from lamella.engine.dialogue.reading.working_set import list_present, list_working_set, match_names, name_artifact
from lamella.engine.keeping.stored import StoredChat
from lamella.errors import CallError
from lamella.faces.cli.terminal.lines import show_line
from lamella.views.words import cut_words

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


def still_attached(stored: StoredChat, names: Sequence[str]) -> tuple[str, ...]:
    """Those names that mean something in the working set: a message that failed has taken its own out already."""
    there = list_working_set(*stored.standing)
    return tuple(name for name in names if match_names(name, there))


def still_present(stored: StoredChat, names: Sequence[str]) -> tuple[str, ...]:
    """The same for the prompt."""
    there = list_present(stored.standing[0])
    return tuple(name for name in names if match_names(name, there))


def check_attached(stored: StoredChat, name: str, *, waiting: Collection[str] = ()) -> None:
    """Refuse a name that means nothing in the working set."""
    if not match_names(name, list_working_set(*stored.standing)):
        _refuse(f"{show_line(name)} is not attached.", "Attached", [*waiting, *list_attached(stored)])


def list_droppable(stored: StoredChat) -> list[str]:
    """What stands in the prompt and may be dropped, by the names that people know."""
    return list(dict.fromkeys(name_artifact(one) for one in list_present(stored.standing[0]) if one.policy != "pin"))


def list_pinnable(stored: StoredChat) -> list[str]:
    """What is in the library and not pinned yet."""
    return [name for name, entry in stored.standing[0].library.items() if entry.artifact.policy != "pin"]


def check_present(stored: StoredChat, name: str, *, waiting: Collection[str] = ()) -> None:
    """Refuse to drop what is not in the prompt, or what is pinned."""
    present = list_present(stored.standing[0])
    ids = match_names(name, present)
    if name in waiting and not ids:
        raise CallError(f"{show_line(name)} was not sent yet.", hint=f"/detach {show_line(name)} leaves it here.")
    if not ids:
        _refuse(f"{show_line(name)} is not in the prompt.", "To drop", list_droppable(stored))
    if any(one.id in ids and one.policy == "pin" for one in present):
        raise CallError(
            f"{show_line(name)} is pinned and stays.",
            hint=f"/unpin {show_line(name)} lets it go, from the next message on.",
        )


def check_pinnable(stored: StoredChat, name: str) -> None:
    """Refuse to pin what is neither in the library nor a message of the prompt."""
    state = stored.standing[0]
    if name not in state.library and name not in name_said(state):
        told = f"{show_line(name)} is not in the library, and no message of the prompt is called so."
        _refuse(told, "To pin", [*list_pinnable(stored), "turn:1", "reply:1 and the like"])


def list_pinned(stored: StoredChat) -> list[str]:
    """What is pinned: ids of artifacts, then of messages."""
    state = stored.standing[0]
    artifacts = [name for name, entry in state.library.items() if entry.artifact.policy == "pin"]
    return [*artifacts, *sorted(state.pinned)]


def check_pinned(stored: StoredChat, name: str, *, pins: Collection[str] = ()) -> None:
    """Refuse to unpin what is not pinned, nor to be pinned with the next message."""
    pinned = list_pinned(stored)
    if name not in pins and name_said(stored.standing[0]).get(name, name) not in pinned:
        _refuse(f"{show_line(name)} is not pinned.", "Pinned", pinned)


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
