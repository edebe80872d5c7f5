"""Workflow stages of a conversation: its part of the prompt, and the progress that users see.

The stages of a branch are in its log. ``with_current_stage`` adds the instructions of the current one to a question,
and ``build_progress`` returns the progress that Python programs, the CLI and the server read.
"""

import json
from collections.abc import Mapping, Sequence

from lamella.conversation.log import records_up_to
from lamella.conversation.turn import TurnRequest
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.log.events.compaction import StageEvent
from lamella.core.log.log import FoldedLog
from lamella.core.log.receipts import is_stage_data_id
from lamella.core.log.turn_records import TurnRecord, branch_message_ids
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import canonical_json, encode_text
from lamella.core.values import replace
from lamella.core.workflow.export import build_workflow_system_parts
from lamella.core.workflow.session import (
    CITATIONS,
    REFERENCES,
    WorkflowSession,
    attempt_message_ids,
    build_session,
    list_sources,
    with_completed_stages,
)
from lamella.errors import ArtifactError, InvalidOperationError, WorkflowError
from lamella.ports import StageDecision, StageProgress, WorkflowProgress


def build_progress(session: WorkflowSession, message_ids: Sequence[str]) -> WorkflowProgress:
    """Return the progress of a workflow on a branch with these messages."""
    workflow, current = session.workflow, session.current_stage
    labels = {stage.id: workflow.label(stage) for stage in workflow.stages}
    done = {one.stage: one for one in session.approved_attempts}
    counted = [*done, *([current.id] if current else [])]

    def count(name: str) -> int:
        return sum(len(list_sources(session.data.get(stage, {}).get(name))) for stage in counted)

    stages = tuple(
        StageProgress(
            id=stage.id,
            label=labels[stage.id],
            phase=stage.phase,
            status=session.status_of(stage),
            attempt=session.attempt_number(stage.id),
            digest=done[stage.id].decision if stage.id in done else None,
            messages=tuple(attempt_message_ids(done[stage.id], message_ids)) if stage.id in done else (),
            required=stage.required,
            missing=session.missing_fields if stage is current else (),
            search=stage.search,
            data=session.data.get(stage.id, {}),
        )
        for stage in workflow.stages
    )
    digest = tuple(
        StageDecision(
            stage=one.stage,
            label=labels[one.stage],
            decision=one.decision,
            attempt=one.number,
            superseded=one.is_void,
        )
        for one in session.attempts
    )
    return WorkflowProgress(
        workflow=workflow.name,
        title=workflow.title or workflow.name,
        current=None if current is None else current.id,
        status=session.status,
        stages=stages,
        digest=digest,
        references=count(REFERENCES),
        citations=count(CITATIONS),
    )


# The stages of a branch.

# Maximum size of the fields in one write, in characters of JSON.
_MAX_JSON_CHARS = 1_000_000
_SYSTEM_PART_NAME = "workflow"


def list_branch_stages_and_messages(log: FoldedLog) -> tuple[Sequence[tuple[int, StageEvent]], Sequence[str]]:
    """Return the stage events of the active branch, and the ids of its messages.

    The next question follows the empty answer that closes an open question, so that answer is part of the branch.
    """
    records = records_up_to(log, log.head)
    return log.stage_events(records), branch_message_ids(records)


def with_current_stage(turn_request: TurnRequest, log: FoldedLog, state: PromptState) -> TurnRequest:
    """Return the turn request with the current workflow part of the system prompt, if that part has changed."""
    records = records_up_to(log, log.head)
    session = build_session(log.stage_events(records))
    if session is None:
        return turn_request
    if turn_request.system.get(_SYSTEM_PART_NAME):
        raise InvalidOperationError(
            "The system prompt's workflow is what the stages of this conversation say.",
            hint="Give instructions of your own in another part, such as instructions.",
        )
    shortened = _shortened_stages(log, records)
    system = state.system.with_brief_stages(shortened)
    part = build_workflow_system_parts(session, shortened_stages=shortened)
    is_current = all(getattr(system, name) == text for name, text in part.items())
    return turn_request if is_current else replace(turn_request, system={**turn_request.system, **part})


def render_stage_part(log: FoldedLog, message: str) -> Mapping[str, str]:
    """Return the workflow part of the system prompt after a message; empty if there are no stages."""
    records = records_up_to(log, message) if log.stage_entries else ()
    session = build_session(log.stage_events(records))
    return (
        {}
        if session is None
        else build_workflow_system_parts(session, shortened_stages=_shortened_stages(log, records))
    )


def with_branch_stages(settings: PromptSettings, log: FoldedLog, records: Sequence[TurnRecord]) -> PromptSettings:
    """Return the prompt settings with the stages of a branch, if it has any."""
    session = build_session(log.stage_events(records)) if log.stage_entries else None
    return settings if session is None else with_completed_stages(settings, session, branch_message_ids(records))


def _shortened_stages(log: FoldedLog, records: Sequence[TurnRecord]) -> frozenset[str]:
    """Return the stages whose data was shortened by an active compaction of the branch."""
    return frozenset(
        name
        for event in log.active_compactions(records).events
        for step in event.steps
        for name in step.removed
        if is_stage_data_id(name)
    )


def to_stored_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields as a store would return them; raises ``WorkflowError`` if JSON cannot represent them."""
    if not isinstance(fields, Mapping) or not all(isinstance(name, str) for name in fields):
        raise WorkflowError("What is written down has no names.", hint="Give fields by name, each with a value.")
    try:
        text = canonical_json(dict(fields))
        encode_text(text)
    except (ArtifactError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else error.message
        raise WorkflowError(
            f"A field cannot be kept: {reason}", hint="Fields are made of texts, numbers, lists and objects."
        ) from error
    if len(text) > _MAX_JSON_CHARS:
        raise WorkflowError(
            f"The fields have {len(text):,} characters; {_MAX_JSON_CHARS:,} may be written down at once.",
            hint="Write down what was decided, and attach what is long.",
        )
    # Canonical JSON sorts the names, so a workflow in memory lists them in the same order as one in a store.
    fields_as_stored: dict[str, object] = json.loads(text)
    return fields_as_stored
