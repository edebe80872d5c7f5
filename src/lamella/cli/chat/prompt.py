"""The line editor at a terminal: history, multiple lines, pasting, completion and a status line."""

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

from lamella.cli.chat.input import CONTINUATION, PROMPT, ArgumentCompleter, complete_input
from lamella.cli.interrupts import ignore_interrupts
from lamella.cli.output import escape_to_short_line, get_terminal_width, wrap_line
from lamella.files import make_private_folder, remove_access_of_other_users
from lamella.wiring import AttachmentResolver

# Seconds between two updates of the status line.
_REFRESH_SECONDS = 0.5


class _PromptInterrupt(Exception):  # noqa: N818 - control flow, not an error
    """Ctrl-C at the prompt.

    It is no ``KeyboardInterrupt``, because the event loop would treat that as a request to stop the loop itself.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class InputLineStatus:
    """The texts around the prompt: attachments before it, the conversation's status below it.

    Both are computed once per message. ``get_background_status`` is computed at every update.
    """

    get_attachments: Callable[[], str]
    get_status: Callable[[], str]
    get_background_status: Callable[[], str]


class PromptInput:
    """Reads messages: Enter sends; Alt-Enter, or a backslash before Enter, starts a new line.

    It waits in the event loop of ``runner``, so that background tasks continue meanwhile.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        commands: Mapping[str, ArgumentCompleter],
        files: AttachmentResolver,
        status: InputLineStatus,
    ) -> None:
        self._runner = runner
        self._status = status
        self._attachments_text = self._status_text = ""
        self._session: PromptSession[str] = PromptSession(
            lambda: f"{self._attachments_text}{PROMPT}",
            multiline=True,
            history=_open_history(),
            completer=_Completer(commands, files),
            complete_while_typing=True,
            key_bindings=_make_key_bindings(),
            bottom_toolbar=lambda: self._format_bottom_toolbar(status.get_background_status()),
            refresh_interval=_REFRESH_SECONDS,
            prompt_continuation="  ",
            interrupt_exception=_PromptInterrupt,
        )

    def _format_bottom_toolbar(self, background_status: str) -> str:
        """Return the status below the prompt, wrapped: prompt_toolkit would cut off what does not fit."""
        # Two columns less: one for the space before each line, one stays free.
        lines = wrap_line(f"{self._status_text}{background_status}", get_terminal_width() - 2).split("\n")
        return "\n".join(f" {line}" for line in lines)

    def read(self) -> str | None:
        """Return the next message, or None on Ctrl-D."""
        self._attachments_text, self._status_text = self._status.get_attachments(), self._status.get_status()
        try:
            # The editor reads Ctrl-C as a key. As a signal, it would come while the editor starts or ends.
            with ignore_interrupts():
                return self._runner.run(self._session.prompt_async())
        except EOFError:
            return None
        except _PromptInterrupt as stopped:
            raise KeyboardInterrupt from stopped


class _Completer(Completer):
    def __init__(self, commands: Mapping[str, ArgumentCompleter], files: AttachmentResolver) -> None:
        self._commands = commands
        self._files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        found = complete_input(document.text_before_cursor, commands=self._commands, files=self._files)
        return [
            Completion(
                text,
                start_position=-replaced,
                display=escape_to_short_line(text),
                display_meta=escape_to_short_line(description),
            )
            for text, replaced, description in found
        ]


def _make_key_bindings() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        menu = buffer.complete_state
        if menu is not None and menu.current_completion is not None:
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith(CONTINUATION):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _open_history() -> History:
    """Return the history of typed messages in a private file, or in memory if no file can be written."""
    file = user_state_path("lamella", appauthor=False) / "history"
    with suppress(OSError):
        make_private_folder(file.parent)
        # Create the file with mode 0600 first: prompt_toolkit would create it readable for other users.
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        remove_access_of_other_users(file)
        return FileHistory(str(file))
    return InMemoryHistory()
