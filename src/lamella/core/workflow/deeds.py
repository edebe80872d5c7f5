"""What is done about stages: each deed is checked where the work stands, and becomes an event."""

from collections.abc import Mapping

from lamella.core.log.events.stage import StageAction, StageEvent, StageSpec, WorkflowSpec
from lamella.core.text.words import cut_words
from lamella.core.workflow.fields import SOURCES, tell_value
from lamella.core.workflow.session import DIGEST_ROOM, StageStatus, WorkflowSession, is_given
from lamella.errors import WorkflowError

# The field that says what was decided in a stage, where nobody says it otherwise.
_SUMMARY = "summary"


def begin_work(session: WorkflowSession | None, workflow: WorkflowSpec, *, after: str) -> StageEvent:
    """Work in the stages of a workflow begins."""
    if session is not None:
        raise WorkflowError(
            f"This conversation works by {session.workflow.name} already, at stage {session.at + 1}.",
            hint="Begin another conversation for other work, or go back to an earlier stage of this one.",
        )
    return StageEvent(action=StageAction.NEW, after=after, stage=workflow.stages[0].id, workflow=workflow)


def write_fields(session: WorkflowSession, fields: Mapping[str, object], *, after: str) -> StageEvent:
    """Something is written down for the current stage; none in place of a value takes a field away."""
    stage = _find_current(session)
    if not fields:
        raise WorkflowError("There is nothing to write down.", hint="Give fields by name, each with a value.")
    blank = next((name for name in fields if not name.strip() or not name.isprintable()), None)
    if blank is not None:
        raise WorkflowError(f"A field is called {blank!r}.", hint="Give it a name of letters on one line.")
    return StageEvent(action=StageAction.DATA, after=after, stage=stage.id, fields=fields)


def submit_stage(session: WorkflowSession, *, after: str) -> StageEvent:
    """The current stage is ready to be approved, once it has what it has to have."""
    stage = _find_current(session)
    if session.status is StageStatus.PENDING:
        raise WorkflowError(f"The stage {stage.id} is submitted already.", hint="Approve it, or write down more first.")
    if session.missing:
        had = len(stage.required) - len(session.missing)
        raise WorkflowError(
            f"The stage {stage.id} has {had} of {len(stage.required)} fields that it has to have; "
            f"missing: {', '.join(session.missing)}.",
            hint=f"Write down {session.missing[0]} for this stage, then submit it again.",
        )
    return StageEvent(action=StageAction.SUBMIT, after=after, stage=stage.id)


def approve_stage(session: WorkflowSession, *, decision: str, after: str) -> StageEvent:
    """The current stage is done; what was decided in it goes into the digest, in at most 200 characters."""
    stage = _find_current(session)
    if session.status is not StageStatus.PENDING:
        raise WorkflowError(
            f"The stage {stage.id} is not submitted: its status is {session.status}.",
            hint="Submit it first; that checks what it has to have.",
        )
    said = decision.strip() or _find_decision(session.data.get(stage.id, {}))
    return StageEvent(action=StageAction.APPROVE, after=after, stage=stage.id, decision=cut_words(said, DIGEST_ROOM))


def rewind_to(session: WorkflowSession, stage: str, *, after: str) -> StageEvent:
    """Back to an earlier stage, or to the current one that waits for approval."""
    ids = [one.id for one in session.workflow.stages[: session.at + 1]]
    to = session.workflow.find(stage)
    pending = session.status is StageStatus.PENDING
    if to is None or to > session.at or (to == session.at and not pending):
        known = ids if pending else ids[: session.at]
        why = "is not known" if to is None else "is not done yet"
        raise WorkflowError(
            f"The stage {stage!r} of {session.workflow.name} {why}.",
            hint=f"Go back to one of: {', '.join(known)}." if known else "This is the first stage: go on with it.",
        )
    return StageEvent(action=StageAction.REWIND, after=after, stage=stage)


def _find_current(session: WorkflowSession) -> StageSpec:
    if session.current is None:
        count = len(session.workflow.stages)
        raise WorkflowError(
            f"All {count} stages of {session.workflow.name} are approved.",
            hint="Export the work, or go back to a stage that is to be done again.",
        )
    return session.current


def _find_decision(fields: Mapping[str, object]) -> str:
    """What was decided in a stage, by what was written down for it."""
    if is_given(fields.get(_SUMMARY)):
        return tell_value(fields[_SUMMARY])
    return " · ".join(tell_value(value) for name, value in fields.items() if name not in SOURCES and is_given(value))
