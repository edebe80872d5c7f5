"""Detect prefix changes: the first byte that differs from the previous request, and its cause."""

from collections.abc import Sequence

from lamella.core.artifacts.model import ArtifactKind
from lamella.core.log.call import PrefixChange, PrefixChangeCause, PrefixChangeTrigger
from lamella.core.log.turn import Turn
from lamella.core.messages import Message, count_common_prefix
from lamella.core.prompt.layers.library import PlacedArtifact
from lamella.core.prompt.layers.model import (
    LayerId,
    first_changed_system_part,
    message_position,
    name_changed_system_part,
    shown_segments,
)
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.rules import rules_change_prompt
from lamella.core.prompt.state import PromptState

_NO_TRIGGERS: frozenset[PrefixChangeTrigger] = frozenset()
# The trigger that the turn must have set for each of these causes.
_TRIGGER_BY_CAUSE = {
    PrefixChangeCause.SYSTEM_CHANGED: PrefixChangeTrigger.SYSTEM,
    PrefixChangeCause.TOOLS_CHANGED: PrefixChangeTrigger.TOOLS,
    PrefixChangeCause.MODEL_CHANGED: PrefixChangeTrigger.MODEL,
    PrefixChangeCause.LAYOUT_CHANGED: PrefixChangeTrigger.TURN_SETTINGS,
}


def detect_prefix_change(before: Prompt | None, now: Prompt) -> PrefixChange:
    """Return why this request does not extend the previous one; the cause is ``NONE`` if it does.

    A cache loses everything after the first byte that differs, so only that one is reported. The checks follow the
    order in which providers render a request: model, tools, system message, library, earlier messages.
    """
    if before is None:
        return PrefixChange(cause=PrefixChangeCause.FIRST_TURN)
    if before.model != now.model:
        return PrefixChange(cause=PrefixChangeCause.MODEL_CHANGED)
    if before.tools != now.tools:
        return PrefixChange(cause=PrefixChangeCause.TOOLS_CHANGED, segment=_find_changed_tool(before, now))
    if before.renderer_version != now.renderer_version:
        return PrefixChange(cause=PrefixChangeCause.RENDERER_CHANGED)
    return (
        PrefixChange(cause=PrefixChangeCause.NONE)
        if is_prefix_of(before.messages, now.messages)
        else _find_message_change(before, now)
    )


def _find_message_change(before: Prompt, now: Prompt) -> PrefixChange:
    """Return what changed the first message that differs."""
    old, new = before.segments(LayerId.L1), now.segments(LayerId.L1)
    part = first_changed_system_part(old, new)
    if part is not None and now.compaction_step is not None and PrefixChangeTrigger.SYSTEM not in now.triggers:
        return PrefixChange(cause=PrefixChangeCause.COMPACTED, segment=now.compaction_step)
    if part is not None:
        return PrefixChange(cause=PrefixChangeCause.SYSTEM_CHANGED, segment=name_changed_system_part(part, old, new))
    if before.turn_settings.layout is not now.turn_settings.layout:
        return PrefixChange(cause=PrefixChangeCause.LAYOUT_CHANGED)
    if now.history_rewrite is not None:
        return PrefixChange(cause=PrefixChangeCause(now.history_rewrite.value))
    return _find_epoch_change(before, now)


def prefix_change_triggers(state: PromptState, turn: Turn) -> frozenset[PrefixChangeTrigger]:
    """Return the actions of a turn, asked in this state, that may change bytes sent before."""
    # Consecutive turns share one settings object until the settings change, so comparing identities is enough here.
    same = (
        turn.turn_settings is state.turn_settings and turn.system is None and turn.tools is None and turn.model is None
    )
    if state.turn_settings is None or (same and not turn.drop and not turn.fold and turn.rules is None):
        return _NO_TRIGGERS
    done = {
        PrefixChangeTrigger.SYSTEM: turn.system is not None and turn.system != state.system,
        PrefixChangeTrigger.TOOLS: turn.tools is not None and turn.tools != state.tools,
        PrefixChangeTrigger.MODEL: turn.model not in (None, state.model),
        PrefixChangeTrigger.TURN_SETTINGS: turn.turn_settings != state.turn_settings,
        PrefixChangeTrigger.DROP: bool(turn.drop),
        PrefixChangeTrigger.FOLD: turn.fold,
        PrefixChangeTrigger.RULES: turn.rules is not None
        and rules_change_prompt(state, turn.rules, system=turn.system),
    }
    return frozenset([trigger for trigger, did in done.items() if did])


def is_change_explained(before: Prompt | None, now: Prompt, change: PrefixChange) -> bool:
    """Return whether a recorded action of this turn, or an attachment of the last one, explains the change.

    The answer never uses the changed bytes themselves, since those are what has to be explained.
    """
    cause = change.cause
    if (
        before is None
        or cause in (PrefixChangeCause.NONE, PrefixChangeCause.RENDERER_CHANGED)
        or now.history_rewrite is not None
    ):
        return True
    if cause is PrefixChangeCause.LAYOUT_CHANGED and now.compaction_step is not None:
        # A compaction already applies this turn's settings, so the settings no longer show as changed.
        return True
    if cause in _TRIGGER_BY_CAUSE:
        return _TRIGGER_BY_CAUSE[cause] in now.triggers
    if now.triggers or now.compaction_step is not None:
        return True
    # With promotion, moving attachments into the library happens after every turn and must be checked. Otherwise a fold
    # is a decision of the planner, and its layout plan gives the reason.
    return (
        _moves_into_library(before, now, change.segment)
        if now.layout_plan.promotes
        else now.layout_plan.keep_messages is not None
    )


def _moves_into_library(before: Prompt, now: Prompt, artifact_id: str | None) -> bool:
    """Return whether the change is the usual move of attachments into the library after a turn."""
    # A turn may show more than it attaches: sticky pictures never enter the library, so each request shows them again.
    shown = {one.id for prompt in (before, now) for one in prompt.rendered_attachments[0]}
    if artifact_id in shown or any(one.id == artifact_id for one in (*before.attached, *now.attached)):
        return True
    if artifact_id in before.system_library or artifact_id in now.system_library:
        return False
    return bool(before.attached or before.rendered_attachments[0] or before.rounds) or _get_hidden_history_key(
        before
    ) != _get_hidden_history_key(now)


def _get_hidden_history_key(prompt: Prompt) -> tuple[object, ...]:
    """Return how many turns the history mode hides, with their placeholder, and from which turn the digest is shown."""
    return prompt.history.hidden_turns, prompt.history.placeholder, prompt.history.first_shown_turn


def is_prefix_of(before: Sequence[Message], now: Sequence[Message]) -> bool:
    """Return whether a request begins with all messages of the previous one, byte for byte."""
    if len(before) > len(now):
        return False
    # Messages sent before are mostly the same objects; skip those by identity, without a call for each.
    same = count_common_prefix(before, now)
    return all(old.has_same_content(new) for old, new in zip(before[same:], now[same : len(before)], strict=True))


def _find_epoch_change(before: Prompt, now: Prompt) -> PrefixChange:
    """Return what a new epoch changed: by a compaction, or by moving attachments into the library."""
    library = _find_library_change(before, now)
    if now.compaction_step is not None and not _library_changes_without_compaction(library, now):
        return PrefixChange(cause=PrefixChangeCause.COMPACTED, segment=now.compaction_step)
    return library or _find_history_change(before, now)


def _library_changes_without_compaction(library_change: PrefixChange | None, now: Prompt) -> bool:
    """Return whether the first change in the library would also happen without the compaction."""
    additions = (PrefixChangeCause.ARTIFACT_ADDED, PrefixChangeCause.ARTIFACT_UPDATED)
    return now.layout_plan.promotes and library_change is not None and library_change.cause in additions


def _find_library_change(before: Prompt, now: Prompt) -> PrefixChange | None:
    old, new = tuple(before.system_library.values()), tuple(now.system_library.values())
    at = _find_first_different_index(old, new)
    if at is None:
        return None
    if at < len(old) and old[at].artifact.id not in now.system_library:
        return PrefixChange(cause=PrefixChangeCause.EPOCH_FOLDED, segment=old[at].artifact.id)
    moved = new[at].artifact
    if at < len(old) and old[at].artifact.id == moved.id and old[at].artifact.hash != moved.hash:
        return PrefixChange(cause=PrefixChangeCause.ARTIFACT_UPDATED, segment=moved.id)
    if now.layout_plan.promotes and moved.id not in before.system_library:
        return PrefixChange(cause=PrefixChangeCause.ARTIFACT_ADDED, segment=moved.id)
    return PrefixChange(cause=PrefixChangeCause.EPOCH_FOLDED, segment=moved.id)


def _find_first_different_index(old: Sequence[PlacedArtifact], new: Sequence[PlacedArtifact]) -> int | None:
    for index, (before, now) in enumerate(zip(old, new, strict=False)):
        if before is not now and before.pieces != now.pieces:
            return index
    return None if len(old) == len(new) else min(len(old), len(new))


def _find_history_change(before: Prompt, now: Prompt) -> PrefixChange:
    if before.epoch == now.epoch:
        return PrefixChange(cause=PrefixChangeCause.HISTORY_EDITED)
    for index, (old, new) in enumerate(zip(before.messages, now.messages, strict=False)):
        if not old.has_same_content(new):
            return PrefixChange(
                cause=PrefixChangeCause.EPOCH_FOLDED, segment=_find_first_lost_artifact(before, index, new)
            )
    return PrefixChange(cause=PrefixChangeCause.EPOCH_FOLDED)


def _find_first_lost_artifact(before: Prompt, index: int, new: Message) -> str | None:
    """Return the id of the first artifact that a folded message loses.

    None if it loses only a reference line of an earlier turn, since such a line is not a segment.
    """
    position, old = message_position(index), before.messages[index]
    tools = (segment for segment in before.segments(LayerId.L4) if segment.kind == ArtifactKind.TOOL)
    named = [segment.id for segment in (*before.segments(LayerId.L3), *tools) if segment.place == position]
    carriers = [
        placed.artifact.id
        for placed in before.unlayered_artifacts
        if placed.place == position
        and (placed.pieces[-1] == old.pieces[0] if placed.pieces else old.pieces == new.pieces)
    ]
    known = [
        segment.id
        for segment in shown_segments(before.segments(LayerId.L2))
        if segment.place == position and old.pieces and segment.text.endswith(old.pieces[0])
    ]
    return next(iter((*named, *carriers, *known)), None)


def _find_changed_tool(before: Prompt, now: Prompt) -> str | None:
    old, new = set(before.tools), set(now.tools)
    changed = [tool.name for tool in (*now.tools, *before.tools) if tool not in old or tool not in new]
    return changed[0] if changed else None
