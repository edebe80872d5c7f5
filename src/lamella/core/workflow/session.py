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
from lamella.core.log.events.compaction import StageEvent, StageSpec, WorkflowSpec, WorkflowStageAction
from lamella.core.log.receipts import stage_data_id
from lamella.core.text.content import truncate_words
from lamella.core.values import replace
from lamella.errors import WorkflowError

# Maximum characters of a decision in the digest, and how many of the last completed stages count as recent.
MAX_DECISION_CHARS = 200
RECENT_STAGES = 3
_NO_DECISION_TEXT = "approved; nothing was written down for it"


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


class WorkflowSession(NamedTuple):
    """The state of a workflow on a branch.

    Attributes:
        stage_index: Index of the current stage; the number of stages once all are approved.
        stage_start: How many messages came before the work on the current stage began, the last time.
        data: The written fields, by stage and field name. Stages invalidated by a rewind keep theirs.
    """

    workflow: WorkflowSpec
    stage_index: int = 0
    status: StageStatus = StageStatus.DRAFTING
    stage_start: int = 0
    data: Mapping[str, Mapping[str, object]] = {}
    attempts: tuple[StageApproval, ...] = ()

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
        return tuple(name for name in current.required if not is_filled_in(values.get(name)))

    def attempt_number(self, stage: str) -> int:
        """Return the number of the current attempt at a stage, or of its last one."""
        made = [one for one in self.attempts if one.stage == stage]
        return len(made) + 1 - any(not one.is_void for one in made)

    def status_of(self, stage: StageSpec) -> StageStatus | None:
        """Return the status of a stage, or None if it has not been reached."""
        if self.current_stage is not None and stage.id == self.current_stage.id:
            return self.status
        return StageStatus.APPROVED if any(one.stage == stage.id for one in self.approved_attempts) else None


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


def _apply_data(session: WorkflowSession, event: StageEvent, _message_count: int) -> WorkflowSession:
    if not _concerns_current_stage(session, event):
        return session
    fields = {**session.data.get(event.stage, {}), **event.fields}
    # Required fields come first, in their declared order, in any order of writing.
    first = () if session.current_stage is None else session.current_stage.required
    fields = {name: fields[name] for name in dict.fromkeys((*first, *fields)) if fields.get(name) is not None}
    pending = session.status is StageStatus.PENDING
    status = StageStatus.REVISION if pending else session.status
    return session._replace(data={**session.data, event.stage: fields}, status=status)


def _apply_submit(session: WorkflowSession, event: StageEvent, _message_count: int) -> WorkflowSession:
    fits = _concerns_current_stage(session, event) and not session.missing_fields
    return session._replace(status=StageStatus.PENDING) if fits else session


def _apply_approve(session: WorkflowSession, event: StageEvent, message_count: int) -> WorkflowSession:
    if not _concerns_current_stage(session, event) or session.status is not StageStatus.PENDING:
        return session
    number = session.attempt_number(event.stage)
    decision = truncate_words(event.decision, MAX_DECISION_CHARS) or _NO_DECISION_TEXT
    made = StageApproval(
        stage=event.stage,
        number=number,
        decision=decision,
        first_message_index=session.stage_start,
        end_message_index=message_count,
    )
    at = session.stage_index + 1
    status = StageStatus.DRAFTING if at < len(session.workflow.stages) else StageStatus.APPROVED
    return session._replace(
        stage_index=at, status=status, stage_start=message_count, attempts=(*session.attempts, made)
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
    return session._replace(stage_index=to, status=StageStatus.DRAFTING, stage_start=message_count, attempts=attempts)


_ACTION_HANDLERS = {
    WorkflowStageAction.DATA: _apply_data,
    WorkflowStageAction.SUBMIT: _apply_submit,
    WorkflowStageAction.APPROVE: _apply_approve,
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


def format_stage_data(fields: Mapping[str, object], *, max_chars: int, max_field_chars: int | None = None) -> str:
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
    return truncate_words(_SEPARATOR.join(parts), max_chars) or "(nothing was written down for this stage)"


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


def render_sources(fields: Mapping[str, object]) -> list[str]:
    """Return one line for each of the first sources of each field, and the number of the remaining ones."""
    lines: list[str] = []
    for name in SOURCE_FIELDS:
        sources = list_sources(fields.get(name))
        if not sources:
            continue
        lines.append(f"{name} ({min(len(sources), MAX_SHOWN_SOURCES)} of {len(sources):,}):")
        lines += [
            f"  {number}. {format_source(one)}" for number, one in enumerate(sources[:MAX_SHOWN_SOURCES], start=1)
        ]
        lines += [f"  and {len(sources) - MAX_SHOWN_SOURCES:,} more"] if len(sources) > MAX_SHOWN_SOURCES else []
    return lines


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


def write_fields_event(session: WorkflowSession, fields: Mapping[str, object], *, after_message: str) -> StageEvent:
    """Return the event that writes fields of the current stage; a value of None removes the field."""
    stage = _get_current_stage(session)
    if not fields:
        raise WorkflowError("There is nothing to write down.", hint="Give fields by name, each with a value.")
    blank = next((name for name in fields if not name.strip() or not name.isprintable()), None)
    if blank is not None:
        raise WorkflowError(f"A field is called {blank!r}.", hint="Give it a name of letters on one line.")
    return StageEvent(action=WorkflowStageAction.DATA, after=after_message, stage=stage.id, fields=fields)


def submit_stage_event(session: WorkflowSession, *, after_message: str) -> StageEvent:
    """Return the event that submits the current stage for approval; all required fields must be present."""
    stage = _get_current_stage(session)
    if session.status is StageStatus.PENDING:
        raise WorkflowError(f"The stage {stage.id} is submitted already.", hint="Approve it, or write down more first.")
    if session.missing_fields:
        had = len(stage.required) - len(session.missing_fields)
        raise WorkflowError(
            f"The stage {stage.id} has {had} of {len(stage.required)} fields that it has to have; "
            f"missing: {', '.join(session.missing_fields)}.",
            hint=f"Write down {session.missing_fields[0]} for this stage, then submit it again.",
        )
    return StageEvent(action=WorkflowStageAction.SUBMIT, after=after_message, stage=stage.id)


def approve_stage_event(session: WorkflowSession, *, decision: str, after_message: str) -> StageEvent:
    """Return the event that approves the submitted stage; its decision is cut to 200 characters.

    An empty ``decision`` is replaced by the field ``summary``, or by all fields of the stage.
    """
    stage = _get_current_stage(session)
    if session.status is not StageStatus.PENDING:
        raise WorkflowError(
            f"The stage {stage.id} is not submitted: its status is {session.status}.",
            hint="Submit it first; that checks what it has to have.",
        )
    decision_text = decision.strip() or _decision_text(session.data.get(stage.id, {}))
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
        why = "is not known" if to is None else "is not done yet"
        raise WorkflowError(
            f"The stage {stage!r} of {session.workflow.name} {why}.",
            hint=f"Go back to one of: {', '.join(known)}." if known else "This is the first stage: go on with it.",
        )
    return StageEvent(action=WorkflowStageAction.REWIND, after=after_message, stage=stage)


def _get_current_stage(session: WorkflowSession) -> StageSpec:
    if session.current_stage is None:
        count = len(session.workflow.stages)
        raise WorkflowError(
            f"All {count} stages of {session.workflow.name} are approved.",
            hint="Export the work, or go back to a stage that is to be done again.",
        )
    return session.current_stage


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
    return replace(config, language=config.language or workflow.summary_language, form=form or config.form)
