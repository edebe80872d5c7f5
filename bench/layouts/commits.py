"""Commits to talk about: those of this project, oldest first, each with the files that it touched, before and after."""

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache
from pathlib import Path
from random import Random

_HERE = Path(__file__).resolve().parents[2]
_SOURCE = (".py", ".toml", ".sql", ".md", ".css", ".js", ".ts")
_MOST_TOUCHED = 8
_SHORTEST, _LONGEST = 2_000, 30_000
# Counted from the first, so that the commits of a seed stay what they are when others come.
_FIRST, _TAKEN = 20, 300
_PART = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What a commit says, and by path what it touched: as it was before, and as it is after."""

    subject: str
    touched: dict[str, tuple[str, str]]


@cache
def load_commits() -> tuple[Commit, ...]:
    """Commits that change a few files of some length; none where the checkout has no history."""
    try:
        log = _git("log", "--no-merges", "--reverse", "--no-renames", "--name-status", "--format=%x01%H%n%s")
    except (OSError, subprocess.CalledProcessError):
        return ()
    entries = [one.split("\n") for one in log.split("\x01")[1:]]
    listed = [(name, subject, _find_changed(lines)) for name, subject, *lines in entries]
    some = [one for one in listed if one[2]][_FIRST:]
    names = [f"{name}{side}:{path}" for name, _, paths in some for path in paths for side in ("^", "")]
    texts = dict(zip(names, _read_objects(names), strict=True))
    made: list[Commit] = []
    for name, subject, paths in some:
        both = {path: (texts[f"{name}^:{path}"], texts[f"{name}:{path}"]) for path in paths}
        made.append(Commit(subject=subject, touched={path: two for path, two in both.items() if _is_small(*two)}))
    # Whoever sits down works at one part of a project: commits of a part follow one another, in their order.
    return tuple(sorted([one for one in made if one.touched][:_TAKEN], key=_find_part))


def _find_part(commit: Commit) -> tuple[str, ...]:
    return tuple(min(commit.touched).split("/")[:-1][:_PART])


def _is_small(before: str, after: str) -> bool:
    """Whether a change keeps most of a file that could be shown to somebody."""
    return _SHORTEST <= len(before) <= _LONGEST and len(show_change("", before, after)) * 10 <= len(after)


def _find_changed(lines: list[str]) -> list[str]:
    """The files of source that were there and are changed, where a commit changes a few."""
    pairs = [line.split("\t") for line in lines if line]
    changed = [path for how, path in pairs if how == "M" and path.endswith(_SOURCE)]
    return changed if len(changed) <= _MOST_TOUCHED else []


def _read_objects(names: list[str]) -> Iterator[str]:
    given = subprocess.run(
        ["git", "cat-file", "--batch"], cwd=_HERE, input="\n".join(names).encode(), capture_output=True, check=True
    ).stdout
    at = 0
    for _ in names:
        end = given.index(b"\n", at)
        size = int(given[at:end].rsplit(b" ", 1)[1])
        yield given[end + 1 : end + 1 + size].decode("utf-8", "replace")
        at = end + size + 2


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=_HERE, capture_output=True, text=True, check=True).stdout


def make_commits(dice: Random, notes: Mapping[str, tuple[str, ...]], turns: int) -> tuple[Commit, ...]:
    """Changes of notes that have versions, one to four at a time, each among a dozen that are worked on."""
    versions = {path: _keep_small(found) for path, found in notes.items() if len(found) > 1}
    edited = list(versions)
    dice.shuffle(edited)
    at = dict.fromkeys(edited, 0)
    made: list[Commit] = []
    for _ in range(turns):
        open_files = [path for path in edited if at[path] < len(versions[path]) - 1][:12]
        touched = dice.sample(open_files, k=min(len(open_files), dice.choices((1, 2, 3, 4), (55, 25, 13, 7))[0]))
        made.append(
            Commit(subject="The next change", touched={path: _step(versions[path], at[path]) for path in touched})
        )
        for path in touched:
            at[path] += 1
    return tuple(made)


def _step(versions: tuple[str, ...], at: int) -> tuple[str, str]:
    return versions[at], versions[at + 1]


def _keep_small(versions: tuple[str, ...]) -> tuple[str, ...]:
    """The versions of which each changes a part of the one before, as commits do, and none rewrites it."""
    kept = [versions[0]]
    for version in versions[1:]:
        if _is_small(kept[-1], version):
            kept.append(version)
    return tuple(kept)


def show_change(path: str, old: str, new: str) -> str:
    """A change as a difference, as long as a model would write it."""
    return "\n".join(unified_diff(old.split("\n"), new.split("\n"), path, path, lineterm=""))[:12_000]
