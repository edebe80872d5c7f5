"""Read messages from a pipe or a plain terminal, and complete a partly typed word."""

import re
import sys
from collections.abc import Callable, Mapping
from typing import Protocol

from lamella.cli.output import print_text, write_unwrapped
from lamella.errors import SourceTooLargeError
from lamella.wiring import AttachmentResolver

PROMPT = "> "
CONTINUATION = "\\"
_PARTIAL_LINK = re.compile(r"\[\[([^\[\]\n|]*)$")
_PARTIAL_TAG = re.compile(r"(?:^|(?<=\s))@#([\w/-]*)$")
_PARTIAL_MENTION = re.compile(r'(?:^|(?<=\s))@("?)([^\s"]*)$')
# The same limit as for a note.
_MAX_LINE_BYTES = 50_000_000


class MessageInput(Protocol):
    """A source of messages."""

    def read(self) -> str | None:
        """Return the next message, or None at the end of input."""
        ...


class PipedInput:
    """Reads one message per line from a pipe; a backslash at the end continues it on the next line.

    Each message is echoed to stderr, so that it appears beside its answer.
    """

    def read(self) -> str | None:
        text = _read_message()
        if text is not None:
            print_text(f"{PROMPT}{text}", err=True)
        return text


class LineInput:
    """Reads messages at a dumb terminal, which echoes the input itself and offers no completion."""

    def __init__(self, get_attachments_text: Callable[[], str]) -> None:
        self._get_attachments_text = get_attachments_text

    def read(self) -> str | None:
        write_unwrapped(f"{self._get_attachments_text()}{PROMPT}")
        return _read_message()


def _read_message() -> str | None:
    lines: list[str] = []
    while True:
        line = _read_line()
        if not line and not lines:
            return None
        bare = line.rstrip("\n")
        is_continued = bare.endswith(CONTINUATION) and line != bare
        lines.append(bare.removesuffix(CONTINUATION) if is_continued else bare)
        if not is_continued:
            return "\n".join(lines)


def _read_line() -> str:
    """Return the next line, decoded as UTF-8 in any locale.

    Invalid bytes become surrogates, which are rejected when the message is sent.
    """
    if sys.stdin is None:
        return ""
    line = sys.stdin.buffer.readline(_MAX_LINE_BYTES + 1)
    if len(line) > _MAX_LINE_BYTES:
        raise SourceTooLargeError(
            f"A line on stdin has more than {_MAX_LINE_BYTES:,} bytes.",
            hint="Attach a file instead of piping its text.",
        )
    return line.decode(errors="surrogateescape")


# Returns the completions of a command's argument for the text typed so far, each with a description for the menu.
ArgumentCompleter = Callable[[str], Mapping[str, str]]


def complete_input(
    text_before_cursor: str, *, commands: Mapping[str, ArgumentCompleter], files: AttachmentResolver
) -> list[tuple[str, int, str]]:
    """Return completions for the text before the cursor.

    Each has its text, the number of characters that it replaces, and a description.
    """
    word, space, begun = text_before_cursor.partition(" ")
    if text_before_cursor.startswith("/") and not space and "\n" not in text_before_cursor:
        return [(name, len(text_before_cursor), "") for name in commands if name.startswith(text_before_cursor)]
    known = _complete_or_empty(commands[word], begun) if word in commands else {}
    if known:
        return [(text, len(begun), description) for text, description in known.items()]
    if link := _PARTIAL_LINK.search(text_before_cursor):
        names = _complete_or_empty(lambda typed: dict.fromkeys(files.complete_note_name(typed), ""), link[1])
        return [(name if name.endswith("/") else f"{name}]]", len(link[1]), "") for name in names]
    if tag := _PARTIAL_TAG.search(text_before_cursor):
        names = _complete_or_empty(lambda typed: dict.fromkeys(files.complete_tag(typed), ""), tag[1])
        return [(name, len(tag[1]), "") for name in names]
    mention = _PARTIAL_MENTION.search(text_before_cursor)
    if mention is None:
        return []
    quote, begun = mention.groups()
    found = _complete_or_empty(lambda typed: complete_path(files, typed), begun)
    return [(f'"{path}"' if quote or " " in path else path, len(quote) + len(begun), "") for path in found]


def complete_path(files: AttachmentResolver, prefix: str) -> dict[str, str]:
    """Return the paths that complete a partly typed word."""
    return dict.fromkeys(files.complete_path(prefix), "")


def match_name_or_description(candidates: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the entries that start with the typed text, or whose description does, ignoring case."""
    typed = prefix.casefold()
    return {
        text: description
        for text, description in candidates.items()
        if text.startswith(prefix) or (typed and description.casefold().startswith(typed))
    }


def match_prefix_after_word(word: str, candidates: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the same matches, each after the word ``word`` that was typed before them."""
    return {
        f"{word} {one}": description
        for one, description in match_name_or_description(candidates, prefix.strip()).items()
    }


def _complete_or_empty(completer: ArgumentCompleter, prefix: str) -> Mapping[str, str]:
    """Return the completions; errors give none, because a menu cannot show them."""
    try:
        return completer(prefix)
    except Exception:  # noqa: BLE001 - an unreadable folder or store gives no completions
        return {}
