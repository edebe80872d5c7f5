"""Walking: the files of a folder that git does not know, by the same rules that git would follow there."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.adapters.files.reading import read_head

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORED = "git's rules ignore it"
_RULES = ".gitignore"
_LARGEST = 1_000_000
# Each star of a name may try every place in another: with more, one rule takes longer than a walk.
_MOST_STARS = 3
_DEEPEST = 100
# Rules, and how many characters of a path stand before the folder that has them.
_Rules = tuple[int, "GitIgnoreSpec"]


class CodeWalk:
    """One walk, and what it left out: a path and why. Links are not followed, so that it has an end."""

    def __init__(self, root: Path) -> None:
        self._root = os.fsencode(root)
        self.left_out: list[tuple[bytes, str]] = []
        self.told: list[str] = []

    def list_paths(self) -> list[bytes]:
        """Every file that no rule ignores, sorted."""
        return sorted(self._go(b"", []))

    def _go(self, folder: bytes, rules: list[_Rules]) -> Iterator[bytes]:
        if folder.count(b"/") > _DEEPEST:
            self.left_out.append((folder, f"it is more than {_DEEPEST} folders deep"))
            return
        try:
            with os.scandir(os.path.join(self._root, folder) if folder else self._root) as found:  # noqa: PTH118
                entries = sorted(found, key=lambda one: one.name)
        except OSError as error:
            self.left_out.append((folder, f"it cannot be read ({error.strerror})"))
            return
        own = read_rules(Path(os.fsdecode(self._root)) / os.fsdecode(folder) / _RULES, self.told)
        here = rules if own is None else [*rules, (len(folder), own)]
        for entry in entries:
            yield from self._take(entry, folder, here)

    def _take(self, entry: "os.DirEntry[bytes]", folder: bytes, rules: list[_Rules]) -> Iterator[bytes]:
        path = folder + entry.name
        if entry.name == b".git":
            return
        is_folder = entry.is_dir(follow_symlinks=False)
        shown = os.fsdecode(path).encode("utf-8", "replace").decode()
        if is_ignored(f"{shown}/" if is_folder else shown, rules):
            self.left_out.append((path + b"/" if is_folder else path, IGNORED))
        elif is_folder:
            yield from self._go(path + b"/", rules)
        else:
            yield path


def is_ignored(path: str, rules: list[_Rules]) -> bool:
    """Whether the last rule that speaks of a path ignores it: those of deeper folders come last."""
    for start, spec in reversed(rules):
        found = spec.check_file(path[start:]).include
        if found is not None:
            return found
    return False


def read_rules(file: Path, told: list[str]) -> "GitIgnoreSpec | None":
    """The rules in a file; none where there is no such file. What cannot be followed is told."""
    try:
        lines = read_head(file, limit=_LARGEST).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    # Loaded by those who have rules: it takes longer than a small walk.
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore import GitIgnorePatternError

    usable = []
    for line in lines:
        try:
            if max(name.replace("**", "").count("*") for name in line.split("/")) > _MOST_STARS:
                raise GitIgnorePatternError
            GitIgnoreSpec.from_lines([line])
        except GitIgnorePatternError:
            told.append(f"A rule in {file.name} is not followed: {line[:60]}")
        else:
            usable.append(line)
    return GitIgnoreSpec.from_lines(usable)
