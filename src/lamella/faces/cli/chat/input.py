"""What is typed: messages from a pipe, and what half a word may become."""

import re
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from lamella.errors import SourceTooLargeError
from lamella.faces.cli.terminal.telling import tell, write_exactly
from lamella.wiring import NamedFiles

PROMPT = "> "
GOES_ON = "\\"
_MENTIONING = re.compile(r'(?:^|(?<=\s))@("?)([^\s"]*)$')
# As much as a note may have.
_LONGEST_LINE = 50_000_000


class Input(Protocol):
    """Where messages come from."""

    def read(self) -> str | None:
        """The next message, none when there are no more."""
        ...


class PipedInput:
    """A message per line; a backslash at its end goes on with the next. What is read is shown beside the answers."""

    def read(self) -> str | None:
        text = _read_message()
        if text is not None:
            tell(f"{PROMPT}{text}", err=True)
        return text


class LineInput:
    """The same at a terminal that knows nothing but text: it echoes what is typed itself, and nothing is completed."""

    def __init__(self, tell_attached: Callable[[], str]) -> None:
        self._tell_attached = tell_attached

    def read(self) -> str | None:
        write_exactly(f"{self._tell_attached()}{PROMPT}")
        return _read_message()


def _read_message() -> str | None:
    lines: list[str] = []
    while True:
        line = _read_line()
        if not line and not lines:
            return None
        bare = line.rstrip("\n")
        goes_on = bare.endswith(GOES_ON) and line != bare
        lines.append(bare.removesuffix(GOES_ON) if goes_on else bare)
        if not goes_on:
            return "\n".join(lines)


def _read_line() -> str:
    """The next line in UTF-8 whatever the locale says; bytes that are none are refused when they are sent."""
    if sys.stdin is None:
        return ""
    line = sys.stdin.buffer.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE:
        raise SourceTooLargeError(
            f"A line on stdin has more than {_LONGEST_LINE:,} bytes.", hint="Attach a file instead of piping its text."
        )
    return line.decode(errors="surrogateescape")


def complete(before: str, *, commands: Sequence[str], files: NamedFiles) -> list[tuple[str, int]]:
    """What the text before the cursor may become, each with how many characters of it are replaced."""
    if before.startswith("/") and not any(space in before for space in " \n"):
        return [(name, len(before)) for name in commands if name.startswith(before)]
    if before.startswith("/attach "):
        begun = before.removeprefix("/attach ")
        return [(path, len(begun)) for path in _find_paths(files, begun)]
    mention = _MENTIONING.search(before)
    if mention is None:
        return []
    quote, begun = mention.groups()
    found = _find_paths(files, begun)
    return [(f'"{path}"' if quote or " " in path else path, len(quote) + len(begun)) for path in found]


def _find_paths(files: NamedFiles, begun: str) -> list[str]:
    """Paths for a menu, which is no place for errors."""
    try:
        return files.complete(begun)
    except Exception:  # noqa: BLE001 - a folder that cannot be read completes to nothing
        return []
