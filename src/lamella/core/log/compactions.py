"""Compactions and workflow stage events of a log, found for a branch.

A compaction applies to every branch that continues from its message, until it is undone: see ``CompactionLog``.
``list_branch_stage_events`` returns the stage events of a branch, and ``reassign_stage_events_after_deletion`` moves
them if messages of the branch get new ids.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter

from msgspec import Struct

from lamella.core.log.events.compaction import CompactionEvent, StageEvent
from lamella.core.log.receipts import CompactionReceipt, find_first_voided_index
from lamella.core.values import replace

NEVER_UNDONE = float("inf")


class ActiveCompactions(Struct, frozen=True, kw_only=True):
    """The active compactions of a branch: by the message asked after them, and those after the last message.

    ``undone_results`` are the tool results that a compaction cleared in place before the user undid it.
    """

    by_next_question: Mapping[str, tuple[CompactionEvent, ...]] = {}
    after_last_message: tuple[CompactionEvent, ...] = ()
    undone_results: frozenset[str] = frozenset()

    @property
    def events(self) -> tuple[CompactionEvent, ...]:
        return (*(event for events in self.by_next_question.values() for event in events), *self.after_last_message)


NO_COMPACTIONS = ActiveCompactions()


class _CompactionEntry(Struct, rename={"event_number": "at"}):
    event: CompactionEvent
    event_number: int
    undone_at: float = NEVER_UNDONE


class CompactionLog(Struct):
    """All compactions and undos of a log; points in time are event numbers."""

    _entries: list[_CompactionEntry] = []

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add_compaction(self, event: CompactionEvent, *, event_number: int) -> None:
        """Add a compaction."""
        self._entries.append(_CompactionEntry(event, event_number))

    def undo_from(self, receipt_id: str, *, message_numbers: Mapping[str, int], event_number: int) -> None:
        """Void a compaction and all later ones of the branch.

        Raises ``ValueError`` if the branch has no such active compaction.
        """
        branch = [
            entry
            for entry, _ in self._iter_compactions_with_next_message(message_numbers)
            if entry.undone_at == NEVER_UNDONE
        ]
        found = find_first_voided_index([entry.event.id for entry in branch], receipt_id)
        if found is None:
            raise ValueError(f"there is no compaction {receipt_id} to undo")
        for entry in branch[found:]:
            entry.undone_at = event_number

    def was_any_undone(self, from_event: int, *, to_event: int | None = None) -> bool:
        """Return whether a compaction that was active at event ``from_event`` is not active at ``to_event``, or now."""
        return any(_is_active(entry, from_event) and not _is_active(entry, to_event) for entry in self._entries)

    def active_on_branch(
        self, message_numbers: Mapping[str, int], *, as_of_event: int | None = None
    ) -> ActiveCompactions:
        """Return the compactions that are active on a branch, now or as of event ``as_of_event``.

        ``message_numbers`` maps the branch's messages, in order, to the number of the event that added each one last.
        """
        before: dict[str, tuple[CompactionEvent, ...]] = {}
        since: tuple[CompactionEvent, ...] = ()
        undone: set[str] = set()
        for entry, child in self._iter_compactions_with_next_message(message_numbers):
            if not _is_active(entry, as_of_event):
                undone.update(results_cleared_by(entry.event) if _is_undone(entry, as_of_event) else ())
                continue
            if child is None:
                since = (*since, entry.event)
            else:
                before[child] = (*before.get(child, ()), entry.event)
        return ActiveCompactions(by_next_question=before, after_last_message=since, undone_results=frozenset(undone))

    def undone_clearings(self, message_numbers: Mapping[str, int]) -> Sequence[CompactionEvent]:
        """Return the compactions on a branch that cleared tool results in place and were undone."""
        return [
            entry.event
            for entry, _ in self._iter_compactions_with_next_message(message_numbers)
            if entry.event.in_place and entry.undone_at < NEVER_UNDONE
        ]

    def _iter_compactions_with_next_message(
        self, message_numbers: Mapping[str, int]
    ) -> Iterator[tuple[_CompactionEntry, str | None]]:
        """Yield every compaction on a branch, undone or not, with the message asked next, or None."""
        # The empty id means the start of the conversation and for its end. Only a compaction that was made to send
        # the first question comes before that question.
        following = dict(pairwise(("", *message_numbers, "")))
        for entry in self._entries:
            child = following.get(entry.event.parent)
            if child == "":
                yield entry, None
            elif child is not None and (message_numbers[child] >= entry.event_number or entry.event.before == child):
                # A message older than the compaction was not sent with it, unless the compaction was made to send that
                # message again.
                yield entry, child


def results_cleared_by(compaction: CompactionEvent | CompactionReceipt) -> tuple[str, ...]:
    """Return the tool results that a compaction cleared in place; none for other compactions."""
    is_clearing = compaction.in_place if isinstance(compaction, CompactionEvent) else compaction.clears_in_place
    return compaction.steps[0].removed if is_clearing else ()


def _is_undone(entry: _CompactionEntry, as_of_event: int | None) -> bool:
    return entry.undone_at <= (NEVER_UNDONE if as_of_event is None else as_of_event) and entry.undone_at < NEVER_UNDONE


def _is_active(entry: _CompactionEntry, as_of_event: int | None) -> bool:
    if as_of_event is None:
        return entry.undone_at == NEVER_UNDONE
    return entry.event_number <= as_of_event < entry.undone_at


# Stage events.

# A stage event and the number of log events before it.
StageEntry = tuple[int, StageEvent]


def list_branch_stage_events(
    entries: Iterable[StageEntry], message_numbers: Mapping[str, int]
) -> list[tuple[int, StageEvent]]:
    """Return the stage events of a branch, each with the number of the branch's messages before it.

    ``message_numbers`` maps the branch's messages, in order, to the number of the event that added each one last. A
    stage event belongs to the branch if the branch ends at the message that it follows, or if the next message is newer
    than it.
    """
    names = tuple(message_numbers)
    positions = {name: at for at, name in enumerate(("", *names))}
    found: list[tuple[int, StageEvent]] = []
    for number, event in entries:
        position = positions.get(event.after)
        if position is not None and (position == len(names) or message_numbers[names[position]] >= number):
            # Questions and replies alternate. An event after a question that has a reply by now counts as being after
            # the reply, because a turn is never divided.
            found.append((position + position % 2 if position < len(names) else position, event))
    # A message that was sent again may follow events that are newer than it, so sort by position, not by event number.
    return sorted(found, key=itemgetter(0))


def reassign_stage_events_after_deletion(
    entries: Sequence[StageEntry],
    message_numbers: Mapping[str, int],
    remaining_ids: Iterable[str],
    *,
    new_ids: Mapping[str, str],
    event_number: int,
) -> tuple[StageEntry, ...]:
    """Return the stage events after a message was deleted, with copies for messages that got new ids.

    ``message_numbers`` is the branch before the deletion and ``remaining_ids`` after it. ``new_ids`` maps old to new
    message ids. An event after the deleted message moves to the last remaining message before it. ``event_number`` is
    the event number of the copies.
    """
    kept, last, moved = frozenset(remaining_ids), "", {"": ""}
    for name in message_numbers:
        last = new_ids.get(name, name) if new_ids.get(name, name) in kept else last
        moved[name] = last
    moved_events = [
        event for _, event in list_branch_stage_events(entries, message_numbers) if moved[event.after] != event.after
    ]
    return (*entries, *((event_number, replace(event, after=moved[event.after])) for event in moved_events))
