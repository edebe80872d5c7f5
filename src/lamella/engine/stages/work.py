"""Work in the stages of a workflow: what can be done about them in one conversation, whatever keeps it."""

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from threading import RLock

from lamella.core.log.events.stage import StageEvent, WorkflowSpec
from lamella.core.log.turn import SystemParts
from lamella.core.text.content import canonical_json, encode_text
from lamella.core.values import replace
from lamella.core.workflow.deeds import approve_stage, begin_work, rewind_to, submit_stage, write_fields
from lamella.core.workflow.exporting import export_work
from lamella.core.workflow.rendering import render_part
from lamella.core.workflow.session import WorkflowSession, fold_session
from lamella.engine.dialogue.ask import Ask
from lamella.engine.locking import one_at_a_time
from lamella.engine.stages.progress import tell_progress
from lamella.errors import ArtifactError, CallError, WorkflowError
from lamella.holdings import WorkflowProgress

# What may be written down at once, in characters of JSON.
_MOST = 1_000_000
_PART = "workflow"


@one_at_a_time(except_for=(), properties=("session", "progress"))
class StagedWork(ABC):
    """Work in stages. Each deed is checked where the work stands, and kept; a turn that waits is over before it."""

    lock: RLock

    @abstractmethod
    def _find_workflow(self, name: str) -> WorkflowSpec:
        """A workflow by its name or the path of its file."""

    @abstractmethod
    def _list_staged(self) -> tuple[Sequence[tuple[int, StageEvent]], Sequence[str]]:
        """The stage events of the active branch, and its messages."""

    @abstractmethod
    def _stop_for_stage(self, at: datetime | None) -> None:
        """End a turn that waits, so that a stage ends where a turn does."""

    @abstractmethod
    def _keep_stage(self, event: StageEvent, at: datetime | None) -> None: ...

    @property
    def session(self) -> WorkflowSession | None:
        """Where the work stands; none where none was begun."""
        return fold_session(self._list_staged()[0])

    @property
    def progress(self) -> WorkflowProgress | None:
        """The same, to be read."""
        events, path = self._list_staged()
        session = fold_session(events)
        return None if session is None else tell_progress(session, path)

    def begin_workflow(self, name: str, *, at: datetime | None = None) -> WorkflowProgress:
        """Begin to work in the stages of a workflow."""
        workflow = self._find_workflow(name)
        begin_work(self.session, workflow, after="")
        self._stop_for_stage(at)
        return self._do(begin_work(self.session, workflow, after=self._after), at)

    def write_stage(self, fields: Mapping[str, object], *, at: datetime | None = None) -> WorkflowProgress:
        """Write something down for the current stage; a field whose value is none is taken away."""
        given = check_fields(fields)
        write_fields(self._working(), given, after="")
        self._stop_for_stage(at)
        return self._do(write_fields(self._working(), given, after=self._after), at)

    def submit_stage(self, *, at: datetime | None = None) -> WorkflowProgress:
        """Have the current stage wait for approval, once it has all that it has to have."""
        submit_stage(self._working(), after="")
        self._stop_for_stage(at)
        return self._do(submit_stage(self._working(), after=self._after), at)

    def approve_stage(self, decision: str = "", *, at: datetime | None = None) -> WorkflowProgress:
        """Approve the stage that was submitted; what was decided in it stands in every later prompt."""
        approve_stage(self._working(), decision=decision, after="")
        self._stop_for_stage(at)
        return self._do(approve_stage(self._working(), decision=decision, after=self._after), at)

    def rewind_stage(self, stage: str, *, at: datetime | None = None) -> WorkflowProgress:
        """Go back to an earlier stage; what was decided from there on counts no more, and is kept."""
        rewind_to(self._working(), stage, after="")
        self._stop_for_stage(at)
        return self._do(rewind_to(self._working(), stage, after=self._after), at)

    def export_work(self, title: str = "") -> str:
        """The work as markdown, with one bibliography for all stages."""
        return export_work(self._working(), title=title)

    def _working(self) -> WorkflowSession:
        session = self.session
        if session is None:
            raise WorkflowError(
                "This conversation has no workflow.", hint=lambda door: f"Begin one: {door.begin_work()}."
            )
        return session

    @property
    def _after(self) -> str:
        path = self._list_staged()[1]
        return path[-1] if path else ""

    def _do(self, event: StageEvent, at: datetime | None) -> WorkflowProgress:
        self._keep_stage(event, at)
        progress = self.progress
        assert progress is not None, "work that something was done about was begun"
        return progress


def check_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Fields as they are kept: what JSON can say, and no more of it than anybody writes."""
    if not isinstance(fields, Mapping) or not all(isinstance(name, str) for name in fields):
        raise WorkflowError("What is written down has no names.", hint="Give fields by name, each with a value.")
    try:
        text = canonical_json(dict(fields))
        encode_text(text)
    except (ArtifactError, RecursionError) as error:
        told = "it is nested too deep" if isinstance(error, RecursionError) else error.message
        raise WorkflowError(
            f"A field cannot be kept: {told}", hint="Fields are made of texts, numbers, lists and objects."
        ) from error
    if len(text) > _MOST:
        raise WorkflowError(
            f"The fields have {len(text):,} characters; {_MOST:,} may be written down at once.",
            hint="Write down what was decided, and attach what is long.",
        )
    # As a store gives them back: the same work in memory and in a store is told in the same order.
    kept: dict[str, object] = json.loads(text)
    return kept


def hold_part(asked: Ask, session: WorkflowSession, system: SystemParts, *, shortened: Collection[str]) -> Ask:
    """What is asked, with what the system prompt says of the work, where that is not as it stands there."""
    if asked.system.get(_PART):
        raise CallError(
            "The system prompt's workflow is what the stages of this conversation say.",
            hint="Give instructions of your own in another part, such as instructions.",
        )
    part = render_part(session, shortened=shortened)
    stands = all(getattr(system, name) == text for name, text in part.items())
    return asked if stands else replace(asked, system={**asked.system, **part})
