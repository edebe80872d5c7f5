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
    """What of the prompt before stays, and in which form the rest is laid behind it.

    ``keep`` is how many messages stay as they were sent, none for all of them; what stood behind folds. ``forms`` are
    those of artifacts that fold to less than is carried forward. ``why`` is one sentence for people.
    """

    keep: int | None = None
    forms: Mapping[str, Form] = {}
    why: str = ""

    @property
    def folds(self) -> bool:
        """Whether anything that was sent is laid anew."""
        return self.keep is not None
