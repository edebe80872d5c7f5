"""Attaching by path: whole files, folders, and lines of a file as a selection."""

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from lamella.attach import Attachment, Code, Folder, Note, Picture, Selection, Unknown, describe_file, knows_ending
from lamella.errors import ArtifactError, LamellaError, SourceMissingError, UsageError
from lamella.wiring import list_notes, open_sources

_LINES = re.compile(r"(?P<path>.+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
_LISTED = 5_000


def with_policy(one: Attachment, policy: str | None) -> Attachment:
    """The same attachment under a policy, if one is given; pictures and pipes go as they are, and have none."""
    if policy is None:
        return one
    if isinstance(one, Picture | Unknown):
        raise UsageError("A picture takes no policy.", hint="Attach it without --policy.")
    return replace(one, policy=policy)


class NamedFiles:
    """Files as people name them: relative to the vault, or without one to the current folder."""

    def __init__(self, vault: Path | None) -> None:
        self._vault = vault

    def find(self, name: str) -> Sequence[Attachment]:
        """What a path stands for: a file, a folder of notes, or lines of a file as in ``note.md:10-20``."""
        if not self._exists(name) and _LINES.fullmatch(name):
            return [self.select(name)]
        if self._vault is None:
            return self._read_loose(Path(name), name)
        path = self._inside(name)
        if (self._vault / path).is_dir():
            return [Folder(path=path)]
        if not self._exists(name):
            open_sources(self._vault)().read(Note(path=path).wanted())
        return [describe_file(path)]

    def select(self, name: str) -> Selection:
        """Lines of a file, as in ``note.md:10-20`` or ``note.md:10``."""
        found = _LINES.fullmatch(name)
        if found is None:
            raise UsageError(f"{name} names no lines.", hint="Name a file and its lines, as in note.md:10-20.")
        path, first = found["path"], int(found["first"])
        last = int(found["last"] or first)
        lines = self._read_text(path).removesuffix("\n").split("\n")
        if not 1 <= first <= last <= len(lines):
            raise ArtifactError(
                f"{path} has {len(lines):,} lines; {first:,} to {last:,} were asked for.",
                hint="Lines count from 1, and the first comes first.",
            )
        shown = path if self._vault is None else self._inside(path)
        return Selection(path=shown, lines=(first, last), text="\n".join(lines[first - 1 : last]))

    def names_file(self, name: str) -> bool:
        """Whether a word names something that can be attached."""
        found = _LINES.fullmatch(name)
        return self._exists(name) or (found is not None and self._exists(found["path"]))

    def looks_like_path(self, name: str) -> bool:
        """Whether a word that names no file was meant to: by its ending, or by a folder that is there."""
        found = _LINES.fullmatch(name)
        path = PurePosixPath(found["path"] if found else name)
        return knows_ending(path.name) or (len(path.parts) > 1 and self._exists(path.parts[0]))

    def find_near(self, name: str, *, limit: int = 3) -> list[str]:
        """Files with a name like that one; nothing where looking fails."""
        found = _LINES.fullmatch(name)
        wanted = PurePosixPath(found["path"] if found else name)
        try:
            paths = self._list_beside(wanted)[:_LISTED]
        except (LamellaError, OSError, ValueError):
            return []
        near = get_close_matches(wanted.as_posix(), paths, n=limit)
        stems: dict[str, list[str]] = {}
        for path in paths:
            stems.setdefault(PurePosixPath(path).name.casefold(), []).append(path)
        alike = get_close_matches(wanted.name.casefold(), stems, n=limit)
        return list(dict.fromkeys([*near, *(path for stem in alike for path in stems[stem])]))[:limit]

    def _list_beside(self, path: PurePosixPath) -> Sequence[str]:
        if self._vault is not None:
            return list_notes(self._vault)
        return [
            (path.parent / place.name).as_posix() for place in sorted(Path(path.parent).iterdir()) if place.is_file()
        ]

    def complete(self, begun: str, *, limit: int = 50) -> list[str]:
        """Paths that a word may become: notes of the vault that have it in their path, else files beside it."""
        if self._vault is not None:
            return [path for path in list_notes(self._vault) if begun.casefold() in path.casefold()][:limit]
        parent, _, start = begun.rpartition("/")
        folder = Path(parent or ("/" if begun.startswith("/") else "."))
        prefix = f"{parent}/" if "/" in begun else ""
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        shown = [place for place in found if place.name.startswith(start) and not place.name.startswith(".")]
        return [f"{prefix}{place.name}{'/' if place.is_dir() else ''}" for place in shown][:limit]

    def _exists(self, name: str) -> bool:
        try:
            place = Path(name) if self._vault is None else self._vault / self._inside(name)
            return bool(name) and place.exists()
        except (OSError, ValueError):
            return False

    def _inside(self, name: str) -> str:
        """The path in the vault; one that a shell completed, from the current folder, is meant too."""
        if self._vault is None or ((self._vault / name).exists() and not Path(name).is_absolute()):
            return name
        try:
            return Path(name).resolve().relative_to(self._vault.resolve()).as_posix()
        except (OSError, ValueError):
            return name

    def _read_loose(self, path: Path, name: str) -> Sequence[Attachment]:
        """What stands outside of any vault is read now, under the path that was typed."""
        if not self._exists(name):
            raise SourceMissingError(f"There is no file {name}.", hint="Paths are relative to the current folder.")
        if path.is_dir():
            sources = open_sources(path)()
            notes = [sources.read(Note(path=note).wanted()) for note in list_notes(path)]
            return [Note(path=(PurePosixPath(name) / note.id).as_posix(), text=note.text) for note in notes]
        described = describe_file(name)
        read = open_sources(path.parent)().read(type(described)(path=path.name).wanted())
        if isinstance(described, Picture):
            image = read.images[0]
            return [Picture(data=image.data, media_type=image.media_type, path=name)]
        return [type(described)(path=name, text=read.text)]

    def _read_text(self, name: str) -> str:
        if self._vault is not None:
            return open_sources(self._vault)().read(Code(path=self._inside(name)).wanted()).text
        if not Path(name).exists():
            raise SourceMissingError(f"There is no file {name}.", hint="Paths are relative to the current folder.")
        return open_sources(Path(name).parent)().read(Code(path=Path(name).name).wanted()).text
