"""The ``workflow`` part of the system prompt: instructions, decisions, stage data and references.

``build_workflow_system_parts`` renders it in the language of the workflow.
"""

from collections.abc import Collection, Iterator, Mapping

from lamella.core.artifacts.blocks import escape_block_text
from lamella.core.log.events.compaction import StageSpec, WorkflowSpec
from lamella.core.text.content import escape_control_characters
from lamella.core.workflow.phrases import get_phrases, write_in_language
from lamella.core.workflow.references import format_reference
from lamella.core.workflow.session import (
    RECENT_STAGES,
    SOURCE_FIELDS,
    StageApproval,
    WorkflowSession,
    format_field_value,
    format_stage_data,
    list_stage_fields,
    render_sources,
    truncate_keeping_urls,
)

# How the part begins, in every language.
WORKFLOW_HEADINGS = tuple(get_phrases(language).workflow_heading.partition("{")[0] for language in ("en", "id"))
# Maximum characters of the data of a recent stage, of one of its fields, and of the data of an earlier stage.
STAGE_DETAIL_CHARS, STAGE_SECTION_CHARS, STAGE_BRIEF_CHARS = 1_000, 500, 280
# Maximum characters shown of a field of the current stage. The whole field is stored.
_MAX_FIELD_CHARS = 2_000
# Content in a block with this tag cannot close the block: see ``core.artifacts.blocks``.
_STAGE_DATA_TAG = "stage_data_context"
# How many references are listed. All of them are stored.
_MAX_LISTED_REFERENCES = 100


def build_workflow_system_parts(session: WorkflowSession, *, shortened_stages: Collection[str] = ()) -> dict[str, str]:
    """Return the workflow part for L1, and its brief form with no stage data in detail.

    ``shortened_stages`` names stages that a compaction has already shortened. The brief form is empty if it equals the
    full one.
    """
    recent = [
        one.stage_data_id
        for one in session.approved_attempts[-RECENT_STAGES:]
        if one.stage_data_id not in shortened_stages
    ]
    text, brief = (_render_workflow(session, detailed=names) for names in (recent, ()))
    if text == brief:
        return {"workflow": text, "workflow_brief": "", "workflow_detail": ""}
    return {"workflow": text, "workflow_brief": brief, "workflow_detail": " ".join(recent)}


def _render_workflow(session: WorkflowSession, *, detailed: Collection[str]) -> str:
    parts = [
        _render_stage(session),
        _render_digest(session),
        _render_completed_stages(session, detailed),
        _render_references(session),
        _render_current_stage(session),
    ]
    return "\n\n".join(part for part in parts if part)


def stage_label_bilingual(workflow: WorkflowSpec, stage: StageSpec) -> str:
    """Return the label of a stage, with the English label in parentheses if it differs."""
    label, english = workflow.label(stage), stage.labels.get("en", "")
    return escape_control_characters(label if english in ("", label) else f"{label} ({english})")


def _render_stage(session: WorkflowSession) -> str:
    workflow, current = session.workflow, session.current_stage
    phrases = get_phrases(workflow.language)
    heading = phrases.workflow_heading.format(title=escape_control_characters(workflow.title or workflow.name))
    language = write_in_language(workflow.language)
    if current is None:
        return "\n".join((heading, phrases.all_approved.format(count=len(workflow.stages)), language))
    phase = phrases.phase.format(phase=escape_control_characters(current.phase)) if current.phase else ""
    location = phrases.stage_position.format(
        number=session.stage_index + 1,
        count=len(workflow.stages),
        phase=phase,
        label=stage_label_bilingual(workflow, current),
    )
    required = ", ".join(map(escape_control_characters, current.required))
    needs = phrases.required_fields.format(fields=required) if required else ""
    search = phrases.search if current.search else phrases.no_search
    fields = _render_field_list(workflow, current)
    parts = (heading, location, current.instructions.strip(), needs, fields, search, language, phrases.person_approves)
    return "\n".join(part for part in parts if part)


def _render_field_list(workflow: WorkflowSpec, stage: StageSpec) -> str:
    """Return what each described field of a stage is for."""
    if not stage.fields:
        return ""
    lines = []
    for name in list_stage_fields(stage):
        field = stage.field(name)
        details = ": ".join(
            part for part in (workflow.field_label(stage, name), field.description if field else "") if part
        )
        lines.append(f"- {escape_control_characters(name)} ({field.type if field else 'any'}): {details}")
    return "\n".join([get_phrases(workflow.language).fields_heading, *lines])


def _render_digest(session: WorkflowSession) -> str:
    phrases = get_phrases(session.workflow.language)
    specs = {stage.id: stage for stage in session.workflow.stages}
    # A decision is a line of its own and not in a block, so nothing in it has to be escaped but line breaks.
    lines = [
        f"- {stage_label_bilingual(session.workflow, specs[one.stage])}: {escape_control_characters(one.decision)}"
        for one in session.approved_attempts
    ]
    return "\n".join([phrases.digest_heading, phrases.digest_notice, *lines]) if lines else ""


def _render_completed_stages(session: WorkflowSession, detailed: Collection[str]) -> str:
    done = session.approved_attempts
    if not done:
        return ""
    specs = {stage.id: stage for stage in session.workflow.stages}
    lines = [
        line
        for one in done
        for line in _iter_completed_stage_lines(one, specs[one.stage], session, in_detail=one.stage_data_id in detailed)
    ]
    return _wrap_in_block(get_phrases(session.workflow.language).completed_heading, lines)


def _iter_completed_stage_lines(
    attempt: StageApproval, stage: StageSpec, session: WorkflowSession, *, in_detail: bool
) -> Iterator[str]:
    fields: Mapping[str, object] = session.data.get(attempt.stage, {})
    label, language = stage_label_bilingual(session.workflow, stage), session.workflow.language
    nothing = get_phrases(language).nothing_written
    if not in_detail:
        yield f"{label}: {format_stage_data(fields, max_chars=STAGE_BRIEF_CHARS, nothing_written=nothing)}"
        return
    text = format_stage_data(
        fields, max_chars=STAGE_DETAIL_CHARS, max_field_chars=STAGE_SECTION_CHARS, nothing_written=nothing
    )
    yield f"{label}: {text}"
    yield from render_sources(fields, language=language)


def _render_current_stage(session: WorkflowSession) -> str:
    current = session.current_stage
    if current is None:
        return ""
    phrases = get_phrases(session.workflow.language)
    fields = session.data.get(current.id, {})
    lines = [
        f"{name}: {truncate_keeping_urls(format_field_value(value), _MAX_FIELD_CHARS)}"
        for name, value in fields.items()
        if name not in SOURCE_FIELDS
    ]
    lines += render_sources(fields, language=session.workflow.language)
    lines += [phrases.decision_proposed.format(decision=session.proposed_decision)] if session.proposed_decision else []
    names = ", ".join(map(escape_control_characters, session.missing_fields))
    attempt = session.attempt_number(current.id)
    heading = phrases.current_heading.format(
        status=phrases.statuses.get(session.status, session.status),
        attempt=phrases.attempt.format(number=attempt) if attempt > 1 else "",
        missing=phrases.still_missing.format(fields=names) if names else "",
    )
    asked = phrases.changes_requested.format(note=session.change_request) if session.change_request else ""
    return "\n".join(part for part in (_wrap_in_block(heading, lines), asked) if part)


def _render_references(session: WorkflowSession) -> str:
    """Return the references and figures of the work with the keys that the text cites them by."""
    phrases = get_phrases(session.workflow.language)
    parts: list[str] = []
    if session.references:
        items = list(session.references.items())
        lines = [f"- {key}: {format_reference(item)}" for key, item in items[:_MAX_LISTED_REFERENCES]]
        left = len(items) - _MAX_LISTED_REFERENCES
        lines += [phrases.more_sources.format(count=f"{left:,}")] if left > 0 else []
        parts += [_wrap_in_block(phrases.references_heading, lines), phrases.cite_notice]
    if session.exhibits:
        lines = [f"- {key}: {one.exhibit.caption}" for key, one in session.exhibits.items()]
        parts.append(_wrap_in_block(phrases.exhibits_heading, lines))
    return "\n".join(parts)


def _wrap_in_block(heading: str, lines: list[str]) -> str:
    """Wrap text from users and models in a block that the text cannot close."""
    if not lines:
        return heading
    text = escape_block_text("\n".join(lines))
    return f"{heading}\n<{_STAGE_DATA_TAG}>\n{text}\n</{_STAGE_DATA_TAG}>"
