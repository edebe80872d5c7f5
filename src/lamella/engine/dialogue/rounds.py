"""Rounds of tools: what was called for, matched with what came back."""

from collections.abc import Iterable, Sequence

from lamella.core.messages.delta import Reply, StopReason, ToolCall
from lamella.core.messages.rounds import ToolOutput, ToolRound
from lamella.core.messages.usage import Usage
from lamella.core.values import replace
from lamella.errors import CallError


def check_outputs(calls: Sequence[ToolCall], outputs: Sequence[ToolOutput]) -> None:
    """Every call has one output, and every output its call."""
    called, given = [call.id for call in calls], [output.call for output in outputs]
    missing = [f"{call.name} ({call.id})" for call in calls if call.id not in given]
    unknown = [name for name in given if name not in called]
    twice = [name for name in dict.fromkeys(given) if given.count(name) > 1]
    wrong = [
        f"nothing for {', '.join(missing)}" if missing else "",
        f"{', '.join(unknown)} was not called" if unknown else "",
        f"{', '.join(twice)} more than once" if twice else "",
    ]
    if any(wrong):
        raise CallError(
            f"The results do not match the calls: {'; '.join(one for one in wrong if one)}.",
            hint="Give one ToolOutput for each of chat.calls, with the call's id; a round is handed back as a whole.",
        )


def calls_wait(message: str, calls: Iterable[ToolCall]) -> CallError:
    """The error for what cannot be done while calls wait for their results."""
    tools = sorted({call.name for call in calls})
    return CallError(message, hint=lambda door: f"{door.finish_calls(tools)} Asking something else gives the calls up.")


def name_calls(reply: Reply) -> Reply:
    """The same answer, each of its calls under an id of its own: models repeat ids, and some give none.

    The provider's own form of an answer whose ids are mended would name the wrong ones, so it is left out then.
    """
    names: dict[str, None] = {}
    for number, call in enumerate(reply.calls, start=1):
        fresh = name = call.id or f"call-{number}"
        while fresh in names:
            fresh, number = f"{name}-{number}", number + 1
        names[fresh] = None
    calls = tuple(replace(call, id=name) for call, name in zip(reply.calls, names, strict=True))
    return reply if calls == reply.calls else replace(reply, calls=calls, carried=None)


def close_round(asked: Reply, outputs: Sequence[ToolOutput]) -> ToolRound:
    """An answer that called tools, with what they gave, in the order of the calls."""
    given = {output.call: output for output in outputs}
    return ToolRound(
        text=asked.text,
        calls=asked.calls,
        outputs=tuple([given[call.id] for call in asked.calls]),
        carried=asked.carried,
        tokens=asked.usage.output,
    )


def reopen_round(closed: ToolRound) -> Reply:
    """The answer that a round began with, as far as the round has it."""
    return Reply(
        text=closed.text,
        stop=StopReason.TOOLS,
        calls=closed.calls,
        usage=Usage(output=closed.tokens),
        carried=closed.carried,
    )


def skip_call(call: ToolCall) -> ToolOutput:
    """What a call is told that nobody ran: the conversation went on without it."""
    return ToolOutput(call=call.id, output="This call was not made: the conversation went on without it.", failed=True)


def is_skipped(one: ToolRound) -> bool:
    """Whether nobody ran the calls of a round: what they are told was never sent on by itself."""
    return all(replace(output, id=None) == skip_call(call) for call, output in zip(one.calls, one.outputs, strict=True))
