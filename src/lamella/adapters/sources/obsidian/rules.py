"""Rules on what of a vault is left out: ``.lamellaignore`` for good, what Obsidian excludes from lists only."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.adapters.files.reading import read_head

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

RULES_FILE = ".lamellaignore"
# What Obsidian keeps of a vault.
APP_SETTINGS = ".obsidian/app.json"
RULES_FILES = (RULES_FILE, APP_SETTINGS)
_LARGEST = 1_000_000
_MOST_RULES = 1_000
_LONGEST_RULE = 200
# Each star may try every place in a name: with three, one rule takes ten milliseconds a path (measured 2026-11-17).
_MOST_STARS = 2
# What repeats something that repeats already takes longer than anybody waits.
_SLOW = re.compile(r"\)[*+{]|\\\d")
_REPEATS = re.compile(r"(?<!\\)[*+{]")


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreRules:
    """What is left out: ``spec`` is never read, ``excluded`` is in no list, ``told`` are the rules not followed."""

    spec: "GitIgnoreSpec | None" = None
    excluded: tuple[Callable[[str], bool], ...] = ()
    told: tuple[str, ...] = ()

    def hides(self, path: str) -> bool:
        """Whether a file, or a folder whose path ends in a slash, is never read."""
        return self.spec is not None and self.spec.match_file(path)

    def unlists(self, path: str) -> bool:
        """Whether it is in no list, and found by its path only."""
        return self.hides(path) or any(excludes(path) for excludes in self.excluded)


def read_rules(root: Path) -> IgnoreRules:
    """The rules of a vault; a file of rules that cannot be read is told."""
    told: list[str] = []
    lines = [line for line in _read(root / RULES_FILE, told).splitlines() if line.strip() and not line.startswith("#")]
    excluded = [_make_filter(one, told) for one in _read_filters(root / APP_SETTINGS, told)]
    return IgnoreRules(
        spec=_make_spec(lines, told) if lines else None,
        excluded=tuple(one for one in excluded if one is not None),
        told=tuple(told),
    )


def _read(file: Path, told: list[str]) -> str:
    try:
        return read_head(file, limit=_LARGEST).decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        told.append(f"The rules in {file.name} are not followed: it cannot be read ({_reason(error)}).")
        return ""


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return str(error.strerror or error) if isinstance(error, OSError) else "it is not UTF-8"


def _make_spec(lines: list[str], told: list[str]) -> "GitIgnoreSpec":
    # Loaded by those who have rules: it takes longer than a walk.
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore import GitIgnorePatternError

    usable = []
    for line in lines[:_MOST_RULES]:
        try:
            if _is_slow(line):
                raise GitIgnorePatternError
            GitIgnoreSpec.from_lines([line])
        except GitIgnorePatternError:
            told.append(f"A rule in {RULES_FILE} is not followed: {line[:60]}")
        else:
            usable.append(line)
    return GitIgnoreSpec.from_lines(usable)


def _is_slow(line: str) -> bool:
    names = line.split("/")
    most = max(name.replace("**", "").count("*") for name in names)
    return len(line) > _LONGEST_RULE or most > _MOST_STARS or line.count("**") > _MOST_STARS


def _read_filters(file: Path, told: list[str]) -> Iterable[str]:
    text = _read(file, told)
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        told.append("What Obsidian excludes is not followed: .obsidian/app.json is not JSON.")
        return []
    filters = found.get("userIgnoreFilters") if isinstance(found, dict) else None
    return [one for one in filters if isinstance(one, str) and one] if isinstance(filters, list) else []


def _make_filter(written: str, told: list[str]) -> Callable[[str], bool] | None:
    """A path that excludes what begins with it, or between slashes an expression that excludes what it finds."""
    if not (len(written) > 1 and written.startswith("/") and written.endswith("/")):
        return lambda path: path.startswith(written)
    inner = written[1:-1]
    try:
        if len(inner) > _LONGEST_RULE or _SLOW.search(inner) or len(_REPEATS.findall(inner)) > _MOST_STARS:
            raise re.error("too slow")
        pattern = re.compile(inner)
    except (re.error, RecursionError, OverflowError):
        told.append(f"What Obsidian excludes by {written[:60]} is not left out: the expression cannot be followed.")
        return None
    return lambda path: pattern.search(path) is not None
