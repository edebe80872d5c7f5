"""What was said on a branch, with all that is needed to read it: results of tools, sources, compactions."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamella.core.log.nodes import Told
from lamella.engine.keeping.marks import CompactionMark
from lamella.engine.sources import ReplySource, list_source_hashes, read_sources
from lamella.ports import Store


class SaidBranch(NamedTuple):
    """The turns of a branch; ``contents`` has what tools gave back, and ``sources`` those of each turn's reply."""

    path: Sequence[Told]
    contents: Mapping[str, bytes]
    sources: Sequence[Sequence[ReplySource]]
    marks: Sequence[CompactionMark]


def read_said(
    store: Store, conversation: str, path: Sequence[Told], *, marks: Sequence[CompactionMark] = ()
) -> SaidBranch:
    """A branch with the contents that it is read by."""
    named = [
        name
        for told in path
        for one in (told.open if told.reply is None else told.reply.rounds)
        for name in one.hashes()
    ]
    named += [name for told in path for name in list_source_hashes(told)]
    contents = store.read_contents(conversation, named) if named else {}
    return SaidBranch(path, contents, [read_sources(told, contents) for told in path], marks)
