"""Progress: where staged work stands, as programs and faces read it."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lamella.core.workflow.fields import CITATIONS, REFERENCES, list_sources
from lamella.core.workflow.session import WorkflowSession, list_messages


class DigestLine(Struct, frozen=True, kw_only=True):
    """What was decided in a stage, as it was approved for the nth time; superseded once that was gone back behind."""

    stage: str
    label: str
    decision: str
    attempt: int
    superseded: bool = False


class StageProgress(Struct, frozen=True, kw_only=True):
    """A stage: its status, none before it was come to; the attempt at it; what was decided; the messages of its range.

    A stage has a range once it is approved. ``data`` is what was written down for it, ``missing`` what it lacks.
    """

    id: str
    label: str
    phase: str = ""
    status: str | None = None
    attempt: int = 1
    digest: str | None = None
    messages: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    search: bool = False
    data: Mapping[str, object] = {}


class WorkflowProgress(Struct, frozen=True, kw_only=True):
    """Where work stands: ``current`` is none once all stages are approved, and ``status`` is ``approved`` then.

    ``references`` and ``citations`` are those of the stages that are approved or worked on.
    """

    workflow: str
    title: str
    current: str | None
    status: str
    stages: tuple[StageProgress, ...]
    digest: tuple[DigestLine, ...]
    references: int = 0
    citations: int = 0

    @property
    def number(self) -> int:
        """Which stage is worked on, from 1; the last once all are approved."""
        return next((at for at, one in enumerate(self.stages, start=1) if one.id == self.current), len(self.stages))


def tell_progress(session: WorkflowSession, path: Sequence[str]) -> WorkflowProgress:
    """Where work stands on a branch with these messages."""
    workflow, current = session.workflow, session.current
    labels = {stage.id: workflow.label(stage) for stage in workflow.stages}
    done = {one.stage: one for one in session.done}
    counted = [*done, *([current.id] if current else [])]

    def count(name: str) -> int:
        return sum(len(list_sources(session.data.get(stage, {}).get(name))) for stage in counted)

    stages = tuple(
        StageProgress(
            id=stage.id,
            label=labels[stage.id],
            phase=stage.phase,
            status=session.status_of(stage),
            attempt=session.attempt(stage.id),
            digest=done[stage.id].decision if stage.id in done else None,
            messages=tuple(list_messages(done[stage.id], path)) if stage.id in done else (),
            required=stage.required,
            missing=session.missing if stage is current else (),
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
            superseded=one.void,
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
