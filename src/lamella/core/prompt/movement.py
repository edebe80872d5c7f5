"""What moved: the first byte of a request that differs from the request before it, and why."""

from collections.abc import Sequence

from lamella.core.artifacts.model import Kind
from lamella.core.log.call import Cause, Movement
from lamella.core.log.terms import Layout
from lamella.core.messages.model import Message
from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.layers.library import Standing
from lamella.core.prompt.layers.model import LayerId, message_place
from lamella.core.prompt.layers.system import changed_part


def find_movement(before: Sent | None, now: Envelope) -> Movement:
    """Why this request does not extend the one before, or that it does."""
    if before is None:
        return Movement(cause=Cause.FIRST_TURN)
    if before.model != now.model:
        return Movement(cause=Cause.MODEL_CHANGED)
    if before.tools != now.tools:
        return Movement(cause=Cause.TOOLS_CHANGED, segment=_changed_tool(before, now))
    if extends(before, now):
        return Movement(cause=Cause.NONE)
    part = changed_part(before.segments(LayerId.L1), now.segments(LayerId.L1))
    if part is not None:
        return Movement(cause=Cause.SYSTEM_CHANGED, segment=part)
    if before.layout is not now.layout:
        return Movement(cause=Cause.LAYOUT_CHANGED)
    if now.rewritten is not None:
        return Movement(cause=Cause(now.rewritten.value))
    return _epoch_movement(before, now)


def extends(before: Sent, now: Envelope) -> bool:
    """Whether this request starts with all messages of the one before, byte for byte."""
    if len(before.messages) > len(now.messages):
        return False
    return all(
        old.extends_to(new) for old, new in zip(before.messages, now.messages[: len(before.messages)], strict=True)
    )


def _epoch_movement(before: Sent, now: Envelope) -> Movement:
    """What a new epoch moved: by a compaction, or by taking things into the library and the strip."""
    library = _library_movement(before, now)
    if now.compacted is not None and not _moves_anyway(library, now):
        return Movement(cause=Cause.COMPACTED, segment=now.compacted)
    return library or _history_movement(before, now)


def _moves_anyway(library: Movement | None, now: Envelope) -> bool:
    """Whether the library's first new byte is a note that every turn of this layout takes in, compacted or not."""
    taken_in = (Cause.ARTIFACT_ADDED, Cause.ARTIFACT_UPDATED)
    return now.layout is Layout.LIBRARY and library is not None and library.cause in taken_in


def _library_movement(before: Sent, now: Envelope) -> Movement | None:
    old, new = before.shelf, now.shelf
    at = _first_difference(old, new)
    if at is None:
        return None
    kept = {standing.artifact.id for standing in new}
    if at < len(old) and old[at].artifact.id not in kept:
        return Movement(cause=Cause.EPOCH_FOLDED, segment=old[at].artifact.id)
    moved = new[at].artifact
    if at < len(old) and old[at].artifact.id == moved.id and old[at].artifact.hash != moved.hash:
        return Movement(cause=Cause.ARTIFACT_UPDATED, segment=moved.id)
    if now.layout is Layout.LIBRARY and moved.id not in {standing.artifact.id for standing in old}:
        return Movement(cause=Cause.ARTIFACT_ADDED, segment=moved.id)
    return Movement(cause=Cause.EPOCH_FOLDED, segment=moved.id)


def _first_difference(old: Sequence[Standing], new: Sequence[Standing]) -> int | None:
    for index, (before, now) in enumerate(zip(old, new, strict=False)):
        if before is not now and before.pieces != now.pieces:
            return index
    return None if len(old) == len(new) else min(len(old), len(new))


def _history_movement(before: Sent, now: Envelope) -> Movement:
    if before.epoch == now.epoch:
        return Movement(cause=Cause.HISTORY_EDITED)
    for index, (old, new) in enumerate(zip(before.messages, now.messages, strict=False)):
        if not old.extends_to(new):
            return Movement(cause=Cause.EPOCH_FOLDED, segment=_first_lost(before, index, new))
    return Movement(cause=Cause.EPOCH_FOLDED)


def _first_lost(before: Sent, index: int, new: Message) -> str | None:
    """What a folded message loses first. A reference line of an earlier turn is no segment, so there it is none."""
    place, old = message_place(index), before.messages[index]
    tools = (segment for segment in before.segments(LayerId.L4) if segment.kind == Kind.TOOL)
    named = [segment.id for segment in (*before.segments(LayerId.L3), *tools) if segment.place == place]
    carried = [
        standing.artifact.id
        for standing in before.carried
        if standing.place == place
        and (standing.pieces[-1] == old.pieces[0] if standing.pieces else old.pieces == new.pieces)
    ]
    known = [
        segment.id
        for segment in before.segments(LayerId.L2)
        if segment.place == place and old.pieces and segment.text.endswith(old.pieces[0])
    ]
    return next(iter((*named, *carried, *known)), None)


def _changed_tool(before: Sent, now: Envelope) -> str | None:
    old, new = set(before.tools), set(now.tools)
    changed = [tool.name for tool in (*now.tools, *before.tools) if tool not in old or tool not in new]
    return changed[0] if changed else None
