"""Stages: what is done about the stages of a workflow between two messages, and the workflow as it was begun."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class StageAction(StrEnum):
    """What can be done about stages."""

    NEW = "new"
    DATA = "data"
    SUBMIT = "submit"
    APPROVE = "approve"
    REWIND = "rewind"


class StageSpec(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One stage as its workflow has it. ``labels`` are by language; ``search`` says whether tools look things up."""

    id: str
    labels: Mapping[str, str] = {}
    phase: str = ""
    instructions: str = ""
    required: tuple[str, ...] = ()
    search: bool = False


class WorkflowSpec(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A workflow: its stages in their order, the language of its labels, and how summaries are written in it.

    ``title_from`` is the field that the work has its title from, as ``stage.field``.
    """

    name: str
    title: str = ""
    language: str = "en"
    summary_language: str = ""
    summary_form: str = ""
    title_from: str = ""
    stages: tuple[StageSpec, ...] = ()

    def find(self, stage: str) -> int | None:
        """Which of its stages has this id."""
        return next((at for at, one in enumerate(self.stages) if one.id == stage), None)

    def label(self, stage: StageSpec) -> str:
        """What a stage is called in the language of the workflow, else in English, else by its id."""
        return stage.labels.get(self.language) or stage.labels.get("en") or stage.id


class StageEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Something is done about a stage, after the message ``after``. A branch has it if it went on from there since.

    Only what begins the work has its ``workflow``, so that a file which changes later changes nothing here. Events
    from before there were any say nothing and do nothing.
    """

    action: StageAction | None = None
    after: str = ""
    stage: str = ""
    workflow: WorkflowSpec | None = None
    fields: Mapping[str, object] = {}
    decision: str = ""
