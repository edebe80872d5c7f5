"""A chronicle: one whole conversation as it travels between stores, files and people."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lamella.core.log.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Chronicle:
    """A conversation's events in order, and those of its contents that travel with it, by hash.

    ``warnings`` say what could not be brought along, each in one sentence.
    """

    conversation: str
    title: str
    created: str
    records: tuple[Record, ...]
    contents: Mapping[str, bytes] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
