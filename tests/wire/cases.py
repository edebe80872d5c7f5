"""Requests whose bodies are stored as goldens, each as the real SDK sends it."""

import json
from pathlib import Path
from typing import Any

from tests.wire.kinds import WIRES, Wire
from tests.wire.material import DOT, READ, ROUND, SEARCH, answered, ask, assistant, grown, note, reply_to, system, user

from lamella.core.messages import ModelRequest, ProviderReply, ToolCall, ToolOutput, ToolRound
from lamella.core.values import replace

GOLDEN = Path(__file__).parent / "golden"


# What each format says in its own words, thoughts included, for the first round below.
NATIVE = {
    "anthropic": [
        {"type": "thinking", "thinking": "Where is it?", "signature": "c2ln"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "call_1", "name": "search", "input": {"q": "tides"}},
    ],
    "openai_chat": {
        "role": "assistant",
        "content": "Let me look.",
        "reasoning_content": "Where is it?",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q": "tides"}'}}
        ],
    },
    "openai_responses": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "search", "arguments": '{"q": "tides"}'},
    ],
    "gemini": [
        {"text": "Where is it?", "thought": True},
        {"text": "Let me look."},
        {"function_call": {"id": "call_1", "name": "search", "args": {"q": "tides"}}, "thought_signature": "c2ln"},
    ],
}
MANY = ToolRound(
    text="Let me look further.",
    calls=(
        ToolCall(id="call_2", name="read", arguments="{}"),
        ToolCall(id="call_3", name="search", arguments='{"q":"moon"}'),
        ToolCall(id="call_4", name="read", arguments="{}"),
    ),
    outputs=(
        ToolOutput(call="call_2", output="There is no such note.", failed=True),
        ToolOutput(call="call_3", output=""),
        ToolOutput(call="call_4", output="Größe 海"),
    ),
)
LAST = ToolRound(
    text="",
    calls=(ToolCall(id="call_5", name="search", arguments='{"q":"low tide"}'),),
    outputs=(ToolOutput(call="call_5", output="At six."),),
)


def cases(wire: Wire) -> dict[str, ModelRequest]:
    """One request per shape a conversation can have."""
    model = wire.model
    library = (note("tides", 1_500), note("moon", 1_500))
    plain = ask(user("When is high tide?"), model=model)
    long = ask(
        system(*library, instructions="You are terse. " * 50),
        user("When is high tide?"),
        assistant("At noon."),
        user("And low tide? Größe 海", DOT),
        model=model,
    )
    unanswered = ask(system(), user("Hello?"), assistant(""), user("Is anyone there?"), model=model)
    asked = ask(system(), user("When is high tide?"), model=model)
    rounds = grown(answered(replace(asked, tools=(SEARCH, READ)), ROUND, MANY), "At noon.", "And low tide?")
    native = ProviderReply(format=wire.name, json=json.dumps(NATIVE[wire.name]))
    carried = answered(replace(asked, tools=(SEARCH,)), replace(ROUND, provider_reply=native))
    return {
        "plain": plain,
        "library": replace(long, previous_reply_id="previous-reply", expected_pause=1_200.0),
        "tools": answered(replace(long, tools=(SEARCH, READ)), ROUND),
        "rounds": rounds,
        "running": answered(rounds, LAST),
        "carried": grown(carried, "At noon.", "And low tide?"),
        "steered": replace(plain, temperature=0.2, effort="low"),
        "unanswered": replace(unanswered, extra_fields_json='{"temperature": 0}'),
    }


def sent(wire: Wire, request: ModelRequest) -> dict[str, Any]:
    """A request's body as the server received it."""
    with wire.serve() as server:
        reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), request)
    return server.bodies[0]


def golden_path(wire: Wire, name: str) -> Path:
    return GOLDEN / f"{wire.name}.{name}.json"


def written(body: dict[str, Any]) -> str:
    """Keys stay in the order they were sent in: it is part of what a cache compares."""
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for wire in WIRES:
        for name, request in cases(wire).items():
            golden_path(wire, name).write_text(written(sent(wire, request)), encoding="utf-8")


if __name__ == "__main__":
    main()
