"""Workflow stages of a conversation: its part of the prompt, and the progress that users see.

The stages of a branch are in its log. ``with_current_stage`` adds the instructions of the current one to a question,
and ``build_progress`` returns the progress that Python programs, the CLI and the server read.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial

from lamella.conversation.log import list_records_up_to_message
from lamella.conversation.turn import TurnRequest
from lamella.conversation.validation import check_text
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.log.events.compaction import Exhibit, StageEvent
from lamella.core.log.log import FoldedLog
from lamella.core.log.receipts import is_stage_data_id
from lamella.core.log.turn_records import TurnRecord, branch_message_ids
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import canonical_json, encode_text, hash_bytes
from lamella.core.values import replace
from lamella.core.workflow.session import (
    CITATIONS,
    FIGURE_PREFIX,
    REFERENCES,
    TABLE_PREFIX,
    WorkflowSession,
    attempt_message_ids,
    build_session,
    collect_references,
    diff_sessions,
    format_field_value,
    list_sources,
    list_stage_fields,
    with_completed_stages,
)
from lamella.core.workflow.system_part import build_workflow_system_parts
from lamella.errors import ArtifactError, InvalidOperationError, WorkflowError
from lamella.ports import StageDecision, StageProgress, StageWrite, WorkflowProgress


def build_progress(session: WorkflowSession, message_ids: Sequence[str]) -> WorkflowProgress:
    """Return the progress of a workflow on a branch with these messages."""
    workflow, current = session.workflow, session.current_stage
    labels = {stage.id: workflow.label(stage) for stage in workflow.stages}
    done = {one.stage: one for one in session.approved_attempts}
    references = collect_references(session)
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
            field_labels={
                name: workflow.field_label(stage, name)
                for name in dict.fromkeys((*list_stage_fields(stage), *session.data.get(stage.id, {})))
            },
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
        references=max(count(REFERENCES), len(references)),
        citations=count(CITATIONS),
        language=workflow.language,
        proposed_decision=session.proposed_decision,
        change_request=session.change_request,
        writes=_list_writes(session),
        reference_items=tuple(references.values()),
        exhibits={key: one.exhibit.caption for key, one in session.exhibits.items()},
    )


def _list_writes(session: WorkflowSession) -> tuple[StageWrite, ...]:
    """Return what was written in the current stage, oldest first, each with its diff."""
    after = [*(change.before for change in session.changes[1:]), session][: len(session.changes)]
    return tuple(
        StageWrite(by_model=change.by_model, make_diff=partial(_render_diff, change.before, one))
        for change, one in zip(session.changes, after, strict=True)
    )


def _render_diff(before: WorkflowSession, after: WorkflowSession) -> str:
    return "\n".join(diff_sessions(before, after))


# The stages of a branch.

# Maximum size of the fields in one write, in characters of JSON.
_MAX_JSON_CHARS = 1_000_000
_SYSTEM_PART_NAME = "workflow"
# The workflows that come with Lamella. Work that was started with an older version of one is exported by the sections
# of the current one.
SHIPPED_WORKFLOWS = frozenset({"paper", "rfc"})


def list_branch_stages_and_messages(log: FoldedLog) -> tuple[Sequence[tuple[int, StageEvent]], Sequence[str]]:
    """Return the stage events of the active branch, and the ids of its messages.

    The next question follows the empty answer that closes an open question, so that answer is part of the branch.
    """
    records = list_records_up_to_message(log, log.head)
    return log.stage_events(records), branch_message_ids(records)


def with_current_stage(turn_request: TurnRequest, log: FoldedLog, state: PromptState) -> TurnRequest:
    """Return the turn request with the current workflow part of the system prompt, if that part has changed."""
    records = list_records_up_to_message(log, log.head)
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
    records = list_records_up_to_message(log, message) if log.stage_entries else ()
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


def to_stored_references(references: Sequence[object]) -> Sequence[object]:
    """Return references as a store would return them; raises ``WorkflowError`` if JSON cannot represent them."""
    if isinstance(references, str | Mapping) or not isinstance(references, Sequence):
        references = [references]
    stored = to_stored_fields({REFERENCES: list(references)})[REFERENCES]
    assert isinstance(stored, list), "a list stays a list"
    return stored


def make_table(key: str, caption: str, columns: Sequence[object], rows: Sequence[Sequence[object]]) -> Exhibit:
    """Return a table with its cells as texts; the prefix of its key may be left out."""
    name = check_text(key, "key", may_be_empty=False)
    return Exhibit(
        key=name if name.startswith(TABLE_PREFIX) else TABLE_PREFIX + name,
        caption=check_text(caption, "caption"),
        columns=tuple(format_field_value(cell) for cell in columns),
        rows=tuple(tuple(format_field_value(cell) for cell in row) for row in rows),
    )


# The beginning of a file of each format that documents can show.
_IMAGE_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_MAX_IMAGE_BYTES = 20_000_000


def make_figure(key: str, caption: str, image: bytes) -> tuple[Exhibit, Mapping[str, bytes]]:
    """Return a figure and the content to store for it; the prefix of its key may be left out."""
    name = check_text(key, "key", may_be_empty=False)
    media_type = next((found for start, found in _IMAGE_SIGNATURES.items() if image.startswith(start)), "")
    if not media_type:
        raise WorkflowError(f"The image of {name} is neither PNG nor JPEG.", hint="Save it in one of these formats.")
    if len(image) > _MAX_IMAGE_BYTES:
        raise WorkflowError(
            f"The image of {name} has {len(image):,} bytes; at most {_MAX_IMAGE_BYTES:,} fit.", hint="Make it smaller."
        )
    found = hash_bytes(image)
    exhibit = Exhibit(
        key=name if name.startswith(FIGURE_PREFIX) else FIGURE_PREFIX + name,
        caption=check_text(caption, "caption"),
        image=found,
        media_type=media_type,
    )
    return exhibit, {found: image}
