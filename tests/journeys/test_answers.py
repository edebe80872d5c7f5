"""Answers from notes with the embedded model: a vault question with citations, and a forced search.

A model of 135 million parameters does not cite by itself. It goes on as a conversation goes, so it is asked after an
answer that does.
"""

import asyncio
import json
import os
from pathlib import Path
from time import time

from tests.contracts.repository import ROOT
from tests.journeys.running import run

import lamella
from lamella.notes import open_index
from lamella.testing import ScriptedProvider

VAULT = ROOT / "examples" / "vault"


def test_answer_cites_right_note_also_after_reload(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    shown = "The office closes at 19:00 in the evening [^1]."

    async def ask(text: str, **given: object) -> str:
        async with lamella.open(url, vault=VAULT, **given) as engine:  # type: ignore[arg-type]
            settings = {"model": "local", "window": 8_192, "reserve": 512} if "provider" not in given else {}
            conversation = await engine.conversation("office", temperature=0.0, layout="in_place", **settings)
            events = conversation.send(text, runner="vault_qa", max_tokens=30)
            return "".join([event.text async for event in events])

    before = ask(
        "path:office/hours.md When does the office close?", model="scripted:x", provider=ScriptedProvider(shown)
    )
    assert asyncio.run(before).endswith("[^1]: [[office/hours.md#Office hours]]")
    said = asyncio.run(ask("path:office/hours.md When does the office open?", model="local"))
    # What it says of the hours may be wrong; where it looked is not.
    assert said.endswith("[^1]: [[office/hours.md#Office hours]]")
    told = run("chats", "show", "office", "--sources", "--store", url)
    assert told.out.count("[^1] office/hours.md > Office hours\n") == 2
    assert "| The office opens at 7:30" in told.out
    body = json.loads(run("chats", "show", "office", "--json", "--store", url).out)
    assert [source["path"] for turn in body["turns"] for source in turn["sources"]] == ["office/hours.md"] * 2


def test_forced_search_result_precedes_question() -> None:
    def search_notes(query: str) -> str:
        """Searches the notes."""
        with open_index(VAULT) as notes:
            return "\n".join(hit.text for hit in notes.search(query, limit=1))

    async def ask() -> tuple[str, str]:
        async with lamella.open("memory:", model="local") as engine:
            conversation = await engine.conversation("office", temperature=0.0)
            events = conversation.send(
                "@vault When does the office open?", runner="plus", tools=[search_notes], max_tokens=30
            )
            heard = [event async for event in events]
            turn = next(event.turn for event in heard if event.turn is not None)
            return turn.messages[-1].text, "".join(event.text for event in heard)

    asked, said = asyncio.run(ask())
    assert asked.startswith("<tool_result>search_notes(")
    assert asked.endswith("</tool_result>\n[User query]:\n@vault When does the office open?")
    assert "7:30" in asked
    assert "7:30" in said


def test_project_reports_changed_source_once(tmp_path: Path) -> None:
    folder = tmp_path / "garden"
    folder.mkdir()
    (folder / "beans.md").write_text("Sow in May.\n", encoding="utf-8")
    long_ago = time() - 60
    os.utime(folder / "beans.md", (long_ago, long_ago))
    os.utime(folder, (long_ago, long_ago))
    url = f"sqlite:///{tmp_path}/chats.db"

    async def ask(text: str) -> tuple[str, list[str], str]:
        async with lamella.open(url, vault=folder, model="local") as engine:
            conversation = await engine.conversation(
                "garden", temperature=0.0, layout="in_place", window=8_192, reserve=512
            )
            heard = [event async for event in conversation.send(text, runner="project", max_tokens=8)]
            turn = next(event.turn for event in heard if event.turn is not None)
            said = "".join(event.text for event in heard)
            return said, [message.text for message in turn.messages], str(turn.prefix_change.prefix_change)

    first, asked, _ = asyncio.run(ask("What is this project?"))
    assert "- beans.md" in asked[0]
    (folder / "peas.md").write_text("Sow in March.\n", encoding="utf-8")
    second, again, moved = asyncio.run(ask("What is new?"))
    assert again[0] == asked[0]
    assert "New or changed: peas.md." in again[-1]
    assert moved == "none"
    third, last, _ = asyncio.run(ask("And now?"))
    assert "changed since the last question" not in last[-1]
    assert all((first, second, third))


def test_conversation_of_several_runners_continues_after_reload(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    vault = tmp_path / "office"
    vault.mkdir()
    (vault / "hours.md").write_text("The office opens at 7:30.\n", encoding="utf-8")
    asked = (
        ("vault_qa", "When does the office open?"),
        ("plus", "@vault office"),
        ("agent", "@vault opens"),
        ("chat", "Thanks."),
    )
    sent: list[list[str]] = []

    async def ask(runner: str, text: str) -> str:
        # Nothing of the one before is left but the store.
        async with lamella.open(url, vault=vault, model="local") as engine:
            conversation = await engine.conversation(
                "office", temperature=0.0, layout="in_place", window=8_192, reserve=512
            )
            heard = [event async for event in conversation.send(text, runner=runner, max_tokens=4)]
            turn = [event.turn for event in heard if event.turn is not None][-1]
            sent.append([message.text for message in turn.messages])
            return "".join(event.text for event in heard)

    said = [asyncio.run(ask(runner, text)) for runner, text in asked]
    assert all(said)
    with lamella.open(url) as engine:
        conversation = engine.chat("office")
        assert [record.message.text for record in conversation.turns()] == [text for _, text in asked]
        assert list(engine.verify()) == []
    # What was said is in the last request, as it was said.
    assert [text in sent[-1] for text in said[:-1]] == [True] * 3
