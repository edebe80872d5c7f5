"""The embedded model through the whole engine: its cache serves what the ledger predicted, to the token."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import run

import pytest
from tests.journeys.running import spawn

import lamella
from lamella import Note
from lamella.core.log.call import CacheOutcome, ModelCall

GARDEN = "# Garden\n" + "\n".join(f"Bed {bed} has {bed * 3} tomato plants." for bed in range(12))
ASKED: tuple[tuple[str, list[str]], ...] = (
    ("How many beds are there?", [GARDEN]),
    ("And tomatoes?", []),
    ("What about now?", [GARDEN + "\nBed 99 is new."]),
    ("And after that?", []),
)
# How many of them are asked once more in a new process.
AGAIN = 2


async def talk(url: str, layout: str, turns: int) -> None:
    async with lamella.open(url, model="local") as engine:
        conversation = await engine.conversation("garden", layout=layout)
        for question, texts in ASKED[:turns]:
            notes = [Note(path="garden.md", text=text) for text in texts]
            async for _ in conversation.send(question, attach=notes, max_tokens=3):
                pass


def ledger(url: str) -> list[ModelCall]:
    with lamella.open(url) as engine:
        return [call for calls in engine.chat("garden").ledger() for call in calls]


@pytest.mark.parametrize("layout", ["in_place", "library"])
def test_local_engine_reports_predicted_usage_also_after_reload(tmp_path: Path, layout: str) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    asyncio.run(talk(url, layout, len(ASKED)))
    again = f"from tests.journeys.test_local_ledger import talk; asyncio.run(talk(*sys.argv[1:], {AGAIN}))"
    run([sys.executable, "-c", f"import sys, asyncio; {again}", url, layout], check=True, capture_output=True)
    calls = ledger(url)
    assert len(calls) == len(ASKED) + AGAIN
    assert [call.predicted and call.predicted.read for call in calls] == [call.usage.read for call in calls]
    assert [call.predicted and call.predicted.total for call in calls] == [call.usage.prompt_tokens for call in calls]
    assert calls[0].verdict.outcome is CacheOutcome.FIRST
    assert calls[len(ASKED)].usage.read == 0
    if layout == "in_place":
        assert [call.verdict.outcome for call in calls[1:4]] == [CacheOutcome.HIT] * 3
        assert all((call.usage.read or 0) > 0.6 * (call.usage.prompt_tokens or 0) for call in calls[1:4])
    else:
        assert [str(call.verdict.prefix_change) for call in calls[1:4:2]] == [
            "artifact_added(garden.md)",
            "artifact_updated(garden.md)",
        ]


def test_oversized_request_is_refused_before_model_is_loaded(
    home: Mapping[str, str],
) -> None:
    # By OpenAI's vocabulary these are 3,700 tokens, of which 6,800 would fit; this model reads every digit by itself.
    digits = "".join(f"{number * 7919 % 100_000}\n" for number in range(1_250))
    ran = spawn("ask", f"Sum? {digits}", "--model", "local", environment=home)
    assert ran.exit != 0
    assert "error: The request needs 7,4" in ran.err
    assert "what was typed now (7," in ran.err
    assert "the local engine" not in ran.err.lower()
