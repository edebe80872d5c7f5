"""Where staged work stands, as data."""

from lamella.holdings import DigestLine, StageProgress, WorkflowProgress


def view_progress(conversation: str, name: str, work: WorkflowProgress) -> dict[str, object]:
    """A session: the stage that is worked on, every stage, and what was decided, superseded or not."""
    return {
        "lamella": 1,
        "conversation": conversation,
        "name": name,
        "workflow": work.workflow,
        "title": work.title,
        "current": work.current,
        "status": work.status,
        "stages": [_view_stage(stage) for stage in work.stages],
        "digest": [_view_digest(line) for line in work.digest],
        "references": work.references,
        "citations": work.citations,
    }


def _view_stage(stage: StageProgress) -> dict[str, object]:
    return {
        "id": stage.id,
        "label": stage.label,
        "phase": stage.phase,
        "status": stage.status,
        "attempt": stage.attempt,
        "digest": stage.digest,
        "messages": list(stage.messages),
        "required": list(stage.required),
        "missing": list(stage.missing),
        "search": stage.search,
    }


def _view_digest(line: DigestLine) -> dict[str, object]:
    return {
        "stage": line.stage,
        "label": line.label,
        "decision": line.decision,
        "attempt": line.attempt,
        "superseded": line.superseded,
    }


def view_data(conversation: str, name: str, work: WorkflowProgress) -> dict[str, object]:
    """What was written down for each stage, also of those that were gone back behind."""
    data = {stage.id: dict(stage.data) for stage in work.stages if stage.data}
    return {**view_progress(conversation, name, work), "data": data}


def view_work(conversation: str, name: str, *, text: str, file: str | None) -> dict[str, object]:
    """The work as markdown, and the file that it was written to."""
    return {"lamella": 1, "conversation": conversation, "name": name, "text": text, "file": file}
