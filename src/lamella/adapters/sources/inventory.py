"""An inventory: what one walk through a folder found, ready to be asked many times."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from unicodedata import normalize


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Every file below a folder and every link that was not followed, as sorted vault paths; its notes by name.

    ``left_out`` says what could not be looked at, and why.
    """

    files: tuple[str, ...]
    links: tuple[str, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    _named: dict[str, list[str]] = field(repr=False)

    def find_note(self, name: str) -> list[str]:
        """The notes that a link can mean, the nearest to the root first.

        That is the one at this path, else all whose path is so in any case and Unicode form, else all whose path ends
        so: a name alone means every note that is called so.
        """
        wanted = fold_name(name)
        same = self._named.get(wanted.rpartition("/")[2], [])
        exact = [path for path in same if path in (name, f"{name}.md")]
        whole = [path for path in same if fold_name(path) == wanted]
        ending = [path for path in same if fold_name(path).endswith(f"/{wanted}")]
        return exact or whole or ending

    def find_same(self, path: str) -> list[str]:
        """The files at this path, in whichever Unicode form it is written."""
        composed = normalize("NFC", path)
        return [file for file in self.files if normalize("NFC", file) == composed]


def make_inventory(files: Iterable[str], links: Iterable[str], left_out: Iterable[str] = ()) -> Inventory:
    """An inventory of what a walk found."""
    files = tuple(sorted(files))
    notes = tuple(path for path in files if is_note(path))
    named: dict[str, list[str]] = {}
    for path in sorted(notes, key=lambda path: (path.count("/"), path)):
        named.setdefault(fold_name(PurePosixPath(path).name), []).append(path)
    return Inventory(
        files=files, links=tuple(sorted(links)), notes=notes, left_out=tuple(sorted(left_out)), _named=named
    )


def fold_name(name: str) -> str:
    """A name or path as it is compared: in any case, any Unicode form, with or without the ending of a note."""
    folded = name.casefold() if name.isascii() else normalize("NFC", normalize("NFC", name).casefold())
    return folded.removesuffix(".md")


def is_note(name: str) -> bool:
    """Whether a file of this name holds a note."""
    return name.lower().endswith(".md")
