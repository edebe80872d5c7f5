"""The artifacts that a turn has to look at, beside everything that was ever attached.

A long conversation knows thousands of artifacts, and its request contains a few of them. Most of the others are *retired*:
they left the working set, their text is in no message, and they are only counted at the end of the list of handles.
``ArtifactIndex`` lists the rest, so that a turn need not go through everything. It is derived from the library and the
placed artifacts. A turn that changes them in an unusual way has no index, and the next one builds it again.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from lamella.core.artifacts.kinds import LIBRARY_KIND, UNPARSED_KINDS
from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.layers.library import LibraryEntry, PlacedArtifact, can_shrink

Library = Mapping[str, LibraryEntry]
Placed = Mapping[str, PlacedArtifact]


class RetiredArtifact(NamedTuple):
    """A retired artifact by the order of the list of handles: the turn that attached it last, then first appearance."""

    last_attached_turn: int
    number: int
    name: str


class ArtifactIndex:
    """The active artifacts of a library in first-seen order, those that are placed in their order, and the retired ones.

    ``library`` and ``placed`` are the values that it was derived from, compared by identity. All indexes are equal:
    an index is not a part of the state that it speeds up.
    """

    __slots__ = (
        "active_library",
        "active_placed",
        "library",
        "next_number",
        "numbers",
        "placed",
        "retired",
        "retired_placed",
        "unparsed",
    )

    def __init__(
        self,
        library: Library,
        placed: Placed,
        *,
        active_library: Mapping[str, LibraryEntry],
        active_placed: Mapping[str, PlacedArtifact],
        numbers: Mapping[str, int],
        next_number: int,
        retired: list[RetiredArtifact],
        retired_placed: Mapping[str, PlacedArtifact],
        unparsed: int,
    ) -> None:
        self.library, self.placed = library, placed
        self.active_library, self.active_placed = active_library, active_placed
        self.numbers, self.next_number = numbers, next_number
        self.retired, self.retired_placed, self.unparsed = retired, retired_placed, unparsed

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, ArtifactIndex)

    __hash__ = None  # type: ignore[assignment]

    def matches_library(self, library: Library, placed: Placed) -> bool:
        """Return whether the index belongs to exactly these values."""
        return self.library is library and self.placed is placed

    def suffices_for_turn(self, *, linger: int, turn_number: int, names: Iterable[str] = ()) -> bool:
        """Return whether a turn needs only the active artifacts.

        That is so if no retired one comes back: neither by a longer retention nor because the turn names it.
        """
        if self.retired and turn_number - self.retired[-1].last_attached_turn <= linger:
            return False
        return not self._has_retired(names)

    def _has_retired(self, names: Iterable[str]) -> bool:
        return any(name in self.library and name not in self.active_library for name in names)

    def with_attached(self, library: Library, placed: Placed, names: Collection[str]) -> "ArtifactIndex":
        """Return the index after a turn changed only the artifacts with these names."""
        if self._has_retired(names):
            return build_index(library, placed)
        active_library, numbers, next_number = dict(self.active_library), dict(self.numbers), self.next_number
        active_placed = dict(self.active_placed)
        for name in names:
            if name in library:
                active_library[name] = library[name]
                if name not in numbers:
                    numbers[name] = next_number
                    next_number += 1
            if name in placed:
                active_placed[name] = placed[name]
        return ArtifactIndex(
            library,
            placed,
            active_library=active_library,
            active_placed=active_placed,
            numbers=numbers,
            next_number=next_number,
            retired=self.retired,
            retired_placed=self.retired_placed,
            unparsed=self.unparsed,
        )

    def after_fold(
        self, active_placed: Mapping[str, PlacedArtifact], *, relisted: Collection[RetiredArtifact]
    ) -> "ArtifactIndex":
        """Return the index after a fold, with everything that is placed then.

        ``active_placed`` has the active artifacts as the fold placed them. Those in ``relisted`` were retired and are
        in the list of handles again.
        """
        retired, retired_placed, unparsed = list(self.retired), dict(self.retired_placed), self.unparsed
        active_library, numbers = dict(self.active_library), dict(self.numbers)
        for one in relisted:
            del retired[bisect_left(retired, one)], retired_placed[one.name]
            active_library[one.name], numbers[one.name] = self.library[one.name], one.number
            unparsed -= _is_unparsed(self.library[one.name])
        if relisted:
            active_library = dict(sorted(active_library.items(), key=lambda item: numbers[item[0]]))
        stays = dict(active_placed)
        for name, entry in [*active_library.items()]:
            if name in stays and is_retired(entry, stays[name]):
                insort(retired, RetiredArtifact(entry.last_attached_turn, numbers.pop(name), name))
                retired_placed[name] = stays.pop(name)
                del active_library[name]
                unparsed += _is_unparsed(entry)
        return ArtifactIndex(
            self.library,
            {**retired_placed, **stays} if retired_placed else stays,
            active_library=active_library,
            active_placed=stays,
            numbers=numbers,
            next_number=self.next_number,
            retired=retired,
            retired_placed=retired_placed,
            unparsed=unparsed,
        )

    def iter_handles_newest_first(self, unused: Iterable[str]) -> Iterator[RetiredArtifact]:
        """Iterate over these active artifacts and all retired ones, in the order of the list of handles."""
        named = [RetiredArtifact(self.library[name].last_attached_turn, self.numbers[name], name) for name in unused]
        active, retired = sorted(named), len(self.retired)
        # Usually only the first few are looked at, so the two sorted lists are not joined.
        while active or retired:
            if active and not (retired and self.retired[retired - 1] > active[-1]):
                yield active.pop()
            else:
                retired -= 1
                yield self.retired[retired]


def is_retired(entry: LibraryEntry, placed: PlacedArtifact) -> bool:
    """Return whether an artifact is only counted at the end of the list of handles, and not attached."""
    return (
        placed.is_listed
        and not placed.pieces
        and placed.place is None
        and placed.form is ArtifactForm.HANDLE
        and entry.stays_attached is not True
        and can_shrink(entry.artifact)
    )


def build_index(library: Library, placed: Placed) -> ArtifactIndex:
    """Build the index of a library by going through all of it."""
    active_library: dict[str, LibraryEntry] = {}
    numbers: dict[str, int] = {}
    retired: list[RetiredArtifact] = []
    unparsed = 0
    for number, (name, entry) in enumerate(library.items()):
        one = placed.get(name)
        if one is not None and is_retired(entry, one):
            retired.append(RetiredArtifact(entry.last_attached_turn, number, name))
            unparsed += _is_unparsed(entry)
        else:
            active_library[name], numbers[name] = entry, number
    retired.sort()
    gone = {one.name for one in retired}
    return ArtifactIndex(
        library,
        placed,
        active_library=active_library,
        active_placed={name: one for name, one in placed.items() if name not in gone} if gone else placed,
        numbers=numbers,
        next_number=len(library),
        retired=retired,
        retired_placed={one.name: placed[one.name] for one in retired},
        unparsed=unparsed,
    )


def _is_unparsed(entry: LibraryEntry) -> bool:
    return LIBRARY_KIND[entry.artifact.kind] in UNPARSED_KINDS
