"""Requests whose bodies are kept as goldens, each as the real SDK puts it on the wire."""

import json
from pathlib import Path
from typing import Any

from tests.wire.kinds import WIRES, Wire
from tests.wire.material import DOT, READ, ROUND, SEARCH, answered, ask, assistant, note, reply_to, system, user

from lamella.core.messages.request import ChatRequest
from lamella.core.values import replace

GOLDEN = Path(__file__).parent / "golden"


def cases(model: str) -> dict[str, ChatRequest]:
    """One request per shape a conversation can have."""
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
    return {
        "plain": plain,
        "library": replace(long, compare="previous-reply", pause=1_200.0),
        "tools": answered(replace(long, tools=(SEARCH, READ)), ROUND),
        "unanswered": replace(unanswered, extras='{"temperature": 0}'),
    }


def sent(wire: Wire, request: ChatRequest) -> dict[str, Any]:
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
        for name, request in cases(wire.model).items():
            golden_path(wire, name).write_text(written(sent(wire, request)), encoding="utf-8")


if __name__ == "__main__":
    main()
