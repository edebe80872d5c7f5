"""A host's history: what was said, turn by turn, as the host tells it."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from lamella.attach import Attachment, Tool
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.errors import CallError


class HostRound(NamedTuple):
    """What the model said with its calls, and what the host's tools gave back."""

    text: str
    calls: tuple[ToolCall, ...]
    outputs: tuple[ToolOutput, ...]


class HostTurn(NamedTuple):
    """A question with what came with it, its rounds of tools, and the reply; none for the one that is asked now."""

    typed: str
    attach: tuple[Attachment, ...] = ()
    rounds: tuple[HostRound, ...] = ()
    reply: str | None = None


class HostRequest(NamedTuple):
    """A whole history and how its last question is to be answered.

    ``settings`` are what the conversation is to have of its own; ``after`` is the answer that is gone on from, where
    the host names one in place of a history.
    """

    turns: tuple[HostTurn, ...]
    system: str | None = None
    tools: tuple[Tool, ...] | None = None
    model: str | None = None
    max_tokens: int | None = None
    runner: str | None = None
    settings: Mapping[str, object] = {}
    after: str | None = None

    @property
    def past(self) -> tuple[HostTurn, ...]:
        return self.turns[:-1]

    @property
    def asked(self) -> HostTurn:
        return self.turns[-1]


class HostMessage(NamedTuple):
    """One message of a history. ``role`` is user, assistant or tool; a tool's message has its ``outputs``."""

    role: str
    text: str = ""
    attach: tuple[Attachment, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    outputs: tuple[ToolOutput, ...] = ()


def build_turns(messages: Sequence[HostMessage]) -> tuple[HostTurn, ...]:
    """The turns that messages make: what a user says in a row is one question, an assistant's in a row one reply."""
    turns: list[HostTurn] = []
    for message in messages:
        if message.role == "user":
            _add_user(turns, message)
        elif not turns:
            raise CallError(f"The history begins with a message of role {message.role}.", hint="Begin with the user.")
        elif message.role == "assistant":
            _add_assistant(turns, message)
        else:
            _add_outputs(turns, message)
    if not turns or turns[-1].reply is not None:
        raise CallError("The last message is no question and no result of a tool.", hint="End with the user's message.")
    if turns[-1].rounds and len(turns[-1].rounds[-1].outputs) < len(turns[-1].rounds[-1].calls):
        raise CallError("Calls of tools wait for their results.", hint="Send a result for each call.")
    return tuple(turns)


def name_history(turns: Sequence[HostTurn]) -> str:
    """What a conversation is called that is known by how it begins."""
    return f"host-{sha256(turns[0].typed.strip().encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _add_user(turns: list[HostTurn], message: HostMessage) -> None:
    if turns and turns[-1].reply is None and not turns[-1].rounds:
        joined = "\n\n".join(filter(None, (turns[-1].typed, message.text)))
        turns[-1] = turns[-1]._replace(typed=joined, attach=(*turns[-1].attach, *message.attach))
        return
    if turns and turns[-1].reply is None:
        # Results came back and the user spoke before the model did: what it was going to say nobody heard.
        turns[-1] = turns[-1]._replace(reply="")
    turns.append(HostTurn(message.text, message.attach))


def _add_assistant(turns: list[HostTurn], message: HostMessage) -> None:
    last = turns[-1]
    if message.calls:
        turns[-1] = last._replace(rounds=(*last.rounds, HostRound(message.text, message.calls, ())))
    else:
        turns[-1] = last._replace(reply=(last.reply or "") + message.text)


def _add_outputs(turns: list[HostTurn], message: HostMessage) -> None:
    last = turns[-1]
    called = {call.id for one in last.rounds[-1:] for call in one.calls}
    strange = [output.call for output in message.outputs if output.call not in called]
    if strange:
        raise CallError(f"A result is for the call {strange[0][:80]}, which was not made.", hint="Name the call.")
    one = last.rounds[-1]
    turns[-1] = last._replace(rounds=(*last.rounds[:-1], one._replace(outputs=(*one.outputs, *message.outputs))))
