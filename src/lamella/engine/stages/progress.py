"""Progress: where staged work stands, as programs and faces read it."""

from collections.abc import Sequence

from lamella.core.workflow.fields import CITATIONS, REFERENCES, list_sources
from lamella.core.workflow.session import WorkflowSession, list_messages
from lamella.holdings import DigestLine, StageProgress, WorkflowProgress


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
