"""Render workflows as text: the finished work with its bibliography, and the ``workflow`` part of L1.

``export_approved_stages`` returns the work as Markdown, one section per stage. ``build_bibliography`` merges the
sources of all stages so that each appears once. ``build_workflow_system_parts`` renders instructions, decisions and stage
data for the system prompt.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from lamella.core.artifacts.blocks import escape_block_text
from lamella.core.log.events.compaction import StageSpec, WorkflowSpec
from lamella.core.text.content import escape_line
from lamella.core.workflow.session import (
    RECENT_STAGES,
    SOURCE_FIELDS,
    StageApproval,
    WorkflowSession,
    format_field_value,
    format_stage_data,
    list_sources,
    render_sources,
    truncate_keeping_urls,
)

_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
# Values that mean "unknown". Any other value is preferred when two entries are merged.
_UNKNOWN_VALUES = frozenset({"", "n.d.", "nd", "t.t.", "unknown", "anonymous", "?"})
_SOURCE_FIELDS = ("authors", "year", "title", "text", "url", "doi")


def build_bibliography(session: WorkflowSession) -> list[str]:
    """Return one line for each source of the completed stages and the current one, sorted by text."""
    stages = [one.stage for one in session.approved_attempts] + (
        [session.current_stage.id] if session.current_stage else []
    )
    merged = _merge_sources(_iter_sources(session, stages))
    return sorted((_format_bibliography_line(source) for source in merged), key=str.casefold)


def _iter_sources(session: WorkflowSession, stages: Iterable[str]) -> Iterator[dict[str, str]]:
    for stage in stages:
        fields: Mapping[str, object] = session.data.get(stage, {})
        for name in SOURCE_FIELDS:
            for source in list_sources(fields.get(name)):
                yield {field: format_field_value(source[field]) for field in _SOURCE_FIELDS if field in source}


def _merge_sources(sources: Iterable[dict[str, str]]) -> Iterable[dict[str, str]]:
    """Merge entries for the same source: same DOI, same URL, or same title, authors, year and text."""
    merged: dict[int, tuple[set[str], dict[str, str]]] = {}
    known: dict[str, int] = {}
    for number, source in enumerate(sources):
        keys, combined = set(_iter_identity_keys(source)), dict(source)
        # An entry with a DOI and a URL can connect two earlier entries that had only one of them.
        for same in sorted({known[key] for key in keys if key in known}):
            others, before = merged.pop(same)
            keys |= others
            combined |= {
                name: text for name, text in before.items() if not _is_more_informative(combined.get(name, ""), text)
            }
        merged[number] = keys, combined
        known.update(dict.fromkeys(keys, number))
    return [combined for _, combined in merged.values()]


def _is_more_informative(text: str, other: str) -> bool:
    if text.casefold() in _UNKNOWN_VALUES or other.casefold() in _UNKNOWN_VALUES:
        return text.casefold() not in _UNKNOWN_VALUES
    return len(text) > len(other)


def _iter_identity_keys(source: Mapping[str, str]) -> Iterator[str]:
    url = source.get("url", "")
    doi = _doi_of(source, "doi", "url")
    if doi is not None:
        yield f"doi {doi.casefold()}"
    # Two sources with an unknown URL are not the same source because of that.
    known = url.casefold() not in _UNKNOWN_VALUES
    if known:
        yield f"url {normalize_url(url)}"
    if not doi and not known:
        key = "|".join(f"{name} {source[name]}" for name in ("title", "authors", "year", "text") if source.get(name))
        yield f"said {key.casefold()}"


def _doi_of(source: Mapping[str, str], *names: str) -> str | None:
    """Return the DOI in one of these fields, in any usual notation."""
    texts = (source[name] for name in names if name in source)
    found = next(filter(None, map(_DOI.fullmatch, texts)), None)
    return None if found is None else found[1]


def normalize_url(url: str) -> str:
    """Normalise a URL for comparison: no tracking parameters, no fragment, no final slash."""
    page, _, asked = url.strip().partition("#")[0].partition("?")
    kept = [one for one in asked.split("&") if one and not one.casefold().startswith("utm_")]
    scheme, mark, rest = page.partition("://")
    host, slash, path = rest.partition("/")
    # Scheme and host are not case-sensitive; the path is.
    cleaned = f"{scheme.casefold()}{mark}{host.casefold()}{slash}{path}".removesuffix("/") if mark else page
    return "?".join((cleaned, "&".join(kept))) if kept else cleaned


# Export of the finished work.


def _format_bibliography_line(source: Mapping[str, str]) -> str:
    """Format a source as a line of the bibliography, in the order of common citation styles."""
    year = f"({source['year']})" if source.get("year") else ""
    fields = [source.get("authors"), year, source.get("title"), source.get("text")]
    doi = _doi_of(source, "doi")
    link = source.get("url") or (f"https://doi.org/{doi}" if doi else source.get("doi", ""))
    parts = [part.rstrip(".") for part in fields if part and part not in (source.get("url"), link)]
    entry = ". ".join(parts)
    return " ".join(part for part in (f"{entry}." if entry else "", link if link not in entry else "") if part)


def render_approved_stages(session: WorkflowSession, *, title: str) -> str:
    """Return the approved stages in full and in order; the stages not yet approved are named at the end."""
    workflow = session.workflow
    specs = {stage.id: stage for stage in workflow.stages}
    parts = [f"# {format_field_value(title) or _work_title(session) or workflow.title or workflow.name}"]
    for one in session.approved_attempts:
        stage = specs[one.stage]
        parts.append(f"## {workflow.label(stage)}")
        parts += _render_fields(session.data.get(one.stage, {})) or [one.decision]
    sources = build_bibliography(session)
    if sources:
        parts.append("## Bibliografi" if workflow.language == "id" else "## Bibliography")
        parts.append("\n".join(f"{number}. {line}" for number, line in enumerate(sources, start=1)))
    waiting = _unapproved_stages(session)
    if waiting:
        parts.append(f"*Not approved yet: {', '.join(workflow.label(stage) for stage in waiting)}.*")
    return "\n\n".join(parts) + "\n"


def _work_title(session: WorkflowSession) -> str:
    """Return the title of the work, once the stage that provides it is approved."""
    stage, _, field = session.workflow.title_from.partition(".")
    approved = any(one.stage == stage for one in session.approved_attempts)
    return format_field_value(session.data.get(stage, {}).get(field, "")) if approved else ""


def _unapproved_stages(session: WorkflowSession) -> Sequence[StageSpec]:
    done = {one.stage for one in session.approved_attempts}
    return [stage for stage in session.workflow.stages if stage.id not in done]


def _render_fields(fields: Mapping[str, object]) -> list[str]:
    shown = [(name, value) for name, value in fields.items() if name not in SOURCE_FIELDS]
    if len(shown) == 1:
        return [_render_value(shown[0][1])]
    return [part for name, value in shown for part in (f"### {name}", _render_value(value)) if part]


def _render_value(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    return "\n".join(_iter_value_lines(value))


def _iter_value_lines(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"- {name}: {format_field_value(one)}" for name, one in value.items() if one is not None)
    elif isinstance(value, Sequence):
        yield from (f"- {format_field_value(one)}" for one in value if one is not None)
    else:
        yield format_field_value(value)


# The ``workflow`` part of the system prompt.

WORKFLOW_HEADING = "# Workflow: "
# Maximum characters of the data of a recent stage, of one of its fields, and of the data of an earlier stage.
STAGE_DETAIL_CHARS, STAGE_SECTION_CHARS, STAGE_BRIEF_CHARS = 1_000, 500, 280
# Maximum characters shown of a field of the current stage. The whole field is stored.
_MAX_FIELD_CHARS = 2_000
_DECISIONS_NOTICE = (
    "What was decided in the stages that are done. Keep to it, and say so where something contradicts it:"
)
# Content in a block with this tag cannot close the block: see ``core.artifacts.blocks``.
_STAGE_DATA_TAG = "stage_data_context"


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
        _render_current_stage(session),
    ]
    return "\n\n".join(part for part in parts if part)


def stage_label_bilingual(workflow: WorkflowSpec, stage: StageSpec) -> str:
    """Return the label of a stage, with the English label in parentheses if it differs."""
    label, english = workflow.label(stage), stage.labels.get("en", "")
    return escape_line(label if english in ("", label) else f"{label} ({english})")


def _render_stage(session: WorkflowSession) -> str:
    workflow, current = session.workflow, session.current_stage
    heading = f"{WORKFLOW_HEADING}{escape_line(workflow.title or workflow.name)}"
    if current is None:
        return f"{heading}\nAll {len(workflow.stages)} stages are approved. Help with what is asked about the work."
    phase = f", phase {escape_line(current.phase)}" if current.phase else ""
    location = (
        f"Stage {session.stage_index + 1} of {len(workflow.stages)}{phase}: {stage_label_bilingual(workflow, current)}."
    )
    needs = f"It has to have: {', '.join(map(escape_line, current.required))}." if current.required else ""
    search = (
        "Look things up where that helps." if current.search else "Work with what is known; nothing is searched for."
    )
    return "\n".join(part for part in (heading, location, current.instructions.strip(), needs, search) if part)


def _render_digest(session: WorkflowSession) -> str:
    specs = {stage.id: stage for stage in session.workflow.stages}
    lines = [
        f"- {stage_label_bilingual(session.workflow, specs[one.stage])}: {escape_line(one.decision)}"
        for one in session.approved_attempts
    ]
    return "\n".join(["## Digest", _DECISIONS_NOTICE, *lines]) if lines else ""


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
    return _wrap_in_block("## Data of the stages that are done", lines)


def _iter_completed_stage_lines(
    attempt: StageApproval, stage: StageSpec, session: WorkflowSession, *, in_detail: bool
) -> Iterator[str]:
    fields: Mapping[str, object] = session.data.get(attempt.stage, {})
    label = stage_label_bilingual(session.workflow, stage)
    if not in_detail:
        yield f"{label}: {format_stage_data(fields, max_chars=STAGE_BRIEF_CHARS)}"
        return
    yield f"{label}: {format_stage_data(fields, max_chars=STAGE_DETAIL_CHARS, max_field_chars=STAGE_SECTION_CHARS)}"
    yield from render_sources(fields)


def _render_current_stage(session: WorkflowSession) -> str:
    current = session.current_stage
    if current is None:
        return ""
    fields = session.data.get(current.id, {})
    lines = [
        f"{name}: {truncate_keeping_urls(format_field_value(value), _MAX_FIELD_CHARS)}"
        for name, value in fields.items()
        if name not in SOURCE_FIELDS
    ]
    lines += render_sources(fields)
    missing = (
        f" Still missing: {', '.join(map(escape_line, session.missing_fields))}." if session.missing_fields else ""
    )
    attempt = session.attempt_number(current.id)
    again = f", attempt {attempt}" if attempt > 1 else ""
    return _wrap_in_block(f"## This stage so far: {session.status}{again}.{missing}", lines)


def _wrap_in_block(heading: str, lines: list[str]) -> str:
    """Wrap text from users and models in a block that the text cannot close."""
    if not lines:
        return heading
    text = escape_block_text("\n".join(lines))
    return f"{heading}\n<{_STAGE_DATA_TAG}>\n{text}\n</{_STAGE_DATA_TAG}>"
