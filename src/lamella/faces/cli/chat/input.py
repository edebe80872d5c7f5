"""What is typed: messages from a pipe, and what half a word may become."""

import re
import sys
from collections.abc import Callable, Mapping
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


# What the argument of a command may be, by what was typed of it; each with what a menu says of it.
Arguments = Callable[[str], Mapping[str, str]]


def complete(before: str, *, commands: Mapping[str, Arguments], files: NamedFiles) -> list[tuple[str, int, str]]:
    """What the text before the cursor may become: each with how many characters it replaces, and what is said of it."""
    word, space, begun = before.partition(" ")
    if before.startswith("/") and not space and "\n" not in before:
        return [(name, len(before), "") for name in commands if name.startswith(before)]
    known = _find_known(commands[word], begun) if word in commands else {}
    if known:
        return [(text, len(begun), said) for text, said in known.items()]
    mention = _MENTIONING.search(before)
    if mention is None:
        return []
    quote, begun = mention.groups()
    found = _find_known(lambda typed: list_paths(files, typed), begun)
    return [(f'"{path}"' if quote or " " in path else path, len(quote) + len(begun), "") for path in found]


def list_paths(files: NamedFiles, begun: str) -> dict[str, str]:
    """Paths that a word may become."""
    return dict.fromkeys(files.complete(begun), "")


def choose_begun(known: Mapping[str, str], begun: str) -> dict[str, str]:
    """What begins as it was typed, by itself or, whatever the case, by what is said of it."""
    typed = begun.casefold()
    return {
        text: said
        for text, said in known.items()
        if text.startswith(begun) or (typed and said.casefold().startswith(typed))
    }


def choose_further(deed: str, known: Mapping[str, str], begun: str) -> dict[str, str]:
    """The same behind a word that stands before it."""
    return {f"{deed} {one}": said for one, said in choose_begun(known, begun.strip()).items()}


def _find_known(list_known: Arguments, begun: str) -> Mapping[str, str]:
    """What is known to be meant; a menu is no place for errors."""
    try:
        return list_known(begun)
    except Exception:  # noqa: BLE001 - a folder or a store that cannot be read completes to nothing
        return {}
