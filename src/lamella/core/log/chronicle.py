"""A chronicle: one whole conversation as it travels between stores, files and people."""

from collections.abc import Mapping

from msgspec import Struct

from lamella.core.log.records import Record


class Chronicle(Struct, frozen=True, kw_only=True):
    """A conversation's events in order, and those of its contents that travel with it, by hash.

    ``warnings`` say what could not be brought along, each in one sentence.
    """

    conversation: str
    title: str
    created: str
    records: tuple[Record, ...]
    contents: Mapping[str, bytes] = {}
    warnings: tuple[str, ...] = ()
