"""What the command prints with ``--json`` is, byte for byte, what the views make of the same values."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.journeys.running import run

import lamella
from lamella import Note
from lamella.adapters.providers.scripted.provider import Line, ScriptedProvider
from lamella.core.messages.usage import Usage
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.stored import StoredChat
from lamella.errors import LamellaError
from lamella.faces.cli.terminal.door import ShellDoor
from lamella.views.errors import view_error
from lamella.views.ledger import make_rows, view_ledger
from lamella.views.recall import view_recall
from lamella.views.receipts import view_plan, view_undo
from lamella.views.stores import view_chats, view_stats
from lamella.views.totals import Totals, view_totals
from lamella.views.turns import view_head, view_turn
from lamella.wiring import load_transcript, open_backend, replay_transcript

EXAMPLES = Path(__file__).parents[2] / "examples"
CHAT = "garden"
NOTE = Note(path="plan.md", text="# Plan\nSow the beans «Ä-17» in April.\n" + "Water them in the evening.\n" * 20)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A conversation that a model answered, long enough to be made smaller."""
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    lines = [Line(text=f"Bed {n} is fine." + " It grows." * 40, usage=Usage(plain=9, read=n)) for n in range(8)]

    async def talk() -> None:
        async with lamella.open(store, model="anthropic:claude-opus-5-5", provider=ScriptedProvider(*lines)) as engine:
            chat = await engine.conversation(CHAT, layout="in_place", window=5_000, reserve=1_500)
            for number in range(len(lines)):
                text = f"What of bed {number}?" + " It was dug in March." * 12
                async for _ in chat.send(text, attach=[] if number else [NOTE]):
                    pass

    asyncio.run(talk())
    return store


def printed(*words: str) -> str:
    ran = run(*words, "--json")
    assert (ran.exit, ran.err) == (0, "")
    return ran.out


def written(body: Mapping[str, object]) -> str:
    return json.dumps({"lamella": 1, **body}, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("example", ["walkthrough", "edits", "long"])
def test_a_replay_prints_the_views_of_its_turns_and_their_sums(example: str) -> None:
    file = EXAMPLES / f"{example}.json"
    transcript = load_transcript(file)
    totals = Totals()
    turns = list(totals.count(replay_transcript(transcript, overrides={}, beside=EXAMPLES)))
    head = json.dumps(view_head(transcript.conversation, turns[0]), ensure_ascii=False).removesuffix("}")
    bodies = ",\n".join(json.dumps(view_turn(turn), ensure_ascii=False) for turn in turns)
    whole = f'{head}, "turns": [\n{bodies}],\n"totals": {json.dumps(view_totals(totals))}}}\n'
    assert printed("replay", str(file)) == whole


def test_a_replay_of_nothing_prints_a_head_and_empty_sums(tmp_path: Path) -> None:
    file = tmp_path / "empty.json"
    file.write_text('{"lamella": 1, "turns": []}', encoding="utf-8")
    body = {**view_head("chat", None), "turns": [], "totals": view_totals(Totals())}
    assert json.loads(printed("replay", str(file))) == body


def test_the_ledger_prints_the_view_of_its_rows(url: str) -> None:
    backend = open_backend(url, create=False)
    stored = StoredChat(backend, CHAT)
    body = view_ledger(stored.id, make_rows(stored.turns(), stored.ledger()), stored.doubts())
    backend.store.close()
    assert printed("ledger", CHAT, "--store", url) == written(body)


def test_a_plan_what_was_found_and_an_undo_are_printed_as_their_views(url: str) -> None:
    backend = open_backend(url, create=False)
    stored = StoredChat(backend, CHAT)
    plan, key = stored.plan(to=0.2), stored.id
    assert plan.receipt is not None
    assert printed("compact", CHAT, "--plan", "--to", "0.2", "--store", url) == written(
        view_plan(key, plan, committed=False)
    )
    assert printed("compact", CHAT, "--to", "0.2", "--store", url) == written(view_plan(key, plan, committed=True))
    found = StoredChat(backend, CHAT).recall("beans April")
    assert found
    assert printed("recall", CHAT, "beans April", "--store", url) == written(view_recall(key, "beans April", found))
    assert printed("compact", CHAT, "--undo", "--store", url) == written(view_undo(key, [plan.receipt.id]))
    backend.store.close()


def test_the_conversations_and_the_counts_of_a_store_are_printed_as_their_views(url: str) -> None:
    backend = open_backend(url, create=False)
    conversations = Conversations(backend.store, backend.clock)
    assert printed("chats", "list", "--store", url) == written({"chats": view_chats(conversations.list_alive())})
    assert printed("store", "stats", "--store", url) == written(view_stats(conversations.stats()))
    backend.store.close()


def test_an_error_is_printed_as_its_view(url: str) -> None:
    backend = open_backend(url, create=False)
    with pytest.raises(LamellaError) as error:
        Conversations(backend.store, backend.clock).find("gone")
    backend.store.close()
    ran = run("ledger", "gone", "--json", "--store", url)
    hint = error.value.hint_at(ShellDoor(url))
    assert (ran.exit, ran.out) == (2, written(view_error(error.value, hint=hint)))
