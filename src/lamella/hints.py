"""Hints: the next step to suggest in an error message, worded for the interface in use.

A hint is a text that is true in every interface, or a function of ``Hints``. The function gets the wording of steps
that differ by interface, such as a call, a command or an HTTP request. The wording for Python is here, because the
author of a program reads an error that is not caught. The command line and the server have their own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Protocol


class Hints(Protocol):
    """How a user of one interface performs a step: a call, a command or an option, as part of a sentence."""

    def option_hint(self, name: str) -> str:
        """Return how a named option, such as a model, is given."""
        ...

    def create_store_hint(self) -> str:
        """Return the step that creates a store."""
        ...

    def verify_store_hint(self) -> str:
        """Return the step that checks a store for problems."""
        ...

    def repair_store_hint(self) -> str:
        """Return the step that rebuilds the damaged data of a store that can be derived."""
        ...

    def list_chats_hint(self) -> str:
        """Return the step that lists the conversations of a store."""
        ...

    def show_chat_hint(self, name: str, head: str | None = None) -> str:
        """Return the step that shows the messages and attachments of a conversation.

        Without ``head`` it shows the active branch.
        """
        ...

    def switch_branch_hint(self, name: str, head: str) -> str:
        """Return the step that continues from another branch of a conversation."""
        ...

    def trust_hint(self, field: str, name: str, location: str) -> str:
        """Return how the user allows a location that a project file or a conversation names, as part of a sentence."""
        ...

    def write_conflict_hint(self) -> str:
        """Return a sentence that says what to do after another process wrote to the conversation."""
        ...

    def send_with_limit_hint(self, *, max_tokens: int) -> str:
        """Return the step that sends an unanswered question again, with a limit on the answer's tokens."""
        ...

    def finish_calls_hint(self, tools: Sequence[str]) -> str:
        """Return a sentence that says how calls of these tools get their results."""
        ...

    def start_workflow_hint(self) -> str:
        """Return the step that starts a workflow."""
        ...

    def replay_transcript_hint(self) -> str:
        """Return the step that shows a transcript as it would be sent."""
        ...


Hint = str | Callable[[Hints], str]


class PythonHints:
    """Wording for Python: ``engine`` is the result of ``lamella.open``, ``chat`` that of ``engine.chat``."""

    def option_hint(self, name: str) -> str:
        return f"{name}=…"

    def create_store_hint(self) -> str:
        return "`lamella.open(url)`"

    def verify_store_hint(self) -> str:
        return "`engine.verify()`"

    def repair_store_hint(self) -> str:
        return "`engine.repair()`"

    def list_chats_hint(self) -> str:
        return "`engine.chats()`"

    def show_chat_hint(self, name: str, head: str | None = None) -> str:
        return "`chat.turns()`" if head is None else f'`chat.turns("{head}")`'

    def switch_branch_hint(self, name: str, head: str) -> str:
        return f'`chat.switch("{head}")`'

    def trust_hint(self, field: str, name: str, location: str) -> str:
        return f"name it in your program: {field}={name!r}"

    def write_conflict_hint(self) -> str:
        return "`chat.reload()` loads it again; then repeat what you did."

    def send_with_limit_hint(self, *, max_tokens: int) -> str:
        return f"`chat.send(chat.regenerate(), max_tokens={max_tokens})`"

    def finish_calls_hint(self, tools: Sequence[str]) -> str:
        return f"Give them with {format_python_resume(tools)}, or hand back what they gave: `chat.send(chat.submit_tool_outputs([…]))`."

    def start_workflow_hint(self) -> str:
        return '`chat.start_workflow("paper")`'

    def replay_transcript_hint(self) -> str:
        return "docs/how-to/test-your-app.md"


PYTHON_HINTS = PythonHints()


def format_python_resume(tools: Sequence[str]) -> str:
    """Return the call that continues a question in the Python program that has these tools."""
    return f"`chat.resume(tools=[{', '.join(tools) or '…'}])`"


def format_pending_python_tools(tools: Sequence[str]) -> str:
    """Return the line about a question that waits for tools that only a Python program has."""
    are = "is a tool" if len(tools) == 1 else "are tools"
    resume = format_python_resume(tools)
    return f"{', '.join(tools)} {are} of a Python program: {resume} continues it; a new message abandons it."


# Python represents bytes of a path that are not UTF-8 as characters in this range (surrogateescape).
_FIRST_SURROGATE, _LAST_SURROGATE, _SURROGATE_OFFSET = 0xDC80, 0xDCFF, 0xDC00


# Lamella commands as text for the user, quoted so that they can be pasted into a shell.


def format_command_line(command: str, *names: str, **options: object) -> str:
    """Return a command line with its arguments and those options that have a value; True makes a flag.

    A name that starts with a dash would be read as an option. Such names come last, after `--`.
    """
    words, given = ["lamella", *command.split()], list(_iter_option_words(options))
    dashed = any(name.startswith("-") for name in names)
    parts = [*words, *given, "--", *names] if dashed else [*words, *names, *given]
    return " ".join(map(quote_for_shell, parts))


def quote_for_shell(word: str) -> str:
    """Quote a word for a shell, on one line, without control characters and backticks.

    Control characters could act on the terminal. A backtick would end a command that is printed between backticks.
    """
    if word.isprintable() and "`" not in word:
        return quote(word)
    # $'...' is not POSIX, but bash, zsh and other interactive shells read it.
    return "$'" + "".join(map(_escape_character, word)) + "'"


def _iter_option_words(options: Mapping[str, object]) -> Iterator[str]:
    for name, value in options.items():
        if value is True:
            yield f"--{name}"
        elif value is not None and str(value).startswith("-"):
            yield f"--{name}={value}"
        elif value is not None:
            yield from (f"--{name}", str(value))


def _escape_character(letter: str) -> str:
    code = ord(letter)
    if letter in "\\'":
        return f"\\{letter}"
    if letter.isprintable() and letter != "`":
        return letter
    if _FIRST_SURROGATE <= code <= _LAST_SURROGATE:
        return f"\\x{code - _SURROGATE_OFFSET:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
