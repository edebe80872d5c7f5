"""``lamella ledger``: what was predicted, reported, judged, billed and timed, for people and for programs."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.contracts.repository import doc
from tests.journeys.running import refusal, run, spawn
from tests.unit.raw_events import write_raw

import lamella
from lamella import Note, Tool, ToolOutput
from lamella.conversation.turn import ModelAnswer
from lamella.core.log.events.kinds import EventKind
from lamella.core.log.turn import MessageAuthor, compute_message_id
from lamella.core.messages import CacheDiagnosis, ModelReply, StopReason, ToolCall, Usage
from lamella.core.prompt.prompt import RENDERER_VERSION
from lamella.errors import ProviderOverloadedError
from lamella.providers.scripted import ScriptedProvider, ScriptedReply
from lamella.wiring import open_backend

MODEL = "anthropic:claude-opus-5-5"
NOTE = Note(path="garden.md", text="# Garden\n" + "Beans along the fence, and peas behind them.\n" * 60)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chats.db'}"


def usage(*, plain: int, read: int = 0, write: int = 0) -> Usage:
    return Usage(plain=plain, read=read, write=write, output=5)


def send(url: str, *lines: ScriptedReply | str, model: str = MODEL, layout: str = "in_place") -> None:
    """One turn for each line of the script, with the same note."""

    async def talk() -> None:
        async with lamella.open(url, model=model, provider=ScriptedProvider(*lines)) as engine:
            conversation = await engine.conversation("demo", layout=layout)
            for number in range(len(lines)):
                async for _ in conversation.send(f"Question {number + 1}", attach=[NOTE]):
                    pass

    asyncio.run(talk())


def show(url: str) -> list[str]:
    ran = run("ledger", "demo", "--store", url)
    assert (ran.exit, ran.err) == (0, "")
    return ran.out.splitlines()


def test_each_call_is_shown_with_prediction_report_verdict_layers_money_and_time(url: str) -> None:
    send(
        url,
        ScriptedReply(text="one", usage=usage(plain=9, write=700)),
        ScriptedReply(text="two", usage=usage(plain=30, read=709)),
    )
    lines = show(url)
    second = lines[lines.index("turn 2  Question 2") :]
    bar, predicted, reported, verdict, layers, money, time = (line.strip() for line in second[1:8])
    assert re.fullmatch(r"█+░ +739  anthropic:claude-opus-5-5", bar)
    assert re.fullmatch(r"predicted [67]\d\d cached", predicted)
    assert reported == "reported  read 709 · write 0 · plain 30 · output 5"
    assert verdict == "verdict   hit"
    assert re.match(r"layers    L2_PREVIOUS \d+ · L3_TURN \d+ · L4_STRIP \d+ · L5_USER \d+ · overhead \d+$", layers)
    assert re.match(r"money     billed \$0\.\d+ · input alone: predicted \$0\.\d+, naive \$0\.\d+, perfect", money)
    assert re.match(r"time      built in \d+\.\d\d s · first word \d+\.\d\d s · all \d+\.\d\d s$", time)
    assert lines[-2].startswith("2 turns · 2 calls · predicted ")
    assert "read 709 (49% of the input) · write 700 · plain 39 · output 10" in lines[-2]


def test_unreported_usage_is_unknown_not_zero(url: str) -> None:
    send(url, "one", "two")
    text = "\n".join(show(url))
    assert text.count("reported  read unknown · write unknown · plain unknown · output unknown") == 2
    assert "the provider does not say what was cached" in text
    totals = json.loads(run("ledger", "demo", "--json", "--store", url).out)["totals"]
    assert (totals["read"], totals["plain"], totals["cache_read_share"], totals["billed"]) == (None, None, None, None)
    assert totals["unpriced_calls"] == 2


def test_contradictory_usage_is_reported_with_fault(url: str) -> None:
    send(url, ScriptedReply(text="one", usage=Usage(fault="read 9 of 3 tokens")))
    assert "  reported  invalid: read 9 of 3 tokens" in show(url)


def test_own_prefix_change_is_named_with_cause(url: str) -> None:
    send(
        url,
        ScriptedReply(text="one", usage=usage(plain=700)),
        ScriptedReply(text="two", usage=usage(plain=700)),
        layout="library",
    )
    assert "  verdict   the prefix changed: artifact_added(garden.md)" in show(url)
    call = json.loads(run("ledger", "demo", "--json", "--store", url).out)["turns"][1]["calls"][0]
    assert call["verdict"] == {
        "outcome": "moved",
        "cause": "artifact_added",
        "segment": "garden.md",
        "ours": True,
        "says": "the prefix changed: artifact_added(garden.md)",
    }


def test_provider_diagnosis_is_shown_beside_verdict(url: str) -> None:
    diagnosis = CacheDiagnosis(verdict="miss", reason="messages_changed", missed=12)
    send(url, ScriptedReply(text="one", usage=usage(plain=700), diagnosis=diagnosis))
    assert "  provider  says: messages_changed" in show(url)


def test_turns_without_a_call_are_shown_as_such(url: str) -> None:
    send(url, ScriptedReply(text="one", usage=usage(plain=700)))
    with lamella.open(url) as engine:
        conversation = engine.chat("demo")
        conversation.ask("By hand")
        conversation.reply("Answered by hand.")
        conversation.ask("Open")
    lines = show(url)
    assert lines[lines.index("turn 2  By hand") + 1] == "  answered without a recorded request"
    assert lines[lines.index("turn 3  Open") + 1] == "  no answer yet"
    turns = json.loads(run("ledger", "demo", "--json", "--store", url).out)["turns"]
    assert [(turn["standing"], len(turn["calls"])) for turn in turns] == [("called", 1), ("no_call", 0), ("waiting", 0)]


def test_model_without_a_price_has_tokens_and_no_money(url: str) -> None:
    send(url, ScriptedReply(text="one", usage=usage(plain=700)), model="openai-compatible:http://localhost:1/v1#house")
    lines = show(url)
    assert "  money     no price known" in lines
    assert lines[-1].startswith("no price known")
    assert "reported  read 0 · write 0 · plain 700 · output 5" in "\n".join(lines)


def test_prefix_that_moved_without_a_trigger_is_warned_about(url: str) -> None:
    send(url, ScriptedReply(text="one", usage=usage(plain=700)))
    _add_unexplained(url)
    lines = show(url)
    assert lines[-1] == ("warning: The prefix changed in turn 2 for an unknown reason. Please report this.")
    assert json.loads(run("ledger", "demo", "--json", "--store", url).out)["unexplained"] == [2]


def _add_unexplained(url: str) -> None:
    """A turn as a faulty version would have written it: nothing in this one does."""
    backend = open_backend(url)
    try:
        with lamella.open(url) as engine:
            conversation = engine.chat("demo")
            conversation.ask("Strange")
            parent = conversation.head
        name = compute_message_id(conversation.id, parent=parent, role=MessageAuthor.REPLY, text="Odd")
        calls = [{"outcome": "unexplained", "cause": "history_edited", "model": MODEL}]
        event = write_raw(EventKind.REPLY, "2026-11-16T10:00:00Z", id=name, parent=parent, text="Odd", calls=calls)
        backend.store.append(conversation.id, event, expected=len(backend.store.load(conversation.id)))
    finally:
        backend.store.close()


def test_retries_are_counted(url: str) -> None:
    busy = ScriptedReply(error=ProviderOverloadedError("The provider has too much to do.", hint="Wait.", wait=0))
    send(url, ScriptedReply(text="one", usage=usage(plain=700)))

    async def talk() -> None:
        async with lamella.open(url, model=MODEL, provider=ScriptedProvider(busy, "two")) as engine:
            async for _ in engine.chat("demo").send("Question 2"):
                pass

    asyncio.run(talk())
    assert "1 retry" in "\n".join(show(url))
    assert json.loads(run("ledger", "demo", "--json", "--store", url).out)["totals"]["retries"] == 1


def test_stopped_answer_shows_how_it_ended(url: str) -> None:
    async def talk() -> None:
        async with lamella.open(
            url, model=MODEL, provider=ScriptedProvider(ScriptedReply(text="a long answer", chunk_size=2))
        ) as e:
            events = e.chat("demo").send("Question")
            async for event in events:
                if event.text:
                    break
            await events.aclose()

    asyncio.run(talk())
    assert "ended: stopped" in "\n".join(show(url))


def test_every_field_of_the_json_is_documented(url: str) -> None:
    diagnosis = CacheDiagnosis(verdict="miss", reason="messages_changed", missed=12)
    send(url, ScriptedReply(text="one", usage=usage(plain=700), diagnosis=diagnosis))
    told = set(re.findall(r"`(\w+)`", doc("reference/json-output.md")))
    printed = json.loads(run("ledger", "demo", "--json", "--store", url).out)
    layers = set(printed["turns"][0]["calls"][0].pop("by_layer"))
    assert layers >= {"L1_SYSTEM", "overhead", "tools"}
    assert sorted(_keys(printed) - told) == []


def _keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {name for inner in value.values() for name in _keys(inner)}
    return {name for inner in value for name in _keys(inner)} if isinstance(value, list) else set()


def test_missing_conversation_is_reported(url: str) -> None:
    spawn("store", "migrate", "--store", url)
    ran = spawn("ledger", "nobody", "--json", "--store", url)
    assert refusal(ran, code="bad_call") == "There is no conversation 'nobody'."


def test_hashes_and_ratios_are_shown_with_debug(url: str, tmp_path: Path) -> None:
    send(
        url,
        ScriptedReply(text="one", usage=usage(plain=700)),
        ScriptedReply(text="two", usage=usage(plain=30, read=709)),
    )
    lines = "\n".join(show(url))
    body = json.loads(run("ledger", "demo", "--json", "--store", url).out)
    sent = body["turns"][1]["sent"]
    assert (sent["renderer"], sent["dedup_ratio"], sent["unparsed"]) == (RENDERER_VERSION, 1.0, 0)
    short = {name: digest.removeprefix("sha256:")[:8] for name, digest in sent["hashes"].items()}
    told = f"L1 {short['L1_SYSTEM']} · L2 {short['L2_PREVIOUS']} · prefix {short['prefix']} · whole {short['whole']}"
    assert f"  hashes    {told} · renderer {RENDERER_VERSION}" in lines
    assert "  segments  L2 1 · L3 1 · L4 2 · L5 1 · referred 100%" in lines
    script = tmp_path / "script.json"
    script.write_text('["Hello yourself."]', encoding="utf-8")
    asked = spawn("ask", "Hello?", "--debug", "--model", f"scripted:{script}", "--chat", "other", "--store", url)
    assert asked.exit == 0, asked.err
    (line,) = [line for line in asked.err.splitlines() if line.startswith("debug: turn ")]
    assert "cause=first_turn triggered=1" in line
    assert "Hello" not in line


def test_profile_mismatch_is_reported_with_corrected_lines(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(
        url,
        ScriptedReply(text="one", usage=usage(plain=9, write=700)),
        ScriptedReply(text="two", usage=usage(plain=430, read=309)),
    )
    lines = show(url)
    at = lines.index(f"{MODEL} differs from its profile:")
    assert lines[at + 1] == "  turn 2: 309 tokens came from the cache, which should keep nothing below 512"
    pasted = lines[at + 3 :]
    assert pasted[:2] == ["[[model]]", 'match = "claude-opus-5-5"']
    body = json.loads(run("ledger", "demo", "--store", url, "--json").out)
    assert [one["facts"] for one in body["doubts"]] == [{"minimum": 309}]
    file = tmp_path / "facts.toml"
    file.write_text("\n".join(pasted), encoding="utf-8")
    monkeypatch.setenv("LAMELLA_MODEL_FACTS", str(file))
    assert "differs from its profile" not in "\n".join(show(url))


def test_layout_plan_is_shown_with_its_turn(url: str) -> None:
    send(url, "one", "two", layout="auto")
    plans = [line.split(maxsplit=1)[1] for line in show(url) if line.startswith("  plan ")]
    assert plans[0] == "nothing was sent before"
    turns = json.loads(run("ledger", "demo", "--store", url, "--json").out)["turns"]
    assert [turn["placement"]["why"] for turn in turns] == plans
    send(url, "three", layout="in_place")
    assert json.loads(run("ledger", "demo", "--store", url, "--json").out)["turns"][-1]["placement"] is None


def test_shared_system_prompts_are_listed_with_their_gaps_and_cache_lifetime(url: str) -> None:
    start = datetime.now(UTC) - timedelta(hours=9)
    with lamella.open(url) as engine:
        for number, minutes in enumerate((0, 1, 21, 261)):
            chat = engine.chat(f"chat {number}", system="Answer briefly. " * 1_000, model=MODEL, layout="auto")
            chat.ask("Hello", at=start + timedelta(minutes=minutes))
    listed = run("ledger", "--prefixes", "--store", url)
    assert (listed.exit, listed.err) == (0, "")
    head, gaps, cached = listed.out.splitlines()
    assert re.fullmatch(
        r"[0-9a-f]{8}  anthropic:claude-opus-5-5, [\d,]+ tokens, last used \d{4}-\d\d-\d\d \d\d:\d\d", head
    )
    assert gaps.split(maxsplit=1) == ["gaps", "1 within 5 min · 1 within 60 min · 1 longer"]
    assert cached.split() == ["cached", "for", "60", "min"]


def test_ledger_without_a_conversation_says_what_to_name(url: str) -> None:
    ran = run("ledger", "--store", url)
    assert ran.exit != 0
    assert "hint: Name one, or add --prefixes" in ran.err


def test_cut_of_tool_results_is_listed_with_its_reason_and_what_it_saves(url: str) -> None:
    with lamella.open(url) as engine:
        chat = engine.chat("demo", model=MODEL, layout="auto", window=10**6)
        at = datetime(2026, 11, 1, tzinfo=UTC)
        tools = [Tool(name="read_file"), chat.recall_tool]
        chat.ask("Do it.", tools=tools, at=at)
        for number in range(4):
            call = ToolCall(id=f"c{number}", name="read_file", arguments=json.dumps({"path": f"{number}.py"}))
            chat.reply(ModelAnswer(reply=ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(call,))), at=at)
            chat.submit_tool_outputs([ToolOutput(call=call.id, output=f"{number} line\n" * 1_500)], at=at)
        chat.reply("Done.", at=at)
        turn = chat.ask("And now?", at=at + timedelta(hours=2))
        assert turn.compaction is not None
    cut = next(line for line in show(url) if line.strip().startswith("cut"))
    saved = turn.compaction.tokens_before - turn.compaction.tokens_after
    assert cut.split(maxsplit=1)[1].startswith("3 tool results cleared: unused, and clearing costs nothing now")
    assert f"({saved:,} tokens leave)" in cut
    body = json.loads(run("ledger", "demo", "--store", url, "--json").out)
    (listed,) = body["turns"][1]["cuts"]
    assert (listed["receipt"], listed["results"], listed["saved"]) == (turn.compaction.id, 3, saved)
