"""The recall tool, the command line and the server return the same text for the id of a message.

The page shows what ``GET /v1/conversations/{conversation}/recall`` returns.
"""

import asyncio
import json
from pathlib import Path

import pytest
from tests.server.running import running

import lamella
from lamella.cli import main
from lamella.testing import ScriptedProvider

ROOT = Path(__file__).parents[2]
SAID = "The pump room key hangs behind the third locker. "
FILLER = "We went over the plan for the harbour once more. "


def test_tool_command_line_server_and_page_recall_the_same_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    engine = lamella.open(store, summarizer="off")
    chat = engine.chat("garden", window=4_000, reserve=200, layout="in_place")
    chat.ask(SAID * 20)
    chat.reply("Noted. " * 200)
    for number in range(12):
        chat.ask(f"Point {number}. {FILLER * 8}")
        chat.reply(f"Answer {number}. {FILLER * 20}")
    chat.compact(0.05)
    message = chat.turns()[0].message.id
    assert SAID not in "".join(one.text for one in chat.ask("And now?").messages)
    chat.reply("Yes.")
    hits = chat.recall(message)
    hit = hits[0]
    assert hit.text.strip() == (SAID * 20).strip()

    run = chat.recall_tool.run
    assert run is not None
    assert hit.text.strip() in str(asyncio.run(run(query=message)))  # type: ignore[arg-type]

    command = ["recall", "garden", message, "--json", "--store", store]
    assert main(command) == 0
    printed = json.loads(capsys.readouterr().out)["hits"]
    assert (printed[0]["message"], [one["text"] for one in printed]) == (message, [one.text for one in hits])

    with running(store, ScriptedProvider()) as server:
        path = "/v1/conversations/garden/recall"
        assert server.client.get(path, params={"q": message}).json()["hits"] == printed
    page = (ROOT / "web/src/lib/stores/compaction.svelte.ts").read_text(encoding="utf-8")
    assert "/recall?q=${encodeURIComponent(query)}" in page
