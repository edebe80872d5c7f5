"""Doors: what to do next, in the words of whoever reads it.

A hint is a text that is true at every door, or a function of a door: what is done otherwise at each of them stands in
it as a step, and the door has the words. Python's are here, since an error that nobody catches is read by the author of
a program; each face has its own.
"""

from collections.abc import Callable, Sequence
from typing import Protocol


class Door(Protocol):
    """How those who come in by one door take a step: a call, a command or an option, as it stands in a sentence."""

    def option(self, name: str) -> str:
        """How something is given by its name, such as a model."""
        ...

    def begin_store(self) -> str:
        """What begins a store where there is none."""
        ...

    def verify_store(self) -> str:
        """What looks for damage."""
        ...

    def repair_store(self) -> str:
        """What derives again that of the damage which can be."""
        ...

    def list_chats(self) -> str:
        """What lists the conversations of a store."""
        ...

    def show_chat(self, name: str, head: str | None = None) -> str:
        """What shows the messages of a conversation and what came with them, by default of its active branch."""
        ...

    def go_to(self, name: str, head: str) -> str:
        """What goes on from another branch of a conversation."""
        ...

    def trust(self, field: str, given: str, place: str) -> str:
        """How somebody says yes to a place that was given by others, as a part of a sentence."""
        ...

    def load_again(self) -> str:
        """What has to be done once somebody else wrote to a conversation, as a sentence."""
        ...

    def ask_again(self, *, max_tokens: int) -> str:
        """What sends a question again that waits, for an answer of at most so many tokens."""
        ...

    def finish_calls(self, tools: Sequence[str]) -> str:
        """How calls of these tools get their results, as a sentence."""
        ...

    def begin_work(self) -> str:
        """What begins to work in the stages of a workflow."""
        ...

    def replay_file(self) -> str:
        """What shows a transcript as it would be sent."""
        ...


Hint = str | Callable[[Door], str]


class PythonDoor:
    """The words of a program: ``engine`` is what ``lamella.open`` gave, ``chat`` what ``engine.chat`` gave."""

    def option(self, name: str) -> str:
        return f"{name}=…"

    def begin_store(self) -> str:
        return "`lamella.open(url)`"

    def verify_store(self) -> str:
        return "`engine.verify()`"

    def repair_store(self) -> str:
        return "`engine.repair()`"

    def list_chats(self) -> str:
        return "`engine.chats()`"

    def show_chat(self, name: str, head: str | None = None) -> str:
        return "`chat.turns()`" if head is None else f'`chat.turns("{head}")`'

    def go_to(self, name: str, head: str) -> str:
        return f'`chat.switch("{head}")`'

    def trust(self, field: str, given: str, place: str) -> str:
        return f"name it in your program: {field}={given!r}"

    def load_again(self) -> str:
        return "`chat.reload()` loads it again; then repeat what you did."

    def ask_again(self, *, max_tokens: int) -> str:
        return f"`chat.send(chat.regenerate(), max_tokens={max_tokens})`"

    def finish_calls(self, tools: Sequence[str]) -> str:
        given = ", ".join(tools) or "…"
        return (
            f"Give them with `chat.resume(tools=[{given}])`, or hand back what they gave: `chat.send(chat.give([…]))`."
        )

    def begin_work(self) -> str:
        return '`chat.begin_workflow("paper")`'

    def replay_file(self) -> str:
        return "docs/replay.md"


PYTHON = PythonDoor()
