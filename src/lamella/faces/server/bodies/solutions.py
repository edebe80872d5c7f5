"""What questions about code come to, in the names of their clients and in ours."""

from pydantic import Field, JsonValue

from lamella.faces.server.bodies.shape import Count, JsonBody, MarkedBody


class HistoryMessageJson(JsonBody):
    """A message as clients keep it."""

    role: str
    content: str


class IgnoredFieldsJson(MarkedBody):
    """Fields that were sent and not looked at; `ignoredBecause` says why, where there are any."""

    ignored: list[str]


class SolutionJson(IgnoredFieldsJson):
    """An answer with the whole history and the new state."""

    data: str
    tokensUsed: Count  # noqa: N815 - the name that clients know
    chatHistory: list[HistoryMessageJson]  # noqa: N815 - likewise
    chatState: dict[str, JsonValue] = Field(description="Which instructions stand in the prompt.")  # noqa: N815
    conversation: str | None
    model: str
    warnings: list[str]


class ChosenFileJson(JsonBody):
    """A file that was chosen, with its content."""

    path: str
    content: str
    form: str
    tokens: Count


class RankedFileJson(JsonBody):
    """A file that was chosen, and how well it fits the question."""

    path: str
    form: str
    tokens: Count
    score: float
    text: str


class OmittedFileJson(JsonBody):
    """A file that was left out, and why."""

    path: str
    reason: str


class SelectionJson(IgnoredFieldsJson):
    """What was chosen of the files, within the budget."""

    data: list[ChosenFileJson]
    tokensUsed: Count  # noqa: N815 - the name that clients know
    root: str
    question: str
    budget: Count
    tokens: Count
    files: list[RankedFileJson]
    left_out: list[OmittedFileJson]
    text: str
    told: list[str]
