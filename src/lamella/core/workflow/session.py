"""The session: where staged work stands on a branch, folded from what was done about its stages."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from lamella.core.log.events.stage import StageAction, StageEvent, StageSpec, WorkflowSpec
from lamella.core.log.receipt import name_stage
from lamella.core.text.words import cut_words

# What a digest says of a stage, in characters; how many of the stages that were done last count as recent.
DIGEST_ROOM = 200
RECENT = 3
_NOTHING_SAID = "approved; nothing was written down for it"


class StageStatus(StrEnum):
    """How a stage stands; one that was not come to yet has none."""

    DRAFTING = "drafting"
    PENDING = "pending"
    APPROVED = "approved"
    REVISION = "revision"


class StageAttempt(NamedTuple):
    """One approval of a stage: what was decided, and its messages, from ``first`` up to and without ``end``.

    Messages are counted along the branch. One that was gone back behind is ``void``, and kept.
    """

    stage: str
    number: int
    decision: str
    first: int
    end: int
    void: bool = False

    @property
    def name(self) -> str:
        return name_stage(self.stage, self.number)


class WorkflowSession(NamedTuple):
    """Work in stages. ``at`` is which stage is worked on, as many as there are once all are approved.

    ``since`` is how many messages came before the work on that stage began, this time. ``data`` holds what was written
    down, by stage and field, also of stages that were gone back behind.
    """

    workflow: WorkflowSpec
    at: int = 0
    status: StageStatus = StageStatus.DRAFTING
    since: int = 0
    data: Mapping[str, Mapping[str, object]] = {}
    attempts: tuple[StageAttempt, ...] = ()

    @property
    def current(self) -> StageSpec | None:
        """The stage that is worked on; none once all are approved."""
        return self.workflow.stages[self.at] if self.at < len(self.workflow.stages) else None

    @property
    def done(self) -> list[StageAttempt]:
        """The stages that are approved and were not gone back behind, in their order."""
        return [one for one in self.attempts if not one.void]

    @property
    def missing(self) -> tuple[str, ...]:
        """The fields that the current stage has to have before it is submitted, and has not."""
        current = self.current
        if current is None:
            return ()
        held = self.data.get(current.id, {})
        return tuple(name for name in current.required if not is_given(held.get(name)))

    def attempt(self, stage: str) -> int:
        """Which attempt at a stage is under way, or was made last."""
        made = [one for one in self.attempts if one.stage == stage]
        return len(made) + 1 - any(not one.void for one in made)

    def status_of(self, stage: StageSpec) -> StageStatus | None:
        """How a stage stands."""
        if self.current is not None and stage.id == self.current.id:
            return self.status
        return StageStatus.APPROVED if any(one.stage == stage.id for one in self.done) else None


def is_given(value: object) -> bool:
    """Whether a field has something in it: no blank text, empty list or zero."""
    return bool(value.strip()) if isinstance(value, str) else bool(value)


def fold_session(events: Iterable[tuple[int, StageEvent]]) -> WorkflowSession | None:
    """Where the work stands after these events, each with how many messages came before it; none where none began.

    An event that does not fit where it stands does nothing: a message that was said once more may bring along some
    from another branch.
    """
    session: WorkflowSession | None = None
    for place, event in events:
        if session is not None:
            session = _FOLDS[event.action](session, event, place) if event.action in _FOLDS else session
        elif event.action is StageAction.NEW and event.workflow is not None and _is_sound(event.workflow):
            session = WorkflowSession(workflow=event.workflow, since=place)
    return session


def _is_sound(workflow: WorkflowSpec) -> bool:
    """Whether stages can be told apart by their ids; an archive may hold anything."""
    ids = [stage.id for stage in workflow.stages]
    return bool(ids) and len(set(ids)) == len(ids) and all(one.split() == [one] for one in ids)


def _is_of_current(session: WorkflowSession, event: StageEvent) -> bool:
    return session.current is not None and session.current.id == event.stage


def _write(session: WorkflowSession, event: StageEvent, _place: int) -> WorkflowSession:
    if not _is_of_current(session, event):
        return session
    held = {**session.data.get(event.stage, {}), **event.fields}
    first = () if session.current is None else session.current.required
    held = {name: held[name] for name in dict.fromkeys((*first, *held)) if held.get(name) is not None}
    pending = session.status is StageStatus.PENDING
    status = StageStatus.REVISION if pending else session.status
    return session._replace(data={**session.data, event.stage: held}, status=status)


def _submit(session: WorkflowSession, event: StageEvent, _place: int) -> WorkflowSession:
    fits = _is_of_current(session, event) and not session.missing
    return session._replace(status=StageStatus.PENDING) if fits else session


def _approve(session: WorkflowSession, event: StageEvent, place: int) -> WorkflowSession:
    if not _is_of_current(session, event) or session.status is not StageStatus.PENDING:
        return session
    number = session.attempt(event.stage)
    decision = cut_words(event.decision, DIGEST_ROOM) or _NOTHING_SAID
    made = StageAttempt(stage=event.stage, number=number, decision=decision, first=session.since, end=place)
    at = session.at + 1
    status = StageStatus.DRAFTING if at < len(session.workflow.stages) else StageStatus.APPROVED
    return session._replace(at=at, status=status, since=place, attempts=(*session.attempts, made))


def _rewind(session: WorkflowSession, event: StageEvent, place: int) -> WorkflowSession:
    """Back to an earlier stage; to the one that waits for approval, which is then revised."""
    to = session.workflow.find(event.stage)
    if to is None or to > session.at:
        return session
    if to == session.at:
        pending = session.status is StageStatus.PENDING
        return session._replace(status=StageStatus.REVISION) if pending else session
    later = {stage.id for stage in session.workflow.stages[to:]}
    attempts = tuple(one._replace(void=True) if one.stage in later else one for one in session.attempts)
    return session._replace(at=to, status=StageStatus.DRAFTING, since=place, attempts=attempts)


_FOLDS = {
    StageAction.DATA: _write,
    StageAction.SUBMIT: _submit,
    StageAction.APPROVE: _approve,
    StageAction.REWIND: _rewind,
}


def list_messages(attempt: StageAttempt, path: Sequence[str]) -> Sequence[str]:
    """The messages of a stage, as it was approved once."""
    return path[attempt.first : attempt.end]
