"""Commands print with ``--json``, byte for byte, the JSON bodies of the same values."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec import Struct, to_builtins
from tests.bodies import as_json
from tests.journeys.running import run

import lamella
from lamella import Note
from lamella.cli.errors import CliHints
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository
from lamella.core.messages import Usage
from lamella.errors import LamellaError
from lamella.providers.scripted import ScriptedProvider, ScriptedReply
from lamella.schemas.body import error_to_json
from lamella.schemas.compaction import UndoResultJson, plan_to_json, recall_to_json
from lamella.schemas.conversations import ConversationListJson, conversations_to_json, stats_to_json
from lamella.schemas.ledger import (
    ReplayJson,
    ReplayTotals,
    build_ledger_rows,
    ledger_to_json,
    replay_header_to_json,
    replay_totals_to_json,
)
from lamella.schemas.prompts import turn_prompt_to_json
from lamella.wiring import load_transcript, open_backend, replay_transcript

EXAMPLES = Path(__file__).parents[2] / "examples"
CHAT = "garden"
NOTE = Note(path="plan.md", text="# Plan\nSow the beans «Ä-17» in April.\n" + "Water them in the evening.\n" * 20)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A conversation that a model answered, long enough to be made smaller."""
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    lines = [
        ScriptedReply(text=f"Bed {n} is fine." + " It grows." * 40, usage=Usage(plain=9, read=n)) for n in range(8)
    ]

    async def talk() -> None:
        async with lamella.open(store, model="anthropic:claude-opus-5-5", provider=ScriptedProvider(*lines)) as engine:
            conversation = await engine.conversation(CHAT, layout="in_place", window=5_000, reserve=1_500)
            for number in range(len(lines)):
                text = f"What of bed {number}?" + " It was dug in March." * 12
                async for _ in conversation.send(text, attach=[] if number else [NOTE]):
                    pass

    asyncio.run(talk())
    return store


def printed(*words: str) -> str:
    ran = run(*words, "--json")
    assert (ran.exit, ran.err) == (0, "")
    return ran.out


def dump(body: Struct) -> str:
    return json.dumps(to_builtins(body), ensure_ascii=False)


def written(body: Struct) -> str:
    return json.dumps({"lamella": 1, **to_builtins(body)}, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("example", ["walkthrough", "edits", "long"])
def test_replay_prints_json_of_turns_and_totals(example: str) -> None:
    file = EXAMPLES / f"{example}.json"
    transcript = load_transcript(file)
    totals = ReplayTotals()
    turns = list(totals.add_each_turn(replay_transcript(transcript, overrides={}, base_folder=EXAMPLES)))
    head = dump(replay_header_to_json(transcript.conversation, turns[0])).removesuffix("}")
    bodies = ",\n".join(dump(turn_prompt_to_json(turn)) for turn in turns)
    whole = f'{head}, "turns": [\n{bodies}],\n"totals": {dump(replay_totals_to_json(totals))}}}\n'
    assert printed("replay", str(file)) == whole


def test_replay_of_nothing_prints_head_and_zero_totals(tmp_path: Path) -> None:
    file = tmp_path / "empty.json"
    file.write_text('{"lamella": 1, "turns": []}', encoding="utf-8")
    body = ReplayJson(conversation="chat", layout=None, turns=[], totals=replay_totals_to_json(ReplayTotals()))
    assert json.loads(printed("replay", str(file))) == as_json(body)


def test_ledger_prints_json_of_its_rows(url: str) -> None:
    backend = open_backend(url, create=False)
    conversation_log = Conversation.open(backend, CHAT)
    body = ledger_to_json(
        conversation_log.id,
        build_ledger_rows(conversation_log.turns(), conversation_log.ledger()),
        conversation_log.profile_mismatches(),
    )
    backend.store.close()
    assert printed("ledger", CHAT, "--store", url) == written(body)


def test_plan_recall_and_undo_print_their_json(url: str) -> None:
    backend = open_backend(url, create=False)
    conversation_log = Conversation.open(backend, CHAT)
    plan, key = conversation_log.plan(to=0.2), conversation_log.id
    assert plan.receipt is not None
    assert printed("compact", CHAT, "--plan", "--to", "0.2", "--store", url) == written(
        plan_to_json(key, plan, committed=False)
    )
    assert printed("compact", CHAT, "--to", "0.2", "--store", url) == written(plan_to_json(key, plan, committed=True))
    found = Conversation.open(backend, CHAT).recall("beans April")
    assert found
    assert printed("recall", CHAT, "beans April", "--store", url) == written(recall_to_json(key, "beans April", found))
    assert printed("compact", CHAT, "--undo", "--store", url) == written(
        UndoResultJson(conversation=key, undone=[plan.receipt.id])
    )
    backend.store.close()


def test_chat_list_and_stats_print_their_json(url: str) -> None:
    backend = open_backend(url, create=False)
    conversations = ConversationRepository(backend.store, backend.clock)
    assert printed("chats", "list", "--store", url) == written(
        ConversationListJson(chats=conversations_to_json(conversations.list_conversations()))
    )
    assert printed("store", "stats", "--store", url) == written(stats_to_json(conversations.stats()))
    backend.store.close()


def test_error_prints_its_json(url: str) -> None:
    backend = open_backend(url, create=False)
    with pytest.raises(LamellaError) as error:
        ConversationRepository(backend.store, backend.clock).resolve_conversation("gone")
    backend.store.close()
    ran = run("ledger", "gone", "--json", "--store", url)
    hint = error.value.hint_for(CliHints(url))
    assert (ran.exit, ran.out) == (2, written(error_to_json(error.value, hint=hint)))
