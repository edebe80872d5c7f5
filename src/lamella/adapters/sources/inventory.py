"""An inventory: what one walk through a folder found, ready to be asked many times."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Every file below a folder and every link that was not followed, as sorted vault paths; all of them by name."""

    files: tuple[str, ...]
    links: tuple[str, ...]
    notes: tuple[str, ...]
    _named: dict[str, list[str]] = field(repr=False)
    _others: dict[str, list[str]] = field(repr=False)

    def find_note(self, name: str) -> list[str]:
        """The notes that a link can mean: the one at this path, else all of this name, whatever its case."""
        same = self._named.get(PurePosixPath(name).name.lower().removesuffix(".md"), [])
        exact = [path for path in same if path in (name, f"{name}.md")]
        return exact or list(self._named.get(name.lower(), []))

    def find_others(self, name: str) -> list[str]:
        """The files that are no notes and are called so, in any folder and whatever the case."""
        return self._others.get(name.casefold(), [])


def make_inventory(files: Iterable[str], links: Iterable[str]) -> Inventory:
    """An inventory of what a walk found."""
    files = tuple(sorted(files))
    notes = tuple(path for path in files if is_note(path))
    named: dict[str, list[str]] = {}
    for path in notes:
        named.setdefault(PurePosixPath(path).stem.lower(), []).append(path)
    others: dict[str, list[str]] = {}
    for path in files:
        if not is_note(path):
            others.setdefault(path.rpartition("/")[2].casefold(), []).append(path)
    return Inventory(files=files, links=tuple(sorted(links)), notes=notes, _named=named, _others=others)


def is_note(name: str) -> bool:
    """Whether a file of this name holds a note."""
    return name.lower().endswith(".md")
