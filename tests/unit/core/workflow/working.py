"""Work in stages for tests: a workflow of four stages, and what is done about them after so many messages."""

from collections.abc import Mapping

from lamella.core.log.events.compaction import StageEvent, StageSpec, WorkflowSpec, WorkflowStageAction
from lamella.core.workflow.session import (
    WorkflowSession,
    approve_stage_event,
    build_session,
    rewind_event,
    start_workflow_event,
    submit_stage_event,
    write_fields_event,
)

IDEA = StageSpec(id="idea", labels={"en": "Idea", "id": "Gagasan"}, required=("what", "why"), search=True)
STAGES = (
    IDEA,
    StageSpec(id="plan", labels={"en": "Plan"}, phase="Core", instructions="Plan it."),
    StageSpec(id="text", labels={"en": "Text"}),
    StageSpec(id="title", labels={"en": "Title"}),
    StageSpec(id="end", labels={"en": "End"}),
)
TINY = WorkflowSpec(name="tiny", title="Tiny work", stages=STAGES, title_from="title.chosen")
GIVEN = {"what": "Desks", "why": "They are booked by hand."}


class Desk:
    """Deeds about stages, one after another; ``path`` is how many messages there are."""

    def __init__(self, workflow: WorkflowSpec = TINY) -> None:
        self.events: list[tuple[int, StageEvent]] = []
        self.path = 0
        self.do(start_workflow_event(None, workflow, after_message=""))

    @property
    def session(self) -> WorkflowSession:
        session = build_session(self.events)
        assert session is not None
        return session

    def do(self, event: StageEvent) -> "Desk":
        self.events.append((self.path, event))
        return self

    def talk(self, messages: int = 2) -> "Desk":
        self.path += messages
        return self

    def write(self, **fields: object) -> "Desk":
        return self.do(write_fields_event(self.session, fields, after_message=""))

    def submit(self) -> "Desk":
        return self.do(submit_stage_event(self.session, after_message=""))

    def approve(self, decision: str = "") -> "Desk":
        return self.do(approve_stage_event(self.session, decision=decision, after_message=""))

    def rewind(self, stage: str) -> "Desk":
        return self.do(rewind_event(self.session, stage, after_message=""))

    def finish(self, decision: str = "", fields: Mapping[str, object] | None = None) -> "Desk":
        """The current stage, talked about, written down, submitted and approved."""
        current = self.session.current_stage
        assert current is not None
        given = {**dict.fromkeys(current.required, f"{current.id} data"), **(fields or {})}
        self.talk()
        if given:
            self.write(**given)
        return self.submit().approve(decision or f"{current.id} is decided")


def bare(action: WorkflowStageAction, stage: str) -> StageEvent:
    return StageEvent(action=action, stage=stage)
