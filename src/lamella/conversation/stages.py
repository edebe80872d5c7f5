"""Workflow actions on a conversation, and the progress that users see.

``WorkflowSteps`` runs a workflow on any conversation, wherever it is stored. ``build_progress`` returns the progress
that Python programs, the CLI and the server read.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from threading import RLock

from lamella.conversation.threads import synchronized
from lamella.conversation.turn import TurnRequest
from lamella.core.log.events.compaction import StageEvent, WorkflowSpec
from lamella.core.log.turn import SystemParts
from lamella.core.text.content import canonical_json, encode_text
from lamella.core.values import replace
from lamella.core.workflow.export import export_approved_stages, render_workflow_part
from lamella.core.workflow.session import (
    CITATIONS,
    REFERENCES,
    WorkflowSession,
    approve_stage_event,
    attempt_message_ids,
    build_session,
    list_sources,
    rewind_event,
    start_workflow_event,
    submit_stage_event,
    write_fields_event,
)
from lamella.errors import ArtifactError, InvalidOperationError, WorkflowError
from lamella.ports import DigestLine, StageProgress, WorkflowProgress


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
        DigestLine(
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


# Actions.

# Maximum size of the fields in one write, in characters of JSON.
_MAX_JSON_CHARS = 1_000_000
_SYSTEM_PART_NAME = "workflow"


@synchronized(except_for=(), properties=("session", "progress"))
class WorkflowSteps(ABC):
    """A conversation with workflow stages.

    Each action is checked against the session and then recorded. A turn that still waits for its reply is ended first.

    Every action is checked twice. The first check, with no last message, raises before anything changes. The second
    builds the event after the waiting turn was ended, since that adds a message.
    """

    lock: RLock

    @abstractmethod
    def _get_workflow(self, name: str) -> WorkflowSpec:
        """Return a workflow by its name or the path of its file."""

    @abstractmethod
    def _list_stage_events(self) -> tuple[Sequence[tuple[int, StageEvent]], Sequence[str]]:
        """Return the stage events of the active branch, and the ids of its messages."""

    @abstractmethod
    def _stop_pending_turn(self, at: datetime | None) -> None:
        """End a waiting turn, so that a stage ends where a turn ends."""

    @abstractmethod
    def _record_stage_event(self, event: StageEvent, at: datetime | None) -> None: ...

    @property
    def session(self) -> WorkflowSession | None:
        """Return the workflow session, or None if no workflow was started."""
        return build_session(self._list_stage_events()[0])

    @property
    def progress(self) -> WorkflowProgress | None:
        """Return the workflow progress for display, or None if no workflow was started."""
        events, path = self._list_stage_events()
        session = build_session(events)
        return None if session is None else build_progress(session, path)

    def start_workflow(self, name: str, *, at: datetime | None = None) -> WorkflowProgress:
        """Start a workflow."""
        workflow = self._get_workflow(name)
        start_workflow_event(self.session, workflow, after_message="")
        self._stop_pending_turn(at)
        return self._apply_stage_event(
            start_workflow_event(self.session, workflow, after_message=self._last_message_id), at
        )

    def write_stage(self, fields: Mapping[str, object], *, at: datetime | None = None) -> WorkflowProgress:
        """Write fields of the current stage; a value of None removes the field."""
        given = to_stored_fields(fields)
        write_fields_event(self._get_session(), given, after_message="")
        self._stop_pending_turn(at)
        return self._apply_stage_event(
            write_fields_event(self._get_session(), given, after_message=self._last_message_id), at
        )

    def submit_stage(self, *, at: datetime | None = None) -> WorkflowProgress:
        """Submit the current stage for approval; all required fields must be present."""
        submit_stage_event(self._get_session(), after_message="")
        self._stop_pending_turn(at)
        return self._apply_stage_event(submit_stage_event(self._get_session(), after_message=self._last_message_id), at)

    def approve_stage(self, decision: str = "", *, at: datetime | None = None) -> WorkflowProgress:
        """Approve the submitted stage; its decision is part of every later prompt."""
        approve_stage_event(self._get_session(), decision=decision, after_message="")
        self._stop_pending_turn(at)
        return self._apply_stage_event(
            approve_stage_event(self._get_session(), decision=decision, after_message=self._last_message_id), at
        )

    def rewind_stage(self, stage: str, *, at: datetime | None = None) -> WorkflowProgress:
        """Go back to an earlier stage; later decisions no longer apply, but are kept."""
        rewind_event(self._get_session(), stage, after_message="")
        self._stop_pending_turn(at)
        return self._apply_stage_event(
            rewind_event(self._get_session(), stage, after_message=self._last_message_id), at
        )

    def export_work(self, title: str = "") -> str:
        """Return the work as Markdown, with one bibliography for all stages."""
        return export_approved_stages(self._get_session(), title=title)

    def _get_session(self) -> WorkflowSession:
        session = self.session
        if session is None:
            raise WorkflowError(
                "This conversation has no workflow.", hint=lambda door: f"Begin one: {door.start_workflow_hint()}."
            )
        return session

    @property
    def _last_message_id(self) -> str:
        path = self._list_stage_events()[1]
        return path[-1] if path else ""

    def _apply_stage_event(self, event: StageEvent, at: datetime | None) -> WorkflowProgress:
        self._record_stage_event(event, at)
        progress = self.progress
        assert progress is not None, "work that something was done about was begun"
        return progress


def to_stored_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields as a store would return them; raises ``WorkflowError`` if JSON cannot represent them."""
    if not isinstance(fields, Mapping) or not all(isinstance(name, str) for name in fields):
        raise WorkflowError("What is written down has no names.", hint="Give fields by name, each with a value.")
    try:
        text = canonical_json(dict(fields))
        encode_text(text)
    except (ArtifactError, RecursionError) as error:
        told = "it is nested too deep" if isinstance(error, RecursionError) else error.message
        raise WorkflowError(
            f"A field cannot be kept: {told}", hint="Fields are made of texts, numbers, lists and objects."
        ) from error
    if len(text) > _MAX_JSON_CHARS:
        raise WorkflowError(
            f"The fields have {len(text):,} characters; {_MAX_JSON_CHARS:,} may be written down at once.",
            hint="Write down what was decided, and attach what is long.",
        )
    # Canonical JSON sorts the names, so a workflow in memory lists them in the same order as one in a store.
    kept: dict[str, object] = json.loads(text)
    return kept


def with_workflow_part(
    turn_request: TurnRequest, session: WorkflowSession, system: SystemParts, *, shortened_stages: Collection[str]
) -> TurnRequest:
    """Return the turn request with the workflow part of the system prompt, if that part has changed."""
    if turn_request.system.get(_SYSTEM_PART_NAME):
        raise InvalidOperationError(
            "The system prompt's workflow is what the stages of this conversation say.",
            hint="Give instructions of your own in another part, such as instructions.",
        )
    part = render_workflow_part(session, shortened_stages=shortened_stages)
    stands = all(getattr(system, name) == text for name, text in part.items())
    return turn_request if stands else replace(turn_request, system={**turn_request.system, **part})
