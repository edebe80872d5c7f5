"""What to do next, in the words of the terminal: commands that can be pasted as they are, and what a chat takes."""

from collections.abc import Sequence

from lamella.commands import write_command


class ShellDoor:
    """Commands of ``lamella``, in the store that was named, if one was; a password is not repeated."""

    def __init__(self, store: str | None = None) -> None:
        self._store = store

    def option(self, name: str) -> str:
        return f"--{name.replace('_', '-')}"

    def begin_store(self) -> str:
        return f"{self._write('chat')} or {self._write('chats import', 'FILE')}"

    def verify_store(self) -> str:
        return self._write("store verify")

    def repair_store(self) -> str:
        return self._write("store verify", repair=True)

    def list_chats(self) -> str:
        return self._write("chats list")

    def show_chat(self, name: str, head: str | None = None) -> str:
        return self._write("chats show", name, branch=head)

    def go_to(self, name: str, head: str) -> str:
        return self._write("chats fork", name, head)

    def trust(self, field: str, given: str, place: str) -> str:
        return f"say so once: `{write_command('trust add', field, place)}`"

    def load_again(self) -> str:
        return "Run the command again."

    def ask_again(self, *, max_tokens: int) -> str:
        # Kept or not, it is asked with this: anew, or by having the question answered again.
        return f"`--max-tokens {max_tokens}`"

    def finish_calls(self, tools: Sequence[str]) -> str:
        return "The program that has these tools can go on with them."

    def begin_work(self) -> str:
        return self._write("workflow paper new")

    def replay_file(self) -> str:
        return "`lamella replay FILE`"

    def _write(self, command: str, *names: str, **options: object) -> str:
        from lamella.wiring import mask  # only those who are told something need it

        store = None if self._store is None else mask(self._store)
        return f"`{write_command(command, *names, **options, store=store)}`"


class ChatDoor(ShellDoor):
    """What is typed in a chat, where it has a command of its own for the step."""

    def option(self, name: str) -> str:
        return "/model" if name == "model" else super().option(name)

    def go_to(self, name: str, head: str) -> str:
        return f"`/switch {head}`"

    def begin_work(self) -> str:
        return "`/stage new paper`"

    def ask_again(self, *, max_tokens: int) -> str:
        return f"`/retry` once the chat is opened with {super().ask_again(max_tokens=max_tokens)}"

    def load_again(self) -> str:
        return "It was loaded again; type it once more."
