"""What moved: the first byte of a request that differs from the request before it, and why."""

from collections.abc import Sequence

from lamella.core.artifacts.model import Kind
from lamella.core.log.call import Cause, Movement, Trigger
from lamella.core.log.turn import Turn
from lamella.core.messages.model import Message, count_shared
from lamella.core.prompt.layers.library import Standing
from lamella.core.prompt.layers.model import LayerId, message_place
from lamella.core.prompt.layers.system import changed_part, tell_change
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.core.prompt.wishes import moves_rules

_NO_TRIGGERS: frozenset[Trigger] = frozenset()
# What a turn must have done for a cause of its own.
_OWN_TRIGGERS = {
    Cause.SYSTEM_CHANGED: Trigger.SYSTEM,
    Cause.TOOLS_CHANGED: Trigger.TOOLS,
    Cause.MODEL_CHANGED: Trigger.MODEL,
    Cause.LAYOUT_CHANGED: Trigger.TERMS,
}


def find_movement(before: Prompt | None, now: Prompt) -> Movement:
    """Why this request does not extend the one before, or that it does."""
    if before is None:
        return Movement(cause=Cause.FIRST_TURN)
    if before.model != now.model:
        return Movement(cause=Cause.MODEL_CHANGED)
    if before.tools != now.tools:
        return Movement(cause=Cause.TOOLS_CHANGED, segment=_changed_tool(before, now))
    if before.renderer != now.renderer:
        return Movement(cause=Cause.RENDERER_CHANGED)
    return Movement(cause=Cause.NONE) if extends(before.messages, now.messages) else _messages_movement(before, now)


def _messages_movement(before: Prompt, now: Prompt) -> Movement:
    """What moved the first message that is not as it was."""
    old, new = before.segments(LayerId.L1), now.segments(LayerId.L1)
    part = changed_part(old, new)
    if part is not None and now.compacted is not None and Trigger.SYSTEM not in now.triggers:
        return Movement(cause=Cause.COMPACTED, segment=now.compacted)
    if part is not None:
        return Movement(cause=Cause.SYSTEM_CHANGED, segment=tell_change(part, old, new))
    if before.terms.layout is not now.terms.layout:
        return Movement(cause=Cause.LAYOUT_CHANGED)
    if now.rewritten is not None:
        return Movement(cause=Cause(now.rewritten.value))
    return _epoch_movement(before, now)


def find_triggers(state: State, turn: Turn) -> frozenset[Trigger]:
    """What a turn does, asked in a state, after which bytes that were sent before may stand elsewhere."""
    # Turns are asked under one and the same terms for as long as nobody sets others.
    same = turn.terms is state.terms and turn.system is None and turn.tools is None and turn.model is None
    if state.terms is None or (same and not turn.drop and not turn.fold and turn.rules is None):
        return _NO_TRIGGERS
    done = {
        Trigger.SYSTEM: turn.system is not None and turn.system != state.system,
        Trigger.TOOLS: turn.tools is not None and turn.tools != state.tools,
        Trigger.MODEL: turn.model not in (None, state.model),
        Trigger.TERMS: turn.terms != state.terms,
        Trigger.DROP: bool(turn.drop),
        Trigger.FOLD: turn.fold,
        Trigger.RULES: turn.rules is not None and moves_rules(state, turn.rules),
    }
    return frozenset([trigger for trigger, did in done.items() if did])


def is_triggered(before: Prompt | None, now: Prompt, movement: Movement) -> bool:
    """Whether something that was done explains a move: by this turn, or by what the one before it attached.

    It is never read off the bytes that moved: those are what is to be explained.
    """
    cause = movement.cause
    if before is None or cause in (Cause.NONE, Cause.RENDERER_CHANGED) or now.rewritten is not None:
        return True
    if cause is Cause.LAYOUT_CHANGED and now.compacted is not None:
        # What was compacted stands under the terms of this turn already: that they are others is not seen any more.
        return True
    if cause in _OWN_TRIGGERS:
        return _OWN_TRIGGERS[cause] in now.triggers
    if now.triggers or now.compacted is not None:
        return True
    # Elsewhere a fold is a decision of the planner, and its placement says why. Taking in is none: it is always done.
    return _takes_in(before, now, movement.segment) if now.placement.promotes else now.placement.keep is not None


def _takes_in(before: Prompt, now: Prompt, moved: str | None) -> bool:
    """Whether what moved goes into the library or leaves its message as it does after every turn."""
    if any(artifact.id == moved for artifact in (*before.attached, *now.attached)):
        return True
    if moved in before.shelf or moved in now.shelf:
        return False
    return bool(before.attached or before.rounds) or _tells_of(before) != _tells_of(now)


def _tells_of(prompt: Prompt) -> tuple[object, ...]:
    """What the history mode hides, and what stands in for it."""
    return prompt.talk.hidden, prompt.talk.stand_in


def extends(before: Sequence[Message], now: Sequence[Message]) -> bool:
    """Whether a request starts with all messages of the one before, byte for byte."""
    if len(before) > len(now):
        return False
    # Messages that were sent before are mostly the same objects: those are passed over without a call each.
    same = count_shared(before, now)
    return all(old.extends_to(new) for old, new in zip(before[same:], now[same : len(before)], strict=True))


def _epoch_movement(before: Prompt, now: Prompt) -> Movement:
    """What a new epoch moved: by a compaction, or by taking things into the library and the strip."""
    library = _library_movement(before, now)
    if now.compacted is not None and not _moves_anyway(library, now):
        return Movement(cause=Cause.COMPACTED, segment=now.compacted)
    return library or _history_movement(before, now)


def _moves_anyway(library: Movement | None, now: Prompt) -> bool:
    """Whether the library's first new byte is a note that is taken in after every turn, compacted or not."""
    taken_in = (Cause.ARTIFACT_ADDED, Cause.ARTIFACT_UPDATED)
    return now.placement.promotes and library is not None and library.cause in taken_in


def _library_movement(before: Prompt, now: Prompt) -> Movement | None:
    old, new = tuple(before.shelf.values()), tuple(now.shelf.values())
    at = _first_difference(old, new)
    if at is None:
        return None
    if at < len(old) and old[at].artifact.id not in now.shelf:
        return Movement(cause=Cause.EPOCH_FOLDED, segment=old[at].artifact.id)
    moved = new[at].artifact
    if at < len(old) and old[at].artifact.id == moved.id and old[at].artifact.hash != moved.hash:
        return Movement(cause=Cause.ARTIFACT_UPDATED, segment=moved.id)
    if now.placement.promotes and moved.id not in before.shelf:
        return Movement(cause=Cause.ARTIFACT_ADDED, segment=moved.id)
    return Movement(cause=Cause.EPOCH_FOLDED, segment=moved.id)


def _first_difference(old: Sequence[Standing], new: Sequence[Standing]) -> int | None:
    for index, (before, now) in enumerate(zip(old, new, strict=False)):
        if before is not now and before.pieces != now.pieces:
            return index
    return None if len(old) == len(new) else min(len(old), len(new))


def _history_movement(before: Prompt, now: Prompt) -> Movement:
    if before.epoch == now.epoch:
        return Movement(cause=Cause.HISTORY_EDITED)
    for index, (old, new) in enumerate(zip(before.messages, now.messages, strict=False)):
        if not old.extends_to(new):
            return Movement(cause=Cause.EPOCH_FOLDED, segment=_first_lost(before, index, new))
    return Movement(cause=Cause.EPOCH_FOLDED)


def _first_lost(before: Prompt, index: int, new: Message) -> str | None:
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


def _changed_tool(before: Prompt, now: Prompt) -> str | None:
    old, new = set(before.tools), set(now.tools)
    changed = [tool.name for tool in (*now.tools, *before.tools) if tool not in old or tool not in new]
    return changed[0] if changed else None
