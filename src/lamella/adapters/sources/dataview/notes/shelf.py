"""A shelf of notes: all of a vault at one moment, each read when a query first asks for it."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Protocol

from lamella.adapters.sources.dataview.memory import BoundedMemory
from lamella.adapters.sources.dataview.notes.records import FileState, NoteRecord
from lamella.adapters.sources.dataview.notes.texts import NoteText, read_note
from lamella.adapters.sources.inventory import Inventory, make_inventory
from lamella.adapters.sources.markdown.tags import carries_tag, fold_tag
from lamella.core.text.content import hash_text, normalise
from lamella.errors import BadInputError


class NoteFiles(Protocol):
    """The notes of a vault as files."""

    def list_states(self) -> Sequence[FileState]:
        """Every note with its size and time, sorted by path."""
        ...

    def read_text(self, path: str) -> str:
        """A note as it is written; a child of ``bad_input`` says why it cannot be read."""
        ...

    def list_left_out(self) -> Sequence[str]:
        """What could not be looked at, and why."""
        ...


TextMemory = BoundedMemory[FileState, NoteText]


class NoteShelf:
    """The notes of a vault at one moment. ``memory`` keeps what was read for as long as files stay as they are."""

    def __init__(self, files: NoteFiles, memory: TextMemory) -> None:
        self._files = files
        self._memory = memory
        self._records: dict[str, NoteRecord] = {}

    @cached_property
    def states(self) -> dict[str, FileState]:
        return {state.path: state for state in self._files.list_states()}

    @cached_property
    def digest(self) -> str:
        """What all files are, in one word: it is another as soon as one of them is."""
        return hash_text("\n".join(f"{one.path}\0{one.disk}" for one in self.states.values()))

    def note(self, path: str) -> NoteRecord | None:
        """The note at a path, if there is one."""
        if path not in self._records and path in self.states:
            self._records[path] = self._make_record(self.states[path])
        return self._records.get(path)

    def _make_record(self, state: FileState) -> NoteRecord:
        return NoteRecord(
            state,
            self._memory.get(state, lambda: self._read(state.path), keeps=state.is_settled),
            resolve=lambda target: self.resolve(target, beside=state.path),
            inlinks=lambda path: sorted(self._inlinks.get(path, ())),
        )

    def _read(self, path: str) -> NoteText:
        try:
            return read_note(normalise(self._files.read_text(path)))
        except BadInputError as error:
            return NoteText(unread=error.message)

    def resolve(self, target: str, *, beside: str) -> str:
        """The path that a link leads to, or the link as it was written; without a target it is the note itself.

        A path from the note, else from the root, else a name; of several the one beside the note, else the least deep.
        """
        if not target:
            return beside
        folder = PurePosixPath(beside).parent
        plain = [normpath(path) for path in ((folder / target).as_posix(), target.lstrip("/"))]
        exact = [path for one in plain for path in (one, f"{one}.md") if path in self.states]
        named = exact or self._inventory.find_note(target)
        near = [path for path in named if PurePosixPath(path).parent == folder]
        return next(iter(exact or near or named), target)

    @cached_property
    def _inventory(self) -> Inventory:
        return make_inventory(self.states, ())

    @cached_property
    def left_out(self) -> Sequence[str]:
        """What of the vault could not be looked at, and why."""
        return self._files.list_left_out()

    @cached_property
    def is_settled(self) -> bool:
        """Whether what is said of these notes may be said again as long as their digest is the same."""
        return all(state.is_settled for state in self.states.values())

    @cached_property
    def _inlinks(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for path in self.states:
            for target in self._outgoing(path):
                found.setdefault(target, set()).add(path)
        return found

    def _outgoing(self, path: str) -> set[str]:
        record = self.note(path)
        return {self.resolve(target, beside=path) for target in record.text.links} if record else set()

    def select_linking_to(self, path: str) -> frozenset[str]:
        return frozenset(self._inlinks.get(path, ()))

    def select_linked_from(self, path: str) -> frozenset[str]:
        return frozenset(self._outgoing(path) & self.states.keys())

    def select_tagged(self, tag: str) -> frozenset[str]:
        return frozenset(path for path, tags in self._tags.items() if carries_tag(tags, tag))

    @cached_property
    def _tags(self) -> dict[str, frozenset[str]]:
        records = (self.note(path) for path in self.states)
        return {one.state.path: frozenset(map(fold_tag, one.text.tags)) for one in records if one and one.text.tags}

    def select_below(self, name: str) -> frozenset[str]:
        name = name.strip("/")
        if not name:
            return frozenset(self.states)
        found = {path for path in self.states if path.startswith(f"{name}/")}
        return frozenset(found | ({name, f"{name}.md"} & self.states.keys()))
