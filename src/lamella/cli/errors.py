"""Print failures: a message and a hint on stderr, and JSON on stdout if it was requested."""

from collections.abc import Sequence
from contextlib import suppress

from lamella.cli.output import escape_to_short_line, print_json, print_text
from lamella.errors import BadInputError, LamellaError
from lamella.hints import Hints, format_command_line
from lamella.schemas.body import ErrorJson, error_to_json


def exit_code(error: LamellaError) -> int:
    """Return 2 for an error that the caller can fix, 1 for work that could not be done."""
    return 2 if isinstance(error, BadInputError) else 1


def failure_to_json(error: LamellaError, hints: Hints) -> ErrorJson:
    """Return the body of a failure, with hints for this interface."""
    message, hint = _format_message_and_hint(error, hints)
    return error_to_json(error, message=message, hint=hint)


def print_failure(error: LamellaError, hints: Hints, *, as_json: bool) -> None:
    """Print a failure for people, and as JSON if requested; a closed stream is ignored."""
    message, hint = _format_message_and_hint(error, hints)
    with suppress(OSError):
        print_text(f"error: {message}", err=True)
        print_text(f"hint: {hint}", err=True)
        if as_json:
            print_json(failure_to_json(error, hints))


def _format_message_and_hint(error: LamellaError, hints: Hints) -> tuple[str, str]:
    """Return the message, with API keys masked, and the hint; both are escaped to one line."""
    from lamella.wiring import mask_keys  # only failures need it

    return mask_keys(escape_to_short_line(error.message)), escape_to_short_line(error.hint_for(hints))


# commands to paste, and slash commands of a chat.


class CliHints:
    """Hints as ``lamella`` commands, with the store that was named; a password in its URL is masked."""

    def __init__(self, store: str | None = None) -> None:
        self._store = store

    def option_hint(self, name: str) -> str:
        return f"--{name.replace('_', '-')}"

    def create_store_hint(self) -> str:
        return f"{self._format_command('chat')} or {self._format_command('chats import', 'FILE')}"

    def verify_store_hint(self) -> str:
        return self._format_command("store verify")

    def repair_store_hint(self) -> str:
        return self._format_command("store verify", repair=True)

    def list_chats_hint(self) -> str:
        return self._format_command("chats list")

    def show_chat_hint(self, name: str, head: str | None = None) -> str:
        return self._format_command("chats show", name, branch=head)

    def switch_branch_hint(self, name: str, head: str) -> str:
        return self._format_command("chats fork", name, head)

    def trust_hint(self, field: str, name: str, location: str) -> str:
        return f"run `{format_command_line('trust add', field, location)}`"

    def write_conflict_hint(self) -> str:
        return "Run the command again."

    def send_with_limit_hint(self, *, max_tokens: int) -> str:
        # Correct for stored and unstored questions: the option works when asking again and when regenerating.
        return f"`--max-tokens {max_tokens}`"

    def finish_calls_hint(self, tools: Sequence[str]) -> str:
        return "The program that has these tools can continue."

    def start_workflow_hint(self) -> str:
        return self._format_command("workflow paper new")

    def replay_transcript_hint(self) -> str:
        return "`lamella replay FILE`"

    def _format_command(self, command: str, *names: str, **options: object) -> str:
        from lamella.wiring import mask_url_secrets  # only hints need it

        store = None if self._store is None else mask_url_secrets(self._store)
        return f"`{format_command_line(command, *names, **options, store=store)}`"


class SlashCommandHints(CliHints):
    """Hints inside a chat: a slash command if there is one for the step, a shell command otherwise."""

    def option_hint(self, name: str) -> str:
        return "/model" if name == "model" else super().option_hint(name)

    def switch_branch_hint(self, name: str, head: str) -> str:
        return f"`/switch {head}`"

    def start_workflow_hint(self) -> str:
        return "`/stage new paper`"

    def send_with_limit_hint(self, *, max_tokens: int) -> str:
        return f"`/retry` after you reopen the chat with {super().send_with_limit_hint(max_tokens=max_tokens)}"

    def write_conflict_hint(self) -> str:
        return "The conversation was loaded again; repeat your last input."
