"""Answers as they are told: whole, and event by event."""

from pydantic import BaseModel, Field

from lamella.faces.server.bodies.compaction import ReceiptJson
from lamella.faces.server.bodies.ledger import ModelCallJson, UsageJson
from lamella.faces.server.bodies.library import ColdCacheJson
from lamella.faces.server.bodies.prompts import AskedTurnJson
from lamella.faces.server.bodies.shape import ConversationBody, JsonBody


class WantedCallJson(JsonBody):
    """A call that the model wants made; its arguments are as the model wrote them."""

    id: str
    name: str
    arguments: str


class AnswerJson(ConversationBody):
    """A turn that is over: its answer, the calls that wait for the client, and the last model call of it."""

    message: str = Field(description="The id of the question.")
    reply: str | None = Field(description="The id of the answer; null while calls wait for the client.")
    answer: str | None
    calls: list[WantedCallJson]
    stopped: bool
    warnings: list[str]
    call: ModelCallJson | None


class EnvelopeEventJson(AskedTurnJson):
    """The question is written down; what it is sent as weighs this."""


class DeltaEventJson(JsonBody):
    """More of the answer, or of what the model says it thought."""

    text: str


class CallOutputJson(JsonBody):
    """What a call gave back."""

    call: str
    output: str
    failed: bool


class ToolEventJson(JsonBody):
    """A call of the model, or what it gave back."""

    call: WantedCallJson | None
    output: CallOutputJson | None


class RetryEventJson(JsonBody):
    """Why the model is asked once more, and after how many seconds."""

    said: str
    wait: float | None


class CompactionEventJson(JsonBody):
    """Room had to be made once more."""

    said: str
    receipt: ReceiptJson | None


class NoteEventJson(JsonBody):
    """Something that is to be said."""

    said: str


class ColdEventJson(JsonBody):
    """The cache lapsed before the message: what that costs, as it would have been and folded."""

    cold: ColdCacheJson


class DoneEventJson(JsonBody):
    """The answer is written down."""

    calls: list[WantedCallJson]
    conversation: str
    message: str | None
    reply: str | None
    stopped: bool


class ErrorDetailJson(JsonBody):
    """What went wrong and what to do next."""

    code: str
    message: str
    hint: str


class ErrorEventJson(JsonBody):
    """What went wrong; nothing comes after it."""

    error: ErrorDetailJson


# What stands in the data of each event of a stream.
EVENTS: dict[str, type[BaseModel]] = {
    "cold": ColdEventJson,
    "envelope": EnvelopeEventJson,
    "delta": DeltaEventJson,
    "reasoning": DeltaEventJson,
    "tool": ToolEventJson,
    "usage": UsageJson,
    "retry": RetryEventJson,
    "compaction": CompactionEventJson,
    "note": NoteEventJson,
    "done": DoneEventJson,
    "error": ErrorEventJson,
}
