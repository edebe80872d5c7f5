"""JSON bodies of workflows and of work in stages."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, convert
from msgspec.structs import asdict

from lamella.core.log.events.compaction import WorkflowSpec
from lamella.core.workflow.references import format_reference
from lamella.ports import WorkflowProgress
from lamella.schemas.body import Count, JsonBody, NamedConversationJsonBase, VersionedBody

if TYPE_CHECKING:
    from lamella.core.workflow.document import DocumentProblem, WorkflowDocument


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
    field_labels: Annotated[Mapping[str, str], Meta(description="Labels of the fields for people.")]


class StageWriteJson(JsonBody, frozen=True, kw_only=True):
    """Something that was written in the current stage."""

    by_model: Annotated[bool, Meta(description="Whether a model wrote it.")]
    diff: Annotated[str, Meta(description="What it changed, as lines with - and +.")]


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
    language: Annotated[str, Meta(description="The language that the work is written in, as a code.")]
    proposed_decision: Annotated[str, Meta(description="The decision that an approval without one takes.")]
    change_request: Annotated[str, Meta(description="What is to change in the stage that was sent back.")]
    writes: Annotated[
        Sequence[StageWriteJson], Meta(description="What was written in the current stage; the last can be undone.")
    ]
    reference_items: Annotated[Sequence[Mapping[str, object]], Meta(description="References as CSL-JSON.")]
    exhibits: Annotated[Mapping[str, str], Meta(description="Captions of figures and tables by key.")]


class StageDataJson(ProgressJson, frozen=True, kw_only=True):
    """The progress of a workflow, with the recorded data of each stage."""

    data: Mapping[str, Mapping[str, object]]


class DocumentProblemJson(JsonBody, frozen=True, kw_only=True):
    """Something that a document lacks."""

    code: str
    message: str


class WorkflowTextJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """The work as markdown."""

    text: str
    file: Annotated[str | None, Meta(description="The file it was written to.")]
    problems: Annotated[Sequence[DocumentProblemJson], Meta(description="What it lacks.")]


class DocumentCheckJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """What the document of a workflow lacks."""

    title: str
    sections: Annotated[Sequence[str], Meta(description="The headings of its sections, in order.")]
    problems: Sequence[DocumentProblemJson]


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
        language=progress.language,
        proposed_decision=progress.proposed_decision,
        change_request=progress.change_request,
        writes=convert(progress.writes, list[StageWriteJson], from_attributes=True),
        reference_items=progress.reference_items,
        exhibits=progress.exhibits,
    )


def document_to_json(
    conversation_key: str, name: str, document: "WorkflowDocument", text: str, *, file: str | None = None
) -> WorkflowTextJson:
    """Return a document as text, and what it lacks."""
    return WorkflowTextJson(
        conversation=conversation_key, name=name, text=text, file=file, problems=problems_to_json(document.problems)
    )


def document_check_to_json(conversation_key: str, name: str, document: "WorkflowDocument") -> DocumentCheckJson:
    """Return the headings of a document, and what it lacks."""
    return DocumentCheckJson(
        conversation=conversation_key,
        name=name,
        title=document.title,
        sections=[section.heading for section in document.sections],
        problems=problems_to_json(document.problems),
    )


def problems_to_json(problems: "Sequence[DocumentProblem]") -> list[DocumentProblemJson]:
    """Return problems of a document."""
    return [DocumentProblemJson(code=one.code, message=one.message) for one in problems]


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
        language="en",
        proposed_decision="",
        change_request="",
        writes=(),
        reference_items=(),
        exhibits={},
    )


def stage_data_to_json(conversation_key: str, name: str, progress: WorkflowProgress) -> StageDataJson:
    """Return the recorded data of each stage, including stages that the work was rewound to before."""
    body = progress_to_json(conversation_key, name, progress)
    data = {stage.id: dict(stage.data) for stage in progress.stages if stage.data}
    return StageDataJson(**asdict(body), data=data)


__all__ = [
    "DocumentCheckJson",
    "ProgressJson",
    "StageDataJson",
    "WorkflowJson",
    "WorkflowListJson",
    "WorkflowTextJson",
    "document_check_to_json",
    "document_to_json",
    "format_reference",
    "no_progress_to_json",
    "progress_to_json",
    "stage_data_to_json",
    "workflows_to_json",
]
