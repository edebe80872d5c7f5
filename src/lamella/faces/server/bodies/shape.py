"""The shape that all bodies have, and how an address says which one it answers with."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Told = dict[int | str, dict[str, Any]]
# Money in US dollars, in digits that lose nothing; null where nobody knows the price.
Money = Annotated[str | None, Field(description="US dollars in plain digits.", examples=["0.0007"])]
Moment = Annotated[str, Field(description="RFC 3339, UTC.", examples=["2026-11-15T10:00:00Z"])]
Hash = Annotated[str, Field(examples=["sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"])]
Count = Annotated[int, Field(ge=0)]


class JsonBody(BaseModel):
    """What every body allows: fields that this version of the description does not know."""

    model_config = ConfigDict(extra="allow")


class MarkedBody(JsonBody):
    """A body that says which format it is in."""

    lamella: Literal[1]


class ConversationBody(MarkedBody):
    """A body about a conversation, by its key."""

    conversation: str = Field(description="The key, which nobody chooses and which is never used again.")


class NamedBody(ConversationBody):
    """A body about a conversation, by its key and the name that people call it by."""

    name: str


def told(body: type[BaseModel], status: int = 200, **more: Any) -> Told:  # noqa: ANN401 - what OpenAPI takes
    """What an address answers with."""
    return {status: {"model": body, **more}}
