"""Rounds that a program runs with its provider's real SDK: reply, give, send again, in one process or in several."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.wire.script import Say, Wanted
from tests.wire.sdks import EVERY, SAID, WAYS, Call, Spoken

import lamella
from lamella import Conversation, Turn
from lamella.providers import ToolOutput

# What is said is that of SAID in each answer: one way of reading a stream looks at it on the way.
LOOKING = (
    Say(
        text=SAID.text,
        reasoning=SAID.reasoning,
        calls=(Wanted(id="c1", name="search", arguments={"q": "🌊"}), Wanted(id="c2", name="read", arguments={})),
    ),
    Say(text=SAID.text, reasoning="Hm.", calls=(Wanted(id="c3", name="read", arguments={"path": "a.md"}),)),
    Say(text=SAID.text),
)
OUTPUTS = {
    "c1": ToolOutput(call="c1", output="Two notes."),
    "c2": ToolOutput(call="c2", output="There is no such note.", failed=True),
    "c3": ToolOutput(call="c3", output=""),
}
# What differs between a request for a stream and one for an answer, and between two conversations.
ASIDE = ("stream", "stream_options", "prompt_cache_key")


def search(q: str) -> str:
    """Find notes."""
    return q


def read(path: str = "") -> str:
    """Read a note."""
    return path


def _look(
    chat: Conversation | Conversation,
    spoken: Spoken,
    call: Call,
    *,
    again: Callable[[Conversation | Conversation], Conversation | Conversation] = lambda chat: chat,
) -> list[dict[str, Any]]:
    """What reaches the server in two rounds and what follows; ``again`` opens the chat again around results."""
    with spoken.serve(*LOOKING) as server:

        def send(turn: Turn) -> object:
            return call(server.url, turn.request(spoken.name, max_tokens=800))

        reply = chat.reply(send(chat.ask("When is high tide?", tools=[search, read])))
        while reply.calls:
            chat = again(chat)
            assert chat.pending_tool_calls == reply.calls
            # In another order than they were called: what is sent has the order of the calls.
            turn = chat.submit_tool_outputs([OUTPUTS[one.id] for one in reversed(chat.pending_tool_calls)])
            other = again(chat)
            if other is not chat:
                assert isinstance(other, Conversation)
                waits = other.prepare_pending_turn()
                assert waits is not None
                assert repr(waits.request(spoken.name)) == repr(turn.request(spoken.name))
                chat, turn = other, waits
            reply = chat.reply(send(turn))
        assert reply.text == SAID.text
        after, asked_anew = (one.preview("And low tide?").request(spoken.name) for one in (chat, again(chat)))
        assert repr(asked_anew) == repr(after)
    return [{name: value for name, value in body.items() if name not in ASIDE} for body in server.bodies]


def _model(spoken: Spoken) -> str:
    return f"{spoken.name.partition('-')[0]}:{spoken.model}"


@pytest.mark.parametrize(("spoken", "call"), WAYS)
def test_provider_reply_is_same_bytes_however_received(spoken: Spoken, call: Call) -> None:
    def look(by: Call) -> str:
        return repr(_look(Conversation(model=_model(spoken), layout="in_place"), spoken, by))

    assert look(call) == look(spoken.calls[0])


@pytest.mark.parametrize("layout", ["in_place", "library"])
@pytest.mark.parametrize("spoken", EVERY, ids=lambda spoken: spoken.name)
def test_process_started_between_any_two_steps_sends_same_bytes(spoken: Spoken, layout: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"

    def open_again(before: Conversation | Conversation) -> Conversation:
        # The one before is not closed, as a process that is killed closes nothing.
        assert isinstance(before, Conversation)
        return lamella.open(url).chat("tides")

    whole = _look(Conversation(model=_model(spoken), layout=layout), spoken, spoken.calls[0])
    first = lamella.open(url, model=_model(spoken)).chat("tides", layout=layout)
    assert repr(_look(first, spoken, spoken.calls[0], again=open_again)) == repr(whole)
