"""A conversation carried on by one process after another sends what a single process sends that never stops.

Each sitting is a process of its own, of ``tests.journeys.long_conversation``; all it has of the sittings before it is the store.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests import preloaded, servers
from tests.journeys.long_conversation import SITTINGS, fill, sit
from tests.journeys.running import SECONDS

import lamella

MODULE = "tests.journeys.long_conversation"
# The sittings for which a Python is started, with a hash seed of its own.
COLD = (0, 5)


def start_sitting(words: Sequence[str], *, cold: bool) -> list[dict[str, object]]:
    """What a sitting sends, in a Python that was started for it or in a process that begins warm."""
    if cold:
        done = subprocess.run(
            [sys.executable, "-m", MODULE, *words], cwd=preloaded.ROOT, capture_output=True, check=False
        )
        told = preloaded.Done(exit=done.returncode, out=done.stdout, err=done.stderr)
    else:
        program = f"from {MODULE} import main; main()"
        order = preloaded.Order(program=program, words=words, environment=dict(os.environ), folder=str(preloaded.ROOT))
        told = preloaded.run(order, seconds=SECONDS)
    assert (told.exit, told.err) == (0, b"")
    turns: list[dict[str, object]] = json.loads(told.out)
    return turns


def mask_ids(turns: Sequence[Mapping[str, object]]) -> str:
    """Turns without ids that follow from the conversation's key, which is another one in each store; hashes stay."""
    return re.sub(r'"([0-9a-f]{16}|[0-9a-f]{20})"', '"an id"', json.dumps(turns))


@pytest.mark.parametrize(
    ("kind", "layout", "carry_forward"),
    [
        ("sqlite", "in_place", "full"),
        ("sqlite", "library", "preview"),
        ("postgresql", "in_place", "preview"),
        ("postgresql", "library", "full"),
    ],
)
def test_new_process_continues_where_last_one_stopped(
    tmp_path: Path, kind: str, layout: str, carry_forward: str
) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}" if kind == "sqlite" else servers.shared().make_store_url()
    settings: dict[str, object] = {"layout": layout, "carry_forward": carry_forward, "model": "openai:gpt-5"}
    vault = tmp_path / "vault"
    fill(vault)
    with lamella.open("memory:", vault=vault) as engine:
        conversation = engine.chat("long", **settings)
        for number, deeds in enumerate(SITTINGS):
            # The settings are written down at the first sitting, and hold for the others.
            words = [url, str(vault), str(number), json.dumps(settings if number == 0 else {})]
            gone_on = start_sitting(words, cold=number in COLD)
            assert mask_ids(gone_on) == mask_ids(sit(conversation, deeds))
