"""Checkpoints that are not what their events come to."""

from collections.abc import Iterable, Iterator, Sequence

from lamella.core.log.log import Log
from lamella.core.log.records import Record
from lamella.core.log.snapshots.columns import keep_packed
from lamella.core.log.snapshots.snapshot import is_of_another_format, make_snapshot
from lamella.core.text.content import hash_text
from lamella.engine.keeping.checkpoints.reading import read_checkpoint
from lamella.engine.keeping.counting import Counted, are_whole, list_counts, list_tokens
from lamella.errors import StoreDamagedError
from lamella.holdings import Checkpoint, Damage

_LEAVE = "a copy of the store leaves it behind"
_UNREADABLE = "cannot be read and is not used; the next one replaces it"


def find_damaged_checkpoints(
    conversation: str, records: Sequence[Record], kept: Iterable[Checkpoint]
) -> Iterator[Damage]:
    """Checkpoints that their events do not come to, when these are folded again."""
    log = Log(conversation)
    counted: set[Counted] = set()
    whole = True
    for checkpoint in kept:
        if checkpoint.version > len(records):
            # Someone else has gone on meanwhile.
            return
        new = records[log.version : checkpoint.version]
        log.extend(new)
        counted |= list_counts(record.counts for record in new)
        # Against counts that are damaged themselves nothing can be held.
        whole = whole and all(are_whole(record.counts) for record in new)
        what = _find_fault(checkpoint, log, counted if whole else None)
        if what is not None:
            yield Damage(conversation=conversation, place=f"checkpoint {checkpoint.version}", what=what)


def _find_fault(checkpoint: Checkpoint, log: Log, counted: set[Counted] | None) -> str | None:
    if is_of_another_format(checkpoint.data):
        return None
    snapshot = read_checkpoint(checkpoint)
    if snapshot is None or (snapshot.log is None and snapshot.told is not None):
        return _UNREADABLE
    derived = make_snapshot(log, after=snapshot.after)
    kept, told = keep_packed(snapshot.nodes), keep_packed(derived.nodes)
    try:
        same = kept == told and (kept.runs, kept.columns.line) == (told.runs, told.columns.line)
    except StoreDamagedError:
        return "has something apart that cannot be read; its events tell it"
    if snapshot.log is not None:
        same = same and snapshot.log == derived.log and snapshot.log.branches() == log.branches()
    if not same or any(hash_text(block) != name for name, block in snapshot.blocks.items()):
        return f"is not what its events come to; {_LEAVE}"
    counts = list_counts([snapshot.counts]) | list_tokens(snapshot.tokens, kept.texts)
    if counted is not None and not counts <= counted:
        return f"has counts that no event has; {_LEAVE}"
    return None
