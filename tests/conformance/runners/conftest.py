"""Every runner of the registry, under the same suite. A runner that is added there passes it without a word here."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.runner_provider import Speaker

import lamella
from lamella import Conversation, Engine, Turn, TurnEvent
from lamella.core.log.call import PrefixChange
from lamella.runners.registry import RUNNERS

# A model that is known to call tools, and what it costs.
MODEL = "anthropic:claude-opus-5-5"
NOTES = {
    "beans.md": "# Beans\n\nThe beans were sown in May, beside the wall.\n",
    "bees.md": "# Bees\n\nThe hive stands below the lime tree.\n",
}


@pytest.fixture(params=list(RUNNERS))
def runner(request: pytest.FixtureRequest) -> str:
    """The name of every runner."""
    return str(request.param)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / name).write_text(text)
    return folder


Open = Callable[[Speaker], Engine]


@pytest.fixture
def opened(tmp_path: Path, vault: Path) -> Iterator[Open]:
    """Opens the same store over the same notes, as often as somebody does; a provider serves each."""
    engines: list[Engine] = []

    def opening(speaker: Speaker) -> Engine:
        url = f"sqlite:///{tmp_path}/chats.db"
        engines.append(lamella.open(url, model=MODEL, provider=speaker, vault=vault, max_attempts=1))  # type: ignore[arg-type]
        return engines[-1]

    yield opening
    for engine in engines:
        engine.close()


Say = Callable[..., list[TurnEvent]]


@pytest.fixture
def say(runner: str, movements: list[PrefixChange]) -> Say:
    """Sends a question by the runner and gives its events; what each of its requests moved is watched."""

    def saying(chat: Conversation, text: str | Turn, **given: object) -> list[TurnEvent]:
        named = {"runner": runner, **given} if isinstance(text, str) else given
        return collect(chat.send(text, **named), movements)  # type: ignore[arg-type]

    return saying


def collect(events: object, movements: list[PrefixChange]) -> list[TurnEvent]:
    async def main() -> list[TurnEvent]:
        return [event async for event in events]  # type: ignore[attr-defined]

    found = asyncio.run(main())
    movements.extend(
        event.turn.prefix_change.prefix_change for event in found if event.kind == "envelope" and event.turn
    )
    return found
