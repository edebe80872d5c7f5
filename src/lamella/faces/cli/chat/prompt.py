"""A line editor for people at a terminal: history, several lines, pasting, completion, a status line below."""

import os
from asyncio import Runner
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from platformdirs import user_state_path
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from lamella.adapters.files.privacy import close_file, make_own_folder
from lamella.faces.cli.chat.input import GOES_ON, PROMPT, Arguments, complete
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import count_columns, wrap_line
from lamella.wiring import NamedFiles

# Seconds between two looks at what goes on meanwhile.
_REFRESH = 0.5


class _PromptInterrupt(Exception):  # noqa: N818 - a key, not a failure
    """Ctrl-C at the prompt. A loop that sees a KeyboardInterrupt would think that it is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptStatus:
    """What stands around the prompt: before it what is attached, below it where the conversation stands.

    Both are asked once a message; what goes on ``meanwhile`` is asked all the time.
    """

    attached: Callable[[], str]
    standing: Callable[[], str]
    meanwhile: Callable[[], str]


class PromptInput:
    """Enter sends; Alt-Enter, or a backslash before Enter, begins another line.

    It waits in the loop of ``runner``, where other things go on meanwhile.
    """

    def __init__(
        self, runner: Runner, *, commands: Mapping[str, Arguments], files: NamedFiles, told: PromptStatus
    ) -> None:
        self._runner = runner
        self._told = told
        self._attached = self._standing = ""
        self._session: PromptSession[str] = PromptSession(
            lambda: f"{self._attached}{PROMPT}",
            multiline=True,
            history=_open_history(),
            completer=_Completer(commands, files),
            complete_while_typing=True,
            key_bindings=_make_keys(),
            bottom_toolbar=lambda: self._tell_below(told.meanwhile()),
            refresh_interval=_REFRESH,
            prompt_continuation="  ",
            interrupt_exception=_PromptInterrupt,
        )

    def _tell_below(self, meanwhile: str) -> str:
        """What stands below the prompt, in as many lines as it takes: an editor would cut off what does not fit."""
        # One column is the space before each line, one stays free.
        lines = wrap_line(f"{self._standing}{meanwhile}", count_columns() - 2).split("\n")
        return "\n".join(f" {line}" for line in lines)

    def read(self) -> str | None:
        """The next message, none on Ctrl-D."""
        self._attached, self._standing = self._told.attached(), self._told.standing()
        try:
            return self._runner.run(self._session.prompt_async())
        except EOFError:
            return None
        except _PromptInterrupt as stopped:
            raise KeyboardInterrupt from stopped


class _Completer(Completer):
    def __init__(self, commands: Mapping[str, Arguments], files: NamedFiles) -> None:
        self._commands = commands
        self._files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        found = complete(document.text_before_cursor, commands=self._commands, files=self._files)
        return [
            Completion(text, start_position=-replaced, display=show_line(text), display_meta=show_line(said))
            for text, replaced, said in found
        ]


def _make_keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        menu = buffer.complete_state
        if menu is not None and menu.current_completion is not None:
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith(GOES_ON):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _open_history() -> History:
    """What was typed before, in a file of the user's own; on a disk that takes none, for this sitting only."""
    file = user_state_path("lamella", appauthor=False) / "history"
    with suppress(OSError):
        make_own_folder(file.parent)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        close_file(file)
        return FileHistory(str(file))
    return InMemoryHistory()
