"""Places: where in a conversation a host's history goes on, and what the host did to it meanwhile."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from lamella.core.log.nodes import Told
from lamella.engine.chat import Chat
from lamella.engine.hosts.history import HostTurn


class HostChange(StrEnum):
    """What a host did to a history that was known."""

    NONE = "none"
    COMPACTED = "host_compacted"
    REWRITTEN = "host_rewrote"


class HostPlace(NamedTuple):
    """The last message that a history shares with a conversation, and how many of its turns are told by that."""

    head: str
    told: int
    change: HostChange = HostChange.NONE


def find_place(chat: Chat, past: Sequence[HostTurn]) -> HostPlace | None:
    """Where a history goes on; none where nothing of it is known, though something was said in either.

    A history that is known from its beginning goes on after the last turn that is the same. One that begins in the
    middle was shortened by its host: the conversation has all of it, and goes on where it stands.
    """
    branches = [chat.turns(head) for head in (chat.head, *reversed(chat.branches()))] if chat.head else []
    if not past:
        return HostPlace("", 0)
    told, path = max(((_count_same(path, past), path) for path in branches), key=lambda one: one[0], default=(0, ()))
    if told == len(past):
        return HostPlace(_name_end(path[told - 1]), told)
    for path in branches:
        if _ends_alike(path, past):
            return HostPlace(_name_end(path[-1]), len(past), HostChange.COMPACTED)
    if told:
        return HostPlace(_name_end(path[told - 1]), told, HostChange.REWRITTEN)
    return None


def _count_same(path: Sequence[Told], past: Sequence[HostTurn]) -> int:
    """How many turns are the same from the beginning on."""
    count = 0
    for one, turn in zip(path, past, strict=False):
        if not _is_same(one, turn):
            break
        count += 1
    return count


def _ends_alike(path: Sequence[Told], past: Sequence[HostTurn]) -> bool:
    """Whether a history ends as a branch does, though it begins otherwise: with a later turn, or a summary."""
    return bool(path) and bool(past) and _is_same(path[-1], past[-1]) and len(past) <= len(path)


def _is_same(one: Told, turn: HostTurn) -> bool:
    if one.reply is None or turn.reply is None:
        return False
    asked = turn.typed.strip() in (one.message.text.strip(), one.message.typed.strip())
    return asked and one.reply.text.strip() == turn.reply.strip()


def _name_end(told: Told) -> str:
    return told.message.id if told.reply is None else told.reply.id
