"""The workflow session: its state, the events that change it, and its fields as text.

``build_session`` folds the stage events of a branch into a ``WorkflowSession``. The ``*_event`` functions check an
action against the session and return its event; they raise ``WorkflowError`` if the current stage does not allow the
action. ``format_stage_data`` and ``render_sources`` format fields on single lines with complete URLs.
``with_completed_stages`` passes the stages to compaction.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from lamella.core.compaction.fitting import PromptSettings
from lamella.core.compaction.rules import CompactionConfig, CompletedStage, SummaryConfig
from lamella.core.log.events.compaction import (
    Exhibit,
    StageEvent,
    StageFieldSpec,
    StageFieldType,
    StageSpec,
    WorkflowSpec,
    WorkflowStageAction,
)
from lamella.core.log.receipts import stage_data_id
from lamella.core.text.content import truncate_words
from lamella.core.text.diff import diff_lines
from lamella.core.values import replace
from lamella.core.workflow.phrases import get_phrases, language_name
from lamella.core.workflow.references import CslItem, ReferenceList, add_references, index_references, to_reference
from lamella.errors import WorkflowError

# Maximum characters of a decision in the digest, and how many of the last completed stages count as recent.
MAX_DECISION_CHARS = 200
RECENT_STAGES = 3


class StageStatus(StrEnum):
    """The status of a stage; a stage that has not been reached has none."""

    DRAFTING = "drafting"
    PENDING = "pending"
    APPROVED = "approved"
    REVISION = "revision"


class StageApproval(NamedTuple):
    """One approval of a stage: its decision, and its messages before ``end_message_index``.

    Both are message counts along the branch. An attempt that a later rewind invalidated is ``is_void``; it is kept.
    """

    stage: str
    number: int
    decision: str
    first_message_index: int
    end_message_index: int
    is_void: bool = False

    @property
    def stage_data_id(self) -> str:
        """Return the name by which compaction receipts refer to this attempt."""
        return stage_data_id(self.stage, self.number)


class StageExhibit(NamedTuple):
    """A figure or a table, and the stage that it was added in."""

    stage: str
    exhibit: Exhibit


class StageChange(NamedTuple):
    """Something that was written in the current stage, by a model or by a person, and the session before it."""

    by_model: bool
    before: "WorkflowSession"


class WorkflowSession(NamedTuple):
    """The state of a workflow on a branch.

    Attributes:
        stage_index: Index of the current stage; the number of stages once all are approved.
        stage_start: How many messages came before the work on the current stage began, the last time.
        data: The written fields, by stage and field name. Stages invalidated by a rewind keep theirs.
        references: The added references by key, as CSL-JSON items.
        exhibits: The figures and tables by key.
        proposed_decision: The decision that was proposed for the current stage.
        change_request: What the user wants changed in the current stage.
        changes: What was written since the current stage began, oldest first; each can be undone.
    """

    workflow: WorkflowSpec
    stage_index: int = 0
    status: StageStatus = StageStatus.DRAFTING
    stage_start: int = 0
    data: Mapping[str, Mapping[str, object]] = {}
    attempts: tuple[StageApproval, ...] = ()
    references: Mapping[str, CslItem] = {}
    exhibits: Mapping[str, StageExhibit] = {}
    proposed_decision: str = ""
    change_request: str = ""
    changes: tuple[StageChange, ...] = ()

    @property
    def current_stage(self) -> StageSpec | None:
        """Return the current stage, or None once all stages are approved."""
        return self.workflow.stages[self.stage_index] if self.stage_index < len(self.workflow.stages) else None

    @property
    def approved_attempts(self) -> list[StageApproval]:
        """Return the approved attempts that no rewind invalidated, in order."""
        return [one for one in self.attempts if not one.is_void]

    @property
    def missing_fields(self) -> tuple[str, ...]:
        """Return the required fields that the current stage still lacks."""
        current = self.current_stage
        if current is None:
            return ()
        values = self.data.get(current.id, {})
        return tuple(
            name
            for name in current.required
            if not is_filled_in(values.get(name)) and not (self.references and _lists_references(current, name))
        )

    def attempt_number(self, stage: str) -> int:
        """Return the number of the current attempt at a stage, or of its last one."""
        made = [one for one in self.attempts if one.stage == stage]
        return len(made) + 1 - any(not one.is_void for one in made)

    def status_of(self, stage: StageSpec) -> StageStatus | None:
        """Return the status of a stage, or None if it has not been reached."""
        if self.current_stage is not None and stage.id == self.current_stage.id:
            return self.status
        return StageStatus.APPROVED if any(one.stage == stage.id for one in self.approved_attempts) else None


def _lists_references(stage: StageSpec, name: str) -> bool:
    """Return whether a field only lists references, which the session has anyway."""
    field = stage.field(name)
    return field is not None and field.type is StageFieldType.REFERENCES


def is_filled_in(value: object) -> bool:
    """Return whether a field has a value: not blank, not an empty list and not zero."""
    return bool(value.strip()) if isinstance(value, str) else bool(value)


def build_session(events: Iterable[tuple[int, StageEvent]]) -> WorkflowSession | None:
    """Build the session from stage events, each with the number of messages before it.

    Returns None if no workflow was started. Events that the session does not allow at their position have no effect: a
    repeated message can add events from another branch.
    """
    session: WorkflowSession | None = None
    for position, event in events:
        if session is not None:
            session = (
                _ACTION_HANDLERS[event.action](session, event, position)
                if event.action in _ACTION_HANDLERS
                else session
            )
        elif (
            event.action is WorkflowStageAction.NEW
            and event.workflow is not None
            and _is_valid_workflow(event.workflow)
        ):
            session = WorkflowSession(workflow=event.workflow, stage_start=position)
    return session


def _is_valid_workflow(workflow: WorkflowSpec) -> bool:
    """Return whether the stage ids are usable and unique; an imported archive can contain anything."""
    ids = [stage.id for stage in workflow.stages]
    return bool(ids) and len(set(ids)) == len(ids) and all(one.split() == [one] for one in ids)


def _concerns_current_stage(session: WorkflowSession, event: StageEvent) -> bool:
    return session.current_stage is not None and session.current_stage.id == event.stage


def _with_change(session: WorkflowSession, event: StageEvent, changed: WorkflowSession) -> WorkflowSession:
    """Return the changed session with a record of the change; a stage that awaited approval is open again."""
    pending = session.status is StageStatus.PENDING
    change = StageChange(by_model=event.by_model, before=session._replace(changes=()))
    return changed._replace(
        status=StageStatus.REVISION if pending else session.status, changes=(*session.changes, change)
    )


def _apply_data(session: WorkflowSession, event: StageEvent, _message_count: int) -> WorkflowSession:
    if not _concerns_current_stage(session, event):
        return session
    fields = {**session.data.get(event.stage, {}), **event.fields}
    # Required fields come first, in their declared order, in any order of writing.
    first = () if session.current_stage is None else session.current_stage.required
    fields = {name: fields[name] for name in dict.fromkeys((*first, *fields)) if fields.get(name) is not None}
    return _with_change(session, event, session._replace(data={**session.data, event.stage: fields}))


def _apply_references(session: WorkflowSession, event: StageEvent, _message_count: int) -> WorkflowSession:
    """Add and remove references; this is possible at any stage, and when all are approved."""
    items = {**session.references, **{str(item["id"]): item for item in event.references if item.get("id")}}
    references = {key: item for key, item in items.items() if key not in event.removed}
    return _with_change(session, event, session._replace(references=references))


def _apply_exhibit(session: WorkflowSession, event: StageEvent, _message_count: int) -> WorkflowSession:
    exhibits = {key: one for key, one in session.exhibits.items() if key not in event.removed}
    if event.exhibit is not None:
        key = event.exhibit.key
        # A new version of a figure stays in the section that shows it.
        stage = exhibits[key].stage if key in exhibits else event.stage
        exhibits[key] = StageExhibit(stage=stage, exhibit=event.exhibit)
    return _with_change(session, event, session._replace(exhibits=exhibits))


def _apply_decision(session: WorkflowSession, event: StageEvent, _message_count: int) -> WorkflowSession:
    if not _concerns_current_stage(session, event):
        return session
    decision = truncate_words(event.decision, MAX_DECISION_CHARS)
    change = StageChange(by_model=event.by_model, before=session._replace(changes=()))
    return session._replace(proposed_decision=decision, changes=(*session.changes, change))


def _apply_undo(session: WorkflowSession, _event: StageEvent, _message_count: int) -> WorkflowSession:
    if not session.changes:
        return session
    before = session.changes[-1].before._replace(changes=session.changes[:-1])
    # Undoing a text does not undo what was asked for afterwards.
    asked = session.change_request
    return before._replace(status=StageStatus.REVISION, change_request=asked) if asked else before


def _apply_submit(session: WorkflowSession, event: StageEvent, _message_count: int) -> WorkflowSession:
    fits = _concerns_current_stage(session, event) and not session.missing_fields
    return session._replace(status=StageStatus.PENDING, change_request="") if fits else session


def _apply_changes(session: WorkflowSession, event: StageEvent, _message_count: int) -> WorkflowSession:
    if not _concerns_current_stage(session, event) or session.status is not StageStatus.PENDING:
        return session
    return session._replace(status=StageStatus.REVISION, change_request=event.decision)


def _apply_approve(session: WorkflowSession, event: StageEvent, message_count: int) -> WorkflowSession:
    if not _concerns_current_stage(session, event) or session.status is not StageStatus.PENDING:
        return session
    number = session.attempt_number(event.stage)
    decision = truncate_words(event.decision, MAX_DECISION_CHARS) or get_phrases(session.workflow.language).no_decision
    made = StageApproval(
        stage=event.stage,
        number=number,
        decision=decision,
        first_message_index=session.stage_start,
        end_message_index=message_count,
    )
    at = session.stage_index + 1
    status = StageStatus.DRAFTING if at < len(session.workflow.stages) else StageStatus.APPROVED
    return _begin_stage(session, at, message_count)._replace(status=status, attempts=(*session.attempts, made))


def _begin_stage(session: WorkflowSession, stage_index: int, message_count: int) -> WorkflowSession:
    """Return the session at the beginning of a stage: what was written before cannot be undone any more."""
    return session._replace(
        stage_index=stage_index,
        status=StageStatus.DRAFTING,
        stage_start=message_count,
        proposed_decision="",
        change_request="",
        changes=(),
    )


def _apply_rewind(session: WorkflowSession, event: StageEvent, message_count: int) -> WorkflowSession:
    """Go back to an earlier stage; going back to a stage that awaits approval sets it to revision."""
    to = session.workflow.stage_index(event.stage)
    if to is None or to > session.stage_index:
        return session
    if to == session.stage_index:
        pending = session.status is StageStatus.PENDING
        return session._replace(status=StageStatus.REVISION) if pending else session
    later = {stage.id for stage in session.workflow.stages[to:]}
    attempts = tuple(one._replace(is_void=True) if one.stage in later else one for one in session.attempts)
    return _begin_stage(session, to, message_count)._replace(attempts=attempts)


_ACTION_HANDLERS = {
    WorkflowStageAction.DATA: _apply_data,
    WorkflowStageAction.REFERENCES: _apply_references,
    WorkflowStageAction.EXHIBIT: _apply_exhibit,
    WorkflowStageAction.DECISION: _apply_decision,
    WorkflowStageAction.UNDO: _apply_undo,
    WorkflowStageAction.SUBMIT: _apply_submit,
    WorkflowStageAction.APPROVE: _apply_approve,
    WorkflowStageAction.CHANGES: _apply_changes,
    WorkflowStageAction.REWIND: _apply_rewind,
}


def attempt_message_ids(attempt: StageApproval, message_ids: Sequence[str]) -> Sequence[str]:
    """Return the message ids of an approved attempt."""
    return message_ids[attempt.first_message_index : attempt.end_message_index]


# Fields of stages as text: one line, limited length, complete URLs.

REFERENCES, CITATIONS = "references", "citations"
# The fields that list sources. All other fields are text of their stage.
SOURCE_FIELDS = (REFERENCES, CITATIONS)
# Maximum number of sources shown of each of these fields.
MAX_SHOWN_SOURCES = 5
# Maximum characters of a title or another text of a source. URLs are never cut.
_MAX_SOURCE_CHARS = 200


_SEPARATOR = " · "
# A field cut to fewer characters would say nothing.
_MIN_TEXT_CHARS = 20
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)


def truncate_keeping_urls(text: str, max_chars: int) -> str:
    """Return the beginning of a text, cut between words; a URL is either complete or absent.

    A URL at the very beginning stays, however long it is, also inside a Markdown link: `[Doe](https://…)`.
    """
    first = text.partition(" ")[0]
    address = next((one for one in _ADDRESS.finditer(first) if one.start() < max_chars < len(first)), None)
    if address is None:
        return truncate_words(text, max_chars)
    if address.start() > _MIN_TEXT_CHARS:
        return first[: address.start()] + "…"
    return first + (" …" if len(text) > len(first) else "")


def format_field_value(value: object) -> str:
    """Format a field value on one line."""
    match value:
        case None:
            return ""
        case str():
            return " ".join(value.split())
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ", ".join(f"{name}: {format_field_value(one)}" for name, one in value.items() if one is not None)
        case Sequence():
            return "; ".join(format_field_value(one) for one in value if one is not None)
        case _:
            return str(value)


def format_stage_data(
    fields: Mapping[str, object],
    *,
    max_chars: int,
    max_field_chars: int | None = None,
    nothing_written: str = "(nothing was written down for this stage)",
) -> str:
    """Format the fields of a stage, without its sources, on one line of at most ``max_chars`` characters.

    ``max_field_chars`` limits the characters of one field. The result is never empty. If not everything fits, the long
    fields are cut first: each field has its share.
    """
    texts = {
        name: text
        for name, value in fields.items()
        if name not in SOURCE_FIELDS and (text := format_field_value(value))
    }
    names = sum(len(name) + len(_SEPARATOR) + len(": ") for name in texts)
    wanted_chars = {name: min(len(text), max_field_chars or max_chars) for name, text in texts.items()}
    shares = _allocate_chars(wanted_chars, max(max_chars - names, _MIN_TEXT_CHARS * len(texts)))
    parts = [f"{name}: {truncate_keeping_urls(text, shares[name])}" for name, text in texts.items()]
    return truncate_words(_SEPARATOR.join(parts), max_chars) or nothing_written


def _allocate_chars(needed: Mapping[str, int], max_chars: int) -> dict[str, int]:
    """Return the characters for each field: what it needs, or an equal part of what is left."""
    shares: dict[str, int] = {}
    waiting = sorted(needed, key=needed.__getitem__)
    for number, name in enumerate(waiting):
        shares[name] = min(needed[name], max_chars // (len(waiting) - number))
        max_chars -= shares[name]
    return shares


def list_sources(value: object) -> list[Mapping[str, object]]:
    """Return references or citations as mappings, without empty ones.

    A plain text becomes a mapping with ``url`` if it is a URL, otherwise with ``text``.
    """
    given = [value] if isinstance(value, str | Mapping) else value
    if not isinstance(given, Sequence):
        return []
    sources = [one if isinstance(one, Mapping) else _parse_source(format_field_value(one)) for one in given]
    return [one for one in sources if any(map(format_field_value, one.values()))]


def _parse_source(text: str) -> dict[str, object]:
    return {"url": text} if _ADDRESS.fullmatch(text) else {"text": text}


def format_source(source: Mapping[str, object]) -> str:
    """Format a source on one line: what it is, and where it is, with complete URLs."""
    known = {name: format_field_value(value) for name, value in source.items()}
    title, year = known.get("title", ""), known.get("year", "")
    parts = [truncate_keeping_urls(known[name], _MAX_SOURCE_CHARS) for name in ("authors", "text") if known.get(name)]
    parts += [f'"{truncate_keeping_urls(title, _MAX_SOURCE_CHARS)}"'] if title else []
    parts += [f"({year})"] if year else []
    text = ", ".join(parts)
    locations = [location for location in _iter_locations(known) if location not in text]
    return ", ".join(part for part in (text, *dict.fromkeys(locations)) if part) or "(nothing is known of it)"


def _iter_locations(source: Mapping[str, str]) -> Iterator[str]:
    """Yield the URL and DOI of a source, and URLs in its text, which may be cut before them."""
    if source.get("url"):
        yield source["url"]
    if source.get("doi"):
        yield f"doi:{source['doi'].removeprefix('doi:')}"
    yield from (match.group() for match in _ADDRESS.finditer(source.get("text", "")))


def render_sources(fields: Mapping[str, object], *, language: str = "en") -> list[str]:
    """Return one line for each of the first sources of each field, and the number of the remaining ones."""
    lines: list[str] = []
    phrases = get_phrases(language)
    for name in SOURCE_FIELDS:
        sources = list_sources(fields.get(name))
        if not sources:
            continue
        shown = min(len(sources), MAX_SHOWN_SOURCES)
        lines.append(phrases.sources_shown.format(name=name, shown=shown, count=f"{len(sources):,}"))
        lines += [
            f"  {number}. {format_source(one)}" for number, one in enumerate(sources[:MAX_SHOWN_SOURCES], start=1)
        ]
        if len(sources) > MAX_SHOWN_SOURCES:
            lines.append(phrases.more_sources.format(count=f"{len(sources) - MAX_SHOWN_SOURCES:,}"))
    return lines


def collect_references(session: WorkflowSession) -> dict[str, CslItem]:
    """Return the references of the work by key: those that were added, and the sources in fields of its stages.

    Sources in fields of stages that are neither approved nor current are left out. A source that cannot be read as a
    reference keeps its text as title.
    """
    stages = [one.stage for one in session.approved_attempts]
    stages += [session.current_stage.id] if session.current_stage else []
    listed = ReferenceList(session.references)
    for stage in stages:
        spec = next((one for one in session.workflow.stages if one.id == stage), None)
        fields: Mapping[str, object] = session.data.get(stage, {})
        described = [] if spec is None else [one.name for one in spec.fields if one.type is StageFieldType.REFERENCES]
        for name in dict.fromkeys((*SOURCE_FIELDS, *described)):
            for source in list_sources(fields.get(name)):
                if listed.has_key(source.get("text")):
                    continue
                try:
                    listed.add(to_reference(source))
                except WorkflowError:
                    listed.add({"type": "document", "title": format_source(source)})
    return dict(listed.items)


# Actions: each function checks one and returns its event.

# The field whose text becomes the decision of a stage if none is given at approval.
_SUMMARY_FIELD = "summary"


def start_workflow_event(session: WorkflowSession | None, workflow: WorkflowSpec, *, after_message: str) -> StageEvent:
    """Return the event that starts a workflow."""
    if session is not None:
        raise WorkflowError(
            f"This conversation works by {session.workflow.name} already, at stage {session.stage_index + 1}.",
            hint="Begin another conversation for other work, or go back to an earlier stage of this one.",
        )
    return StageEvent(
        action=WorkflowStageAction.NEW, after=after_message, stage=workflow.stages[0].id, workflow=workflow
    )


def write_fields_event(
    session: WorkflowSession, fields: Mapping[str, object], *, after_message: str, by_model: bool = False
) -> StageEvent:
    """Return the event that writes fields of the current stage; a value of None removes the field.

    A model may write only the fields that the workflow describes, with values of their types.
    """
    stage = _get_current_stage(session)
    if not fields:
        raise WorkflowError("There is nothing to write down.", hint="Give fields by name, each with a value.")
    blank = next((name for name in fields if not name.strip() or not name.isprintable()), None)
    if blank is not None:
        raise WorkflowError(f"A field is called {blank!r}.", hint="Give it a name of letters on one line.")
    if by_model:
        _check_fields_are_known(stage, fields)
        for name, value in fields.items():
            _check_field_type(stage.field(name), value)
    return StageEvent(
        action=WorkflowStageAction.DATA, after=after_message, stage=stage.id, fields=fields, by_model=by_model
    )


def list_stage_fields(stage: StageSpec) -> tuple[str, ...]:
    """Return the names of the fields that a stage has by its workflow, required ones first."""
    return tuple(dict.fromkeys((*stage.required, *(one.name for one in stage.fields))))


def _check_fields_are_known(stage: StageSpec, fields: Mapping[str, object]) -> None:
    known = list_stage_fields(stage)
    unknown = [name for name in fields if name not in known]
    # A workflow that names no fields at all leaves them to whoever writes.
    if known and stage.fields and unknown:
        raise WorkflowError(
            f"The stage {stage.id} has no field {unknown[0]!r}.", hint=f"Write one of: {', '.join(known)}."
        )


def _check_field_type(field: StageFieldSpec | None, value: object) -> None:
    """Raise ``WorkflowError`` if a value does not have the type of its field."""
    kind = StageFieldType.ANY if field is None else field.type
    if field is None or value is None or kind is StageFieldType.ANY:
        return
    entries: Sequence[object] = value if isinstance(value, Sequence) else (None,)
    if kind is StageFieldType.TEXT and not isinstance(value, str):
        raise _wrong_type_error(field, value, "a text")
    if kind is StageFieldType.NUMBER and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _wrong_type_error(field, value, "a number")
    if kind is StageFieldType.LIST and not all(map(_is_entry, entries)):
        raise _wrong_type_error(field, value, "a list of texts, or a text")
    if kind is StageFieldType.REFERENCES:
        for source in list_sources(value):
            to_reference(source)


def _is_entry(value: object) -> bool:
    return isinstance(value, str | int | float | Mapping)


def _wrong_type_error(field: StageFieldSpec, value: object, expected: str) -> WorkflowError:
    return WorkflowError(
        f"The field {field.name} takes {expected}, not {type(value).__name__}.",
        hint=f"Write {expected} as {field.name}.",
    )


def add_references_event(
    session: WorkflowSession, given: Sequence[object], *, after_message: str, by_model: bool = False
) -> tuple[StageEvent, list[str]]:
    """Return the event that adds references, and the key of each one that was given, in order.

    A source that is there already keeps its key and gets the details that it lacked.
    """
    if not given:
        raise WorkflowError("There is no reference to add.", hint="Give at least one, with a title or a DOI.")
    added = add_references(session.references, given)
    event = StageEvent(
        action=WorkflowStageAction.REFERENCES,
        after=after_message,
        stage=_stage_id(session),
        references=added.items,
        removed=added.merged,
        by_model=by_model,
    )
    return event, list(added.keys)


def remove_event(session: WorkflowSession, key: str, *, after_message: str, by_model: bool = False) -> StageEvent:
    """Return the event that removes a reference, a figure or a table by its key."""
    reference = index_references(session.references.values()).get(key)
    if reference is None and key not in session.exhibits:
        known = ", ".join((*session.references, *session.exhibits)) or "none"
        raise WorkflowError(f"There is no reference, figure or table {key!r}.", hint=f"There are: {known}.")
    return StageEvent(
        action=WorkflowStageAction.EXHIBIT if reference is None else WorkflowStageAction.REFERENCES,
        after=after_message,
        stage=_stage_id(session),
        removed=(key if reference is None else str(reference["id"]),),
        by_model=by_model,
    )


FIGURE_PREFIX, TABLE_PREFIX = "fig:", "tbl:"
_EXHIBIT_KEY = re.compile(r"(?:fig|tbl):[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_MAX_EXHIBITS, _MAX_CAPTION_CHARS, _MAX_CELLS, _MAX_CELL_CHARS = 500, 1_000, 20_000, 2_000


def exhibit_event(
    session: WorkflowSession, exhibit: Exhibit, *, after_message: str, by_model: bool = False
) -> StageEvent:
    """Return the event that adds a figure or a table, or replaces the one with the same key."""
    if not _EXHIBIT_KEY.fullmatch(exhibit.key):
        raise WorkflowError(
            f"The key of a figure or a table is {exhibit.key!r}.", hint="Use fig: or tbl: and a name: fig:sleep."
        )
    caption = " ".join(exhibit.caption.split())
    if not caption or len(caption) > _MAX_CAPTION_CHARS:
        raise WorkflowError(
            f"The caption of {exhibit.key} has {len(caption):,} characters.",
            hint=f"Give it 1 to {_MAX_CAPTION_CHARS:,} characters.",
        )
    if exhibit.key.startswith(TABLE_PREFIX):
        _check_table(exhibit)
    if len(session.exhibits) >= _MAX_EXHIBITS and exhibit.key not in session.exhibits:
        raise WorkflowError(f"There are {_MAX_EXHIBITS} figures and tables already.", hint="Remove one first.")
    return StageEvent(
        action=WorkflowStageAction.EXHIBIT,
        after=after_message,
        stage=_stage_id(session),
        exhibit=replace(exhibit, caption=caption),
        by_model=by_model,
    )


def _check_table(exhibit: Exhibit) -> None:
    width = len(exhibit.columns)
    if not width or not exhibit.rows:
        raise WorkflowError(f"The table {exhibit.key} is empty.", hint="Give it columns, and at least one row.")
    uneven = next((at for at, row in enumerate(exhibit.rows, start=1) if len(row) != width), None)
    if uneven is not None:
        raise WorkflowError(
            f"Row {uneven} of {exhibit.key} has {len(exhibit.rows[uneven - 1])} cells, and there are {width} columns.",
            hint="Give each row one cell for each column.",
        )
    cells = [cell for row in (exhibit.columns, *exhibit.rows) for cell in row]
    if len(cells) > _MAX_CELLS or max(map(len, cells)) > _MAX_CELL_CHARS:
        raise WorkflowError(
            f"The table {exhibit.key} has {len(cells):,} cells, the longest of {max(map(len, cells)):,} characters.",
            hint=f"At most {_MAX_CELLS:,} cells of {_MAX_CELL_CHARS:,} characters fit.",
        )


def propose_decision_event(
    session: WorkflowSession, decision: str, *, after_message: str, by_model: bool = False
) -> StageEvent:
    """Return the event that proposes the decision of the current stage; whoever approves it may change it."""
    stage = _get_current_stage(session)
    if not decision.strip():
        raise WorkflowError("The decision is blank.", hint="Say in a sentence what was decided.")
    return StageEvent(
        action=WorkflowStageAction.DECISION,
        after=after_message,
        stage=stage.id,
        decision=truncate_words(" ".join(decision.split()), MAX_DECISION_CHARS),
        by_model=by_model,
    )


def undo_event(session: WorkflowSession, *, after_message: str) -> StageEvent:
    """Return the event that takes back what was written last in the current stage."""
    if not session.changes:
        phrases = get_phrases(session.workflow.language)
        raise WorkflowError(phrases.error_no_writes, hint=phrases.hint_no_writes)
    return StageEvent(action=WorkflowStageAction.UNDO, after=after_message, stage=_stage_id(session))


def request_changes_event(session: WorkflowSession, note: str, *, after_message: str) -> StageEvent:
    """Return the event that sends a submitted stage back; ``note`` says what is to change."""
    stage = _get_current_stage(session)
    if session.status is not StageStatus.PENDING:
        raise _not_submitted_error(session, stage)
    text = " ".join(note.split())
    if not text or len(text) > _MAX_CAPTION_CHARS:
        raise WorkflowError(
            f"The request for changes has {len(text):,} characters.",
            hint=f"Say in 1 to {_MAX_CAPTION_CHARS:,} characters what is to change.",
        )
    return StageEvent(action=WorkflowStageAction.CHANGES, after=after_message, stage=stage.id, decision=text)


def _stage_id(session: WorkflowSession) -> str:
    return "" if session.current_stage is None else session.current_stage.id


# What a change did, as lines of a diff.


def diff_sessions(before: WorkflowSession, after: WorkflowSession) -> list[str]:
    """Return what was written between two states of a session, as lines with ``-`` and ``+``.

    Texts are compared sentence by sentence.
    """
    lines: list[str] = []
    for stage in dict.fromkeys((*before.data, *after.data)):
        old, new = before.data.get(stage, {}), after.data.get(stage, {})
        for name in () if old is new else dict.fromkeys((*old, *new)):
            lines += _diff_values(f"{stage}.{name}", _value_lines(old.get(name)), _value_lines(new.get(name)))
    for key in _changed_keys(before.references, after.references):
        pair = [_value_lines(one.references.get(key)) for one in (before, after)]
        lines += _diff_values(f"@{key}", *pair)
    for key in _changed_keys(before.exhibits, after.exhibits):
        pair = [_exhibit_lines(one.exhibits.get(key)) for one in (before, after)]
        lines += _diff_values(f"@{key}", *pair)
    pair = [[one.proposed_decision] if one.proposed_decision else [] for one in (before, after)]
    return lines + _diff_values("decision", *pair)


def _changed_keys(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    return [] if old is new else [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]


_SENTENCE_END = re.compile(r"\n|(?<=[.!?])[ \t]+")


def _value_lines(value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return _SENTENCE_END.split(value)
    if isinstance(value, Mapping):
        return [f"{name}: {format_field_value(one)}" for name, one in value.items()]
    if isinstance(value, Sequence):
        return [format_field_value(one) for one in value]
    return [format_field_value(value)]


def _exhibit_lines(one: StageExhibit | None) -> list[str]:
    if one is None:
        return []
    shown = one.exhibit
    rows = [" | ".join(row) for row in (shown.columns, *shown.rows)] if shown.columns else [shown.image]
    return [shown.caption, *rows]


def _diff_values(name: str, old: Sequence[str], new: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for at, end, to, to_end in diff_lines(old, new):
        lines += [*(f"- {line}" for line in old[at:end]), *(f"+ {line}" for line in new[to:to_end])]
    return [name, *lines] if lines else []


def submit_stage_event(session: WorkflowSession, *, after_message: str) -> StageEvent:
    """Return the event that submits the current stage for approval; all required fields must be present."""
    stage = _get_current_stage(session)
    phrases = get_phrases(session.workflow.language)
    if session.status is StageStatus.PENDING:
        raise WorkflowError(phrases.error_submitted.format(stage=stage.id), hint=phrases.hint_submitted)
    if session.missing_fields:
        message = phrases.error_missing.format(
            stage=stage.id,
            filled=len(stage.required) - len(session.missing_fields),
            count=len(stage.required),
            fields=", ".join(session.missing_fields),
        )
        raise WorkflowError(message, hint=phrases.hint_missing.format(field=session.missing_fields[0]))
    return StageEvent(action=WorkflowStageAction.SUBMIT, after=after_message, stage=stage.id)


def approve_stage_event(session: WorkflowSession, *, decision: str, after_message: str) -> StageEvent:
    """Return the event that approves the submitted stage; its decision is cut to 200 characters.

    An empty ``decision`` is replaced by the proposed one, by the field ``summary``, or by all fields of the stage.
    """
    stage = _get_current_stage(session)
    if session.status is not StageStatus.PENDING:
        raise _not_submitted_error(session, stage)
    decision_text = decision.strip() or session.proposed_decision or _decision_text(session.data.get(stage.id, {}))
    return StageEvent(
        action=WorkflowStageAction.APPROVE,
        after=after_message,
        stage=stage.id,
        decision=truncate_words(decision_text, MAX_DECISION_CHARS),
    )


def rewind_event(session: WorkflowSession, stage: str, *, after_message: str) -> StageEvent:
    """Return the event that goes back to an earlier stage, or to the current one if it awaits approval."""
    ids = [one.id for one in session.workflow.stages[: session.stage_index + 1]]
    to = session.workflow.stage_index(stage)
    pending = session.status is StageStatus.PENDING
    if to is None or to > session.stage_index or (to == session.stage_index and not pending):
        known = ids if pending else ids[: session.stage_index]
        phrases = get_phrases(session.workflow.language)
        message = phrases.error_stage_unknown if to is None else phrases.error_stage_ahead
        raise WorkflowError(
            message.format(stage=stage, workflow=session.workflow.name),
            hint=phrases.hint_go_back.format(stages=", ".join(known)) if known else phrases.hint_first_stage,
        )
    return StageEvent(action=WorkflowStageAction.REWIND, after=after_message, stage=stage)


def _get_current_stage(session: WorkflowSession) -> StageSpec:
    if session.current_stage is None:
        phrases = get_phrases(session.workflow.language)
        message = phrases.error_all_approved.format(count=len(session.workflow.stages), workflow=session.workflow.name)
        raise WorkflowError(message, hint=phrases.hint_all_approved)
    return session.current_stage


def _not_submitted_error(session: WorkflowSession, stage: StageSpec) -> WorkflowError:
    phrases = get_phrases(session.workflow.language)
    status = phrases.statuses.get(session.status, session.status)
    return WorkflowError(
        phrases.error_not_submitted.format(stage=stage.id, status=status), hint=phrases.hint_not_submitted
    )


def _decision_text(fields: Mapping[str, object]) -> str:
    """Return the decision of a stage as its fields state it."""
    if is_filled_in(fields.get(_SUMMARY_FIELD)):
        return format_field_value(fields[_SUMMARY_FIELD])
    return " · ".join(
        format_field_value(value) for name, value in fields.items() if name not in SOURCE_FIELDS and is_filled_in(value)
    )


# Stages for compaction.

_DEFAULT_SUMMARY_CONFIG = SummaryConfig()


def with_completed_stages(
    settings: PromptSettings, session: WorkflowSession, message_ids: Sequence[str]
) -> PromptSettings:
    """Return the prompt settings with the completed stages of a branch and the workflow's summary style."""
    stages = completed_stage_ranges(session, message_ids)
    after = message_ids[session.stage_start - 1] if session.stage_start else ""

    def stage(config: CompactionConfig) -> CompactionConfig:
        summary = _workflow_summary_config(config.summary, session.workflow)
        return replace(config, stages=stages, current_stage_after=after, summary=summary)

    chains = {name: stage(config) for name, config in settings.runner_configs.items()}
    return replace(settings, compaction_config=stage(settings.compaction_config), runner_configs=chains)


def completed_stage_ranges(session: WorkflowSession, message_ids: Sequence[str]) -> tuple[CompletedStage, ...]:
    """Return the message range of each completed stage; the current stage has none."""
    recent = {one.stage_data_id for one in session.approved_attempts[-RECENT_STAGES:]}
    labels = {stage.id: session.workflow.label(stage) for stage in session.workflow.stages}
    return tuple(
        CompletedStage(
            stage=one.stage, label=labels[one.stage], first=ids[0], last=ids[-1], recent=one.stage_data_id in recent
        )
        for one in session.approved_attempts
        if (ids := attempt_message_ids(one, message_ids))
    )


def _workflow_summary_config(config: SummaryConfig, workflow: WorkflowSpec) -> SummaryConfig:
    """Return the summary config; the workflow's language and form apply unless settings give their own."""
    form = workflow.summary_form if config.form == _DEFAULT_SUMMARY_CONFIG.form else ""
    # The model summarises in the language of the conversation, which for an English workflow may be any.
    own = workflow.summary_language or ("" if workflow.language == "en" else language_name(workflow.language))
    return replace(config, language=config.language or own, form=form or config.form)
