"""The catalog as it is told: runners, tools, models, settings, workflows, and whether the server is there."""

from typing import Literal

from pydantic import Field, JsonValue

from lamella.faces.server.bodies.shape import ConversationBody, Count, JsonBody, MarkedBody, NamedBody


class HealthJson(JsonBody):
    """Whether the process answers, or takes requests."""

    status: Literal["ok", "ready", "stopping"]


class RunnerJson(JsonBody):
    """A way of answering."""

    name: str
    does: str
    usual: bool


class RunnerListJson(MarkedBody):
    """Ways of answering."""

    runners: list[RunnerJson]


class ToolJson(JsonBody):
    """A tool, with the schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


class ToolListJson(MarkedBody):
    """Tools that models may call."""

    tools: list[ToolJson]


class ModelJson(JsonBody):
    """A model that may be named, in the shape of both APIs whose clients ask for it."""

    id: str
    object: Literal["model"]
    type: Literal["model"]
    display_name: str
    created: int
    created_at: str
    owned_by: str
    usual: bool


class ModelListJson(MarkedBody):
    """Models that may be named without more ado."""

    object: Literal["list"]
    data: list[ModelJson]
    has_more: bool
    first_id: str | None
    last_id: str | None


class FoundSettingJson(JsonBody):
    """A setting, and where it was found."""

    value: JsonValue
    origin: str = Field(alias="from")


class ChatSettingsJson(ConversationBody):
    """The settings that a conversation has of its own, and all that are in force."""

    settings: dict[str, JsonValue]
    in_force: dict[str, FoundSettingJson]


class ServerSettingsJson(JsonBody):
    """Every setting of the server, and the files that were read."""

    settings: dict[str, FoundSettingJson]
    files: dict[str, str]


class TrustJson(MarkedBody):
    """A place that was said yes to; ``new`` if it was not before."""

    field: str
    place: str
    new: bool


class TrustedPlaceJson(JsonBody):
    """A place that was said yes to, and the day."""

    field: str
    place: str
    since: str


class TrustListJson(MarkedBody):
    """Places that were said yes to."""

    trusted: list[TrustedPlaceJson]


class StageSpecJson(JsonBody):
    """A stage of a workflow."""

    id: str
    label: str
    phase: str
    required: list[str]
    search: bool


class WorkflowJson(JsonBody):
    """A workflow; of one that is ``broken`` only the name is known."""

    name: str
    title: str
    broken: bool
    stages: list[StageSpecJson]


class WorkflowListJson(MarkedBody):
    """Workflows by name."""

    workflows: list[WorkflowJson]


class StageJson(StageSpecJson):
    """Where a stage stands."""

    status: str | None
    attempt: Count
    digest: str | None
    messages: list[str]
    missing: list[str]


class DigestLineJson(JsonBody):
    """What was decided in a stage."""

    stage: str
    label: str
    decision: str
    attempt: Count
    superseded: bool


class ProgressJson(NamedBody):
    """Where work in stages stands."""

    workflow: str
    title: str
    current: str | None
    status: str
    stages: list[StageJson]
    digest: list[DigestLineJson]
    references: Count
    citations: Count


class StageDataJson(ProgressJson):
    """Where work stands, with what was written down for each stage."""

    data: dict[str, dict[str, JsonValue]]


class WorkJson(NamedBody):
    """The work as markdown."""

    text: str
    file: str | None
