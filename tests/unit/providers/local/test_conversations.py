"""Turn by turn, in both layouts, the engine serves exactly what was forecast; the naive layout is run beside it."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.local import play_naive, share_of_earlier
from tests.unit.providers.local.conversations import CHAT, EARLY, LATE, talk

import lamella
from lamella.core.log.call import PrefixChange

ROOT = Path(__file__).parents[4]
MOVES = pytest.mark.moves_prefix(reason="in the library a note that is new or changed stands before the conversation")


@pytest.mark.parametrize("layout", [pytest.param("library", marks=MOVES), "in_place"])
def test_reported_cache_equals_forecast(layout: str, tmp_path: Path, movements: list[PrefixChange]) -> None:
    store = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(store) as engine:
        conversation = engine.chat(CHAT, layout=layout)
        served, moved = asyncio.run(talk(conversation, EARLY))
    movements += moved
    assert [one.as_forecast for one in served] == [True] * len(EARLY)
    assert served[0].cached == 0
    assert all(one.cached > 0 for one in served[1:])
    if layout == "in_place":
        assert share_of_earlier(served) > 0.98
    _check_reload(store)


def _check_reload(store: str) -> None:
    """A new process starts cold, and then serves what it has read itself."""
    command = [sys.executable, "-m", "tests.unit.providers.local.conversations", store]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.stderr == ""
    served = json.loads(result.stdout)["served"]
    assert len(served) == len(LATE)
    assert [(prompt, cached) for prompt, cached, _, _ in served] == [
        (prompt, cached) for _, _, prompt, cached in served
    ]
    assert served[0][1] == 0
    assert served[1][1] >= served[0][0] - 1


def test_naive_requests_are_forecast_and_read_more() -> None:
    naive = play_naive(EARLY)
    assert [one.as_forecast for one in naive] == [True] * len(EARLY)
    assert share_of_earlier(naive) < 0.6
