"""JSON bodies of workflows and of work in stages."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta, convert
from msgspec.structs import asdict

from lamella.core.log.events.compaction import WorkflowSpec
from lamella.ports import WorkflowProgress
from lamella.schemas.body import Count, JsonBody, NamedConversationJsonBase, VersionedBody


class StageSpecJson(JsonBody, frozen=True, kw_only=True):
    """A stage of a workflow."""

    id: str
    label: str
    phase: str
    required: Annotated[Sequence[str], Meta(description="Fields without which it cannot be submitted.")]
    search: Annotated[bool, Meta(description="Whether sources are searched in it.")]


class WorkflowJson(JsonBody, frozen=True, kw_only=True):
    """A workflow; if it is ``broken``, only its name is known."""

    name: str
    title: str
    broken: bool
    stages: Sequence[StageSpecJson]


class WorkflowListJson(VersionedBody, frozen=True, kw_only=True):
    """Workflows by name."""

    workflows: Sequence[WorkflowJson]


class StageJson(StageSpecJson, frozen=True, kw_only=True):
    """The progress of a stage."""

    status: str | None
    attempt: Count
    digest: Annotated[str | None, Meta(description="The decision, once it is approved.")]
    messages: Sequence[str]
    missing: Annotated[Sequence[str], Meta(description="Required fields that have no value yet.")]


class DigestLineJson(JsonBody, frozen=True, kw_only=True):
    """The decision of a stage."""

    stage: str
    label: str
    decision: str
    attempt: Count
    superseded: bool


class ProgressJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """The progress of a workflow."""

    workflow: Annotated[str | None, Meta(description="Null if the conversation has no workflow; only over HTTP.")]
    title: str
    current: Annotated[str | None, Meta(description="Id of the current stage; null when all are approved.")]
    status: str
    stages: Sequence[StageJson]
    digest: Annotated[Sequence[DigestLineJson], Meta(description="All decisions, including superseded ones.")]
    references: Count
    citations: Count


class StageDataJson(ProgressJson, frozen=True, kw_only=True):
    """The progress of a workflow, with the recorded data of each stage."""

    data: Mapping[str, Mapping[str, object]]


class WorkflowTextJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """The work as markdown."""

    text: str
    file: Annotated[str | None, Meta(description="The file it was written to.")]


def workflows_to_json(workflows: Mapping[str, WorkflowSpec | None]) -> WorkflowListJson:
    """Return workflows by name with their stages; a workflow with an invalid file (None) has only its name."""
    return WorkflowListJson(workflows=[_workflow_to_json(name, one) for name, one in workflows.items()])


def _workflow_to_json(name: str, workflow: WorkflowSpec | None) -> WorkflowJson:
    if workflow is None:
        return WorkflowJson(name=name, title=name, broken=True, stages=())
    stages = [
        StageSpecJson(
            id=stage.id,
            label=workflow.label(stage),
            phase=stage.phase,
            required=stage.required,
            search=stage.search,
        )
        for stage in workflow.stages
    ]
    return WorkflowJson(name=name, title=workflow.title or name, broken=False, stages=stages)


def progress_to_json(conversation_key: str, name: str, progress: WorkflowProgress) -> ProgressJson:
    """Return the current stage, every stage, and all decisions, including superseded ones."""
    return ProgressJson(
        conversation=conversation_key,
        name=name,
        workflow=progress.workflow,
        title=progress.title,
        current=progress.current,
        status=progress.status,
        stages=convert(progress.stages, list[StageJson], from_attributes=True),
        digest=convert(progress.digest, list[DigestLineJson], from_attributes=True),
        references=progress.references,
        citations=progress.citations,
    )


def no_progress_to_json(conversation_key: str, name: str) -> ProgressJson:
    """Return the progress of a conversation without a workflow."""
    return ProgressJson(
        conversation=conversation_key,
        name=name,
        workflow=None,
        title="",
        current=None,
        status="none",
        stages=(),
        digest=(),
        references=0,
        citations=0,
    )


def stage_data_to_json(conversation_key: str, name: str, progress: WorkflowProgress) -> StageDataJson:
    """Return the recorded data of each stage, including stages that the work was rewound to before."""
    body = progress_to_json(conversation_key, name, progress)
    data = {stage.id: dict(stage.data) for stage in progress.stages if stage.data}
    return StageDataJson(**asdict(body), data=data)
