"""Walking: the files of a folder that git does not know, by the same rules that git would follow there."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from lamella.adapters.sources.code.repository.ignoring import IgnoreFile, read_ignore_file

IGNORED = "git's rules ignore it"
_RULES = ".gitignore"
_DEEPEST = 100


class CodeWalk:
    """One walk, and what it left out: a path and why. Links are not followed, so that it has an end."""

    def __init__(self, root: Path) -> None:
        self._root = os.fsencode(root)
        self.left_out: list[tuple[bytes, str]] = []
        self.told: list[str] = []

    def list_paths(self) -> list[bytes]:
        """Every file that no rule ignores, sorted."""
        return sorted(self._go(b"", []))

    def _go(self, folder: bytes, rules: list[IgnoreFile]) -> Iterator[bytes]:
        if folder.count(b"/") > _DEEPEST:
            self.left_out.append((folder, f"it is more than {_DEEPEST} folders deep"))
            return
        try:
            with os.scandir(os.path.join(self._root, folder) if folder else self._root) as found:  # noqa: PTH118
                entries = sorted(found, key=lambda one: one.name)
        except OSError as error:
            self.left_out.append((folder, f"it cannot be read ({error.strerror})"))
            return
        place = Path(os.fsdecode(self._root)) / os.fsdecode(folder) / _RULES
        own = read_ignore_file(place, start=len(_show(folder)), told=self.told)
        here = rules if own is None else [*rules, own]
        for entry in entries:
            yield from self._take(entry, folder, here)

    def _take(self, entry: "os.DirEntry[bytes]", folder: bytes, rules: list[IgnoreFile]) -> Iterator[bytes]:
        path = folder + entry.name
        if entry.name == b".git":
            return
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_ignored(_show(path), rules, is_folder=is_folder):
            self.left_out.append((path + b"/" if is_folder else path, IGNORED))
        elif is_folder:
            yield from self._go(path + b"/", rules)
        else:
            yield path


def is_ignored(path: str, rules: Sequence[IgnoreFile], *, is_folder: bool) -> bool:
    """Whether the last rule that speaks of a path ignores it: those of deeper folders come last."""
    decided = (one.decide(path, is_folder=is_folder) for one in reversed(rules))
    return next((found for found in decided if found is not None), False)


def _show(path: bytes) -> str:
    return path.decode("utf-8", "replace")
