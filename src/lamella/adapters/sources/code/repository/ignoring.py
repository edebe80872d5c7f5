"""Ignoring: git's rules for what is left out of a folder, one line each, the last that speaks of a path decides.

The package that reads the rules of a vault lets a rule about a folder speak of all in it, which undoes what rules say
together with `!*/`. A walk asks of every folder on its way, so that here a rule speaks of one path alone, as git's do.
"""

import re
from pathlib import Path
from typing import NamedTuple

from lamella.adapters.files.reading import read_head

_LARGEST = 1_000_000
# Each star of a name may try every place in another: with more, one rule takes longer than a walk.
_MOST_STARS = 3
_SPECIAL = re.compile(r"\\(.)|(\*+)|(\?)|(\[[!^]?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\])|(.)", re.DOTALL)
_BLANKS = re.compile(r"(?<!\\) +$")
_NAMED = {"[:alpha:]": "a-zA-Z", "[:digit:]": "0-9", "[:alnum:]": "a-zA-Z0-9", "[:upper:]": "A-Z", "[:lower:]": "a-z"}


class IgnoreRule(NamedTuple):
    """A rule: what it speaks of, whether it speaks of folders alone, and whether it brings back."""

    pattern: re.Pattern[str]
    by_name: bool
    folders: bool
    back: bool


class IgnoreFile(NamedTuple):
    """The rules of one folder, and how many characters of a path stand before it."""

    start: int
    rules: tuple[IgnoreRule, ...]

    def decide(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether a path is ignored; none where no rule speaks of it."""
        inner = path[self.start :]
        name = inner.rpartition("/")[2]
        for rule in reversed(self.rules):
            if (is_folder or not rule.folders) and rule.pattern.fullmatch(name if rule.by_name else inner):
                return not rule.back
        return None


def read_ignore_file(file: Path, *, start: int, told: list[str]) -> IgnoreFile | None:
    """The rules in a file; none where there is no such file. What cannot be followed is told."""
    try:
        lines = read_head(file, limit=_LARGEST).decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    except OSError:
        return None
    rules = []
    for line in lines:
        try:
            rules.append(parse_rule(line.removesuffix("\r")))
        except (re.error, OverflowError, RecursionError):
            told.append(f"A rule in {file.name} is not followed: {line[:60]}")
    return IgnoreFile(start, tuple(rule for rule in rules if rule is not None))


def parse_rule(line: str) -> IgnoreRule | None:
    """A rule; none for a comment or an empty line, and ``re.error`` for one that is not followed."""
    line = _BLANKS.sub("", line)
    if not line or line.startswith("#"):
        return None
    back = line.startswith("!")
    line = line[1:] if back else line
    folders = line.endswith("/")
    line = line.removesuffix("/")
    if not line:
        return None
    if max(name.replace("**", "").count("*") for name in line.split("/")) > _MOST_STARS:
        raise re.error("too many stars")
    by_name = "/" not in line
    return IgnoreRule(re.compile(_translate(line.removeprefix("/"))), by_name, folders, back)


def _translate(line: str) -> str:
    """A rule as an expression. Two stars stand for folders only where slashes set them apart."""
    parts = line.split("/")
    written: list[str] = []
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if part == "**" and len(parts) > 1:
            written.append(".+" if last else "(?:.*/)?")
        else:
            written.append(_translate_name(part) + ("" if last else "/"))
    return "".join(written)


def _translate_name(name: str) -> str:
    written: list[str] = []
    for escaped, stars, mark, among, plain in _SPECIAL.findall(name):
        if stars:
            written.append("[^/]*")
        elif mark:
            written.append("[^/]")
        elif among:
            written.append(_translate_class(among))
        else:
            written.append(re.escape(escaped or plain))
    return "".join(written)


def _translate_class(among: str) -> str:
    inner = among[1:-1]
    refuses = inner[:1] in ("!", "^")
    inner = inner[1:] if refuses else inner
    for name, letters in _NAMED.items():
        inner = inner.replace(name, letters)
    shown = re.sub(r"(?<!\\)\[", r"\\[", inner)
    shown = shown.replace("]", r"\]") if shown.startswith("]") else shown
    return f"(?!/)[{'^' if refuses else ''}{shown}]"
