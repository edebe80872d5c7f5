"""The finished work as markdown: a section per stage, and one bibliography for all of them."""

from collections.abc import Iterator, Mapping, Sequence

from lamella.core.log.events.stage import StageSpec
from lamella.core.workflow.bibliography import build_bibliography
from lamella.core.workflow.fields import SOURCES, tell_value
from lamella.core.workflow.session import WorkflowSession


def export_work(session: WorkflowSession, *, title: str) -> str:
    """All stages that are approved, in their order, whole; what is not approved yet is named at the end."""
    workflow = session.workflow
    specs = {stage.id: stage for stage in workflow.stages}
    parts = [f"# {tell_value(title) or _find_title(session) or workflow.title or workflow.name}"]
    for one in session.done:
        stage = specs[one.stage]
        parts.append(f"## {workflow.label(stage)}")
        parts += _list_fields(session.data.get(one.stage, {})) or [one.decision]
    sources = build_bibliography(session)
    if sources:
        parts.append("## Bibliografi" if workflow.language == "id" else "## Bibliography")
        parts.append("\n".join(f"{number}. {line}" for number, line in enumerate(sources, start=1)))
    waiting = _list_waiting(session)
    if waiting:
        parts.append(f"*Not approved yet: {', '.join(workflow.label(stage) for stage in waiting)}.*")
    return "\n\n".join(parts) + "\n"


def _find_title(session: WorkflowSession) -> str:
    """The title as the work has it, once the stage that gives it is approved."""
    stage, _, field = session.workflow.title_from.partition(".")
    approved = any(one.stage == stage for one in session.done)
    return tell_value(session.data.get(stage, {}).get(field, "")) if approved else ""


def _list_waiting(session: WorkflowSession) -> Sequence[StageSpec]:
    done = {one.stage for one in session.done}
    return [stage for stage in session.workflow.stages if stage.id not in done]


def _list_fields(fields: Mapping[str, object]) -> list[str]:
    shown = [(name, value) for name, value in fields.items() if name not in SOURCES]
    if len(shown) == 1:
        return [_write(shown[0][1])]
    return [part for name, value in shown for part in (f"### {name}", _write(value)) if part]


def _write(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    return "\n".join(_list_items(value))


def _list_items(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"- {name}: {tell_value(one)}" for name, one in value.items() if one is not None)
    elif isinstance(value, Sequence):
        yield from (f"- {tell_value(one)}" for one in value if one is not None)
    else:
        yield tell_value(value)
