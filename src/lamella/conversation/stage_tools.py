"""How a model works on a workflow stage: with tools, or with a block of JSON at the end of its answer.

``make_stage_tools`` returns the tools for the current stage. ``apply_stage_block`` does the same from the answer of a model
that cannot call tools. Both only write, propose and submit: a person approves.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from lamella.attach import Tool
from lamella.conversation.stages import make_table, to_stored_fields, to_stored_references
from lamella.core.log.events.compaction import StageEvent, StageFieldType, StageSpec
from lamella.core.workflow.references import find_citations, index_references
from lamella.core.workflow.session import (
    StageStatus,
    WorkflowSession,
    add_references_event,
    diff_sessions,
    exhibit_event,
    format_field_value,
    list_stage_fields,
    propose_decision_event,
    remove_event,
    submit_stage_event,
    write_fields_event,
)
from lamella.errors import LamellaError, WorkflowError

# Builds an event from the session and the id of the last message.
BuildStageEvent = Callable[[WorkflowSession, str], StageEvent]
# Writes an event and returns the session after it.
WriteStageEvent = Callable[[BuildStageEvent], WorkflowSession]

_MAX_DIFF_CHARS = 2_000
_STAGE_BLOCK = re.compile(
    r"^(?P<fence>`{3,}|~{3,})stage[ \t]*\n(?P<json>.*?)\n(?P=fence)[ \t]*$", re.DOTALL | re.MULTILINE
)

_TEXT: Mapping[str, object] = {"type": "string"}
_TEXTS: Mapping[str, object] = {"type": "array", "items": _TEXT}
_FIELD_SCHEMAS: Mapping[StageFieldType, Mapping[str, object]] = {
    StageFieldType.TEXT: _TEXT,
    StageFieldType.LIST: _TEXTS,
    StageFieldType.NUMBER: {"type": "number"},
    StageFieldType.REFERENCES: _TEXTS,
    StageFieldType.ANY: {},
}
_REFERENCE_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Citation key, such as doe2020; made from author and year if missing."},
        "type": {"type": "string", "description": "CSL type, such as article-journal, book, chapter or webpage."},
        "title": _TEXT,
        "author": {"type": "array", "items": _TEXT, "description": "Names as Family, Given."},
        "year": {"type": ["string", "integer"]},
        "journal": _TEXT,
        "volume": _TEXT,
        "issue": _TEXT,
        "pages": _TEXT,
        "publisher": _TEXT,
        "doi": _TEXT,
        "url": _TEXT,
    },
    "required": ["title"],
}


def make_stage_tools(session: WorkflowSession, write: WriteStageEvent) -> tuple[Tool, ...]:
    """Return the tools for the current stage; none once all stages are approved."""
    stage = session.current_stage
    if stage is None:
        return ()

    def apply(build: BuildStageEvent, *, done: str = "") -> str:
        before: list[WorkflowSession] = []

        def build_and_note(now: WorkflowSession, after_message: str) -> StageEvent:
            before.append(now)
            return build(now, after_message)

        after = write(build_and_note)
        return describe_write(before[-1], after, done=done)

    # The tools run on the event loop: the conversation belongs to the task that sends the turn.
    async def write_stage(**fields: object) -> str:
        given = to_stored_fields(fields)
        return apply(lambda now, last: write_fields_event(now, given, after_message=last, by_model=True))

    async def add_references(references: Sequence[object]) -> str:
        given, keys = to_stored_references(references), list[str]()

        def build(now: WorkflowSession, last: str) -> StageEvent:
            event, keys[:] = add_references_event(now, given, after_message=last, by_model=True)
            return event

        described = apply(build)
        return f"Keys to cite: {', '.join(keys)}.\n{described}"

    async def remove_from_work(key: str) -> str:
        return apply(lambda now, last: remove_event(now, key, after_message=last, by_model=True))

    async def add_table(key: str, caption: str, columns: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
        table = make_table(key, caption, columns, rows)
        return apply(lambda now, last: exhibit_event(now, table, after_message=last, by_model=True))

    async def propose_decision(decision: str) -> str:
        return apply(lambda now, last: propose_decision_event(now, decision, after_message=last, by_model=True))

    async def submit_stage() -> str:
        return apply(
            lambda now, last: submit_stage_event(now, after_message=last),
            done="The stage is submitted. The user approves it or asks for changes: say what you wrote.",
        )

    return (
        Tool(
            name="write_stage",
            description=(
                "Write fields of the current stage of the work. A field that you write is replaced; the others stay. "
                "Texts are Markdown and cite references by key."
            ),
            parameters=_fields_schema(stage, session),
            run=write_stage,
            has_side_effects=True,
        ),
        Tool(
            name="add_references",
            description="Add sources that the work cites, and get their citation keys. Known sources keep their key.",
            parameters=_object_schema(references={"type": "array", "items": _REFERENCE_SCHEMA, "minItems": 1}),
            run=add_references,
            has_side_effects=True,
        ),
        Tool(
            name="add_table",
            description="Add a table to the work, or replace it. The text refers to it with @tbl:key.",
            parameters=_object_schema(
                key=_TEXT, caption=_TEXT, columns=_TEXTS, rows={"type": "array", "items": _TEXTS}
            ),
            run=add_table,
            has_side_effects=True,
        ),
        Tool(
            name="remove_from_work",
            description="Remove a reference, a figure or a table by its key.",
            parameters=_object_schema(key=_TEXT),
            run=remove_from_work,
            has_side_effects=True,
        ),
        Tool(
            name="propose_decision",
            description="Propose in at most 200 characters what this stage decides; the user approves or changes it.",
            parameters=_object_schema(decision=_TEXT),
            run=propose_decision,
            has_side_effects=True,
        ),
        Tool(
            name="submit_stage",
            description="Submit the current stage to the user once its fields are complete.",
            parameters={"type": "object", "properties": {}},
            run=submit_stage,
            has_side_effects=True,
        ),
    )


def _object_schema(**properties: Mapping[str, object]) -> Mapping[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _fields_schema(stage: StageSpec, session: WorkflowSession) -> Mapping[str, object]:
    """Return the schema of a stage's fields; a stage without described fields takes any."""
    properties: dict[str, object] = {}
    for name in list_stage_fields(stage):
        field = stage.field(name)
        schema = _FIELD_SCHEMAS[field.type if field else StageFieldType.ANY]
        described = field.description if field else ""
        properties[name] = {**schema, "description": described or session.workflow.field_label(stage, name)}
    return {"type": "object", "properties": properties, "additionalProperties": not stage.fields}


def describe_write(before: WorkflowSession, after: WorkflowSession, *, done: str = "") -> str:
    """Return what a write changed, what the stage still lacks, and which citations have no reference."""
    diff = "\n".join(diff_sessions(before, after))
    if len(diff) > _MAX_DIFF_CHARS:
        diff = f"{diff[:_MAX_DIFF_CHARS].rstrip()}\n…"
    lines = [done or ("Written." if diff else "Nothing changed.")]
    lines += [f"Still missing: {', '.join(after.missing_fields)}."] if after.missing_fields else []
    known = index_references(after.references.values())
    unknown = [key for key in _iter_cited_keys(after) if key not in known]
    lines += [f"Cited without a reference: {', '.join(unknown)}."] if unknown else []
    return "\n".join([*lines, *([diff] if diff else [])])


def _iter_cited_keys(session: WorkflowSession) -> Iterator[str]:
    stage = session.current_stage
    values = {} if stage is None else session.data.get(stage.id, {})
    yield from find_citations("\n\n".join(_full_text(value) for value in values.values()))


def _full_text(value: object) -> str:
    return value if isinstance(value, str) else format_field_value(value)


# Models without tools.


def apply_stage_block(answer: str, session: WorkflowSession, write: WriteStageEvent) -> str:
    """Write what the last ``stage`` block of an answer says, and describe it.

    Everything valid is written. What is not is described, so that the model can correct it in its next answer.
    """
    blocks = list(_STAGE_BLOCK.finditer(answer))
    if not blocks or session.current_stage is None:
        return ""
    try:
        given = json.loads(blocks[-1]["json"])
    except (ValueError, RecursionError) as error:
        return f"The stage block is not JSON: {error}."
    if not isinstance(given, dict):
        return "The stage block is no JSON object."
    lines: list[str] = []
    after = session
    for build in _iter_block_writes(given):
        try:
            after = write(build)
        except LamellaError as error:
            lines.append(f"{error.message} {error.hint}")
    unknown = sorted(set(given) - _BLOCK_KEYS)
    lines += [f"Unknown in the stage block: {', '.join(unknown)}."] if unknown else []
    submitted = after.status is StageStatus.PENDING and session.status is not StageStatus.PENDING
    return "\n".join([describe_write(session, after, done="Submitted." if submitted else ""), *lines])


_BLOCK_KEYS = frozenset({"fields", "references", "tables", "decision", "submit"})


def _iter_block_writes(given: Mapping[str, object]) -> Iterator[BuildStageEvent]:
    """Yield the writes of a block in an order in which they can depend on one another."""
    references, fields, tables, decision = (given.get(name) for name in ("references", "fields", "tables", "decision"))
    if references:
        yield lambda now, last: add_references_event(
            now,
            to_stored_references([references] if isinstance(references, Mapping) else _as_list(references)),
            after_message=last,
            by_model=True,
        )[0]
    if fields:
        if isinstance(fields, Mapping):
            for name, value in fields.items():
                yield _write_one(name, value)
        else:
            yield _raise_error("The fields of the stage block are no object.")
    for table in _as_list(tables):
        yield _add_table(table)
    if decision:
        yield lambda now, last: propose_decision_event(now, str(decision), after_message=last, by_model=True)
    if given.get("submit") is True:
        yield lambda now, last: submit_stage_event(now, after_message=last)


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def _write_one(name: str, value: object) -> BuildStageEvent:
    return lambda now, last: write_fields_event(now, to_stored_fields({name: value}), after_message=last, by_model=True)


def _add_table(table: object) -> BuildStageEvent:
    def build(now: WorkflowSession, last: str) -> StageEvent:
        if not isinstance(table, Mapping):
            raise WorkflowError("A table of the stage block is no object.", hint="Give key, caption, columns and rows.")
        made = make_table(
            str(table.get("key", "")),
            str(table.get("caption", "")),
            _as_list(table.get("columns")),
            [_as_list(row) for row in _as_list(table.get("rows"))],
        )
        return exhibit_event(now, made, after_message=last, by_model=True)

    return build


def _raise_error(message: str) -> BuildStageEvent:
    def build(_now: WorkflowSession, _last: str) -> StageEvent:
        raise WorkflowError(message, hint='Write {"fields": {"name": "text"}}.')

    return build
