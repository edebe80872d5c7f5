"""The part ``workflow`` of L1: what to do in this stage, what was decided, and what was written down."""

from collections.abc import Collection, Iterator, Mapping

from lamella.core.artifacts.blocks import neutralise
from lamella.core.log.events.stage import StageSpec, WorkflowSpec
from lamella.core.text.content import escape_line
from lamella.core.workflow.fields import SOURCES, cut_text, render_sources, tell_data, tell_value
from lamella.core.workflow.session import RECENT, StageAttempt, WorkflowSession

WORKFLOW_HEADING = "# Workflow: "
# Characters of a stage's data: of one that was done lately, of one of its sections, and of one that was done before.
DETAIL, SECTION, BRIEF = 1_000, 500, 280
# Characters of a field of the stage that is worked on. All of it is kept, whatever is shown.
_FIELD = 2_000
_NOT_CONTRADICTED = (
    "What was decided in the stages that are done. Keep to it, and say so where something contradicts it:"
)
# Content that stands in a block of this name cannot close it: see ``core.artifacts.blocks``.
_DATA = "stage_data_context"


def render_part(session: WorkflowSession, *, shortened: Collection[str] = ()) -> dict[str, str]:
    """The part as L1 has it, and as it is with the data of no stage in detail.

    ``shortened`` names stages that a compaction has made short already.
    """
    recent = [one.name for one in session.done[-RECENT:] if one.name not in shortened]
    text, brief = (_render(session, detailed=names) for names in (recent, ()))
    if text == brief:
        return {"workflow": text, "workflow_brief": "", "workflow_detail": ""}
    return {"workflow": text, "workflow_brief": brief, "workflow_detail": " ".join(recent)}


def _render(session: WorkflowSession, *, detailed: Collection[str]) -> str:
    parts = [
        _render_stage(session),
        _render_digest(session),
        _render_done(session, detailed),
        _render_current(session),
    ]
    return "\n\n".join(part for part in parts if part)


def tell_label(workflow: WorkflowSpec, stage: StageSpec) -> str:
    """What a stage is called, and in English as well where that differs."""
    label, english = workflow.label(stage), stage.labels.get("en", "")
    return escape_line(label if english in ("", label) else f"{label} ({english})")


def _render_stage(session: WorkflowSession) -> str:
    workflow, current = session.workflow, session.current
    heading = f"{WORKFLOW_HEADING}{escape_line(workflow.title or workflow.name)}"
    if current is None:
        return f"{heading}\nAll {len(workflow.stages)} stages are approved. Help with what is asked about the work."
    phase = f", phase {escape_line(current.phase)}" if current.phase else ""
    place = f"Stage {session.at + 1} of {len(workflow.stages)}{phase}: {tell_label(workflow, current)}."
    needs = f"It has to have: {', '.join(map(escape_line, current.required))}." if current.required else ""
    search = (
        "Look things up where that helps." if current.search else "Work with what is known; nothing is searched for."
    )
    return "\n".join(part for part in (heading, place, current.instructions.strip(), needs, search) if part)


def _render_digest(session: WorkflowSession) -> str:
    specs = {stage.id: stage for stage in session.workflow.stages}
    lines = [f"- {tell_label(session.workflow, specs[one.stage])}: {escape_line(one.decision)}" for one in session.done]
    return "\n".join(["## Digest", _NOT_CONTRADICTED, *lines]) if lines else ""


def _render_done(session: WorkflowSession, detailed: Collection[str]) -> str:
    done = session.done
    if not done:
        return ""
    specs = {stage.id: stage for stage in session.workflow.stages}
    lines = [
        line for one in done for line in _list_done(one, specs[one.stage], session, in_detail=one.name in detailed)
    ]
    return _wrap("## Data of the stages that are done", lines)


def _list_done(attempt: StageAttempt, stage: StageSpec, session: WorkflowSession, *, in_detail: bool) -> Iterator[str]:
    fields: Mapping[str, object] = session.data.get(attempt.stage, {})
    label = tell_label(session.workflow, stage)
    if not in_detail:
        yield f"{label}: {tell_data(fields, room=BRIEF)}"
        return
    yield f"{label}: {tell_data(fields, room=DETAIL, each=SECTION)}"
    yield from render_sources(fields)


def _render_current(session: WorkflowSession) -> str:
    current = session.current
    if current is None:
        return ""
    fields = session.data.get(current.id, {})
    lines = [f"{name}: {cut_text(tell_value(value), _FIELD)}" for name, value in fields.items() if name not in SOURCES]
    lines += render_sources(fields)
    missing = f" Still missing: {', '.join(map(escape_line, session.missing))}." if session.missing else ""
    attempt = session.attempt(current.id)
    again = f", attempt {attempt}" if attempt > 1 else ""
    return _wrap(f"## This stage so far: {session.status}{again}.{missing}", lines)


def _wrap(heading: str, lines: list[str]) -> str:
    """What people and models wrote down, in a block that it cannot end."""
    if not lines:
        return heading
    text = neutralise("\n".join(lines))
    return f"{heading}\n<{_DATA}>\n{text}\n</{_DATA}>"
