"""An agent with two tools, a limit, and a way to continue after a crash.

Run it in an empty folder of a clone of Lamella, after `make setup`:

    ../.venv/bin/python ../examples/agent.py "Book a desk for Monday."
    ../.venv/bin/python ../examples/agent.py --resume
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from itertools import takewhile
from pathlib import Path

import lamella
from lamella.providers import Delta, ModelRequest, StopDelta, StopReason, TextDelta, ToolCall

BOOKINGS = Path("bookings.json")
DESKS = ("1-07", "3-04", "3-05")


def find_desks(day: str) -> list[str]:
    """List the free desks on a day."""
    taken = load_bookings()
    return [desk for desk in DESKS if f"{day} {desk}" not in taken]


def book_desk(desk: str, day: str) -> str:
    """Book a desk for a day."""
    bookings = load_bookings()
    if bookings.get(f"{day} {desk}") == "me":
        return f"Desk {desk} was already booked for you on {day}."
    bookings[f"{day} {desk}"] = "me"
    BOOKINGS.write_text(json.dumps(bookings))
    if "CRASH" in os.environ:
        os._exit(9)  # the process dies after the booking, before the model learns about it
    return f"Desk {desk} is booked for {day}."


def load_bookings() -> dict[str, str]:
    """Return who booked which desk on which day."""
    return json.loads(BOOKINGS.read_text()) if BOOKINGS.exists() else {}


class PretendModel:
    """Takes the place of a model, so that this example runs offline: it looks for a desk, books it, then answers."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Choose the next step by the tool results since the last question."""
        latest = list(takewhile(lambda message: message.role != "user", reversed(request.messages)))
        results = [message.text for message in reversed(latest) if message.role == "tool"]
        if not request.allows_tool_calls or len(results) > 1:
            yield TextDelta(text="I found desks, but booked none." if "Not run" in results[-1] else results[-1])
            yield StopDelta(reason=StopReason.END)
            return
        if not results:
            yield ToolCall(id="call-1", name="find_desks", arguments='{"day": "Monday"}')
        else:
            desk = json.loads(results[0])[0]
            yield ToolCall(id="call-2", name="book_desk", arguments=json.dumps({"desk": desk, "day": "Monday"}))
        yield StopDelta(reason=StopReason.TOOL_CALLS)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


async def main() -> None:
    """Ask a question, or continue with the one that has no answer yet."""
    parser = argparse.ArgumentParser()
    parser.add_argument("question", nargs="?", default="Book a desk for Monday.")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()

    model = os.environ.get("AGENT_MODEL", "pretend:desk")
    provider = PretendModel() if model.startswith("pretend:") else None  # a real model has a provider of its own
    async with lamella.open("sqlite:///agent.db", model=model, provider=provider) as engine:
        chat = engine.chat("desks", system="You book desks.")
        if given.resume:
            print("waiting calls:", [call.name for call in chat.pending_tool_calls])
            events = chat.resume(tools=[find_desks, book_desk])
        else:
            events = chat.send(given.question, tools=[find_desks, book_desk], steps=given.steps)
        async for event in events:
            if event.call:
                print("call  ", event.call.name, event.call.arguments)
            elif event.output:
                print("result", event.output.output)
            else:
                print(event.text, end="", flush=True)
        print()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except lamella.LamellaError as error:
        sys.exit(f"error: {error.message}\nhint: {error.hint}")
