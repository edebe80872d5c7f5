"""Placement: where things stand in a turn's prompt. A planner makes it; advancing a state follows it."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class Form(StrEnum):
    """How much of an artifact stands in the request."""

    FULL = "full"
    PREVIEW = "preview"
    HANDLE = "handle"
    REFERENCE = "reference"
    UPDATE = "update"
    SUMMARY = "summary"


class Placement(Struct, frozen=True, kw_only=True):
    """What of the prompt before stays as it was sent, and how the rest is laid behind it.

    ``keep`` is how many messages stay, none for all of them. At 0 everything folds into the library and the talk. From
    1 on the system message stays as well as every turn that begins before that message; of those behind only the talk
    stays where it was, and what they brought stands in the message that is asked now. A request whose system prompt,
    tools or model change keeps nothing.
    ``forms`` are those of artifacts that stand as less than what is carried forward. ``promotes`` says that what a turn
    attached goes into the library as soon as it is over, not only when an epoch ends. ``why`` is a sentence for people.
    """

    keep: int | None = None
    forms: Mapping[str, Form] = {}
    promotes: bool = False
    why: str = ""
