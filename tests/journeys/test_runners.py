"""Runners in each interface: chosen, listed, stopped between two rounds, and resumed in another process."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import SECONDS, run, spawn
from tests.runner_provider import Speaker

import lamella
from lamella import Conversation, TurnEvent
from lamella.providers import ToolCall
from lamella.testing import ScriptedReply

MODEL = "anthropic:claude-opus-5-5"
SEARCHES = ("beans", "sowing", "frost in May")
ANSWER = "After the frost, in May."

# A program with an agent that is killed: in the tool of a round, once its result is written down, or never.
PROGRAM = """
import asyncio, json, os, signal, sys
import lamella
from lamella.providers import ToolCall
from lamella.testing import ScriptedReply, ScriptedProvider

url, model, searches, answer, dies_in, dies_after = json.loads(sys.argv[1])
lines = [
    ScriptedReply(calls=(ToolCall(id=f"c{at}", name="search_notes", arguments=json.dumps({"query": query})),))
    for at, query in enumerate(searches)
]
ran = 0

def search_notes(query: str) -> str:
    "Searches the notes."
    global ran
    ran += 1
    if ran == dies_in:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{query}: a passage."

async def main():
    provider = ScriptedProvider(*lines, answer)
    async with lamella.open(url, model=model, provider=provider) as engine:
        chat = await engine.conversation("garden", layout="in_place")
        given = 0
        async for event in chat.send("When are beans sown?", runner="agent", tools=[search_notes]):
            given += event.output is not None
            if given and given == dies_after:
                os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def search_notes(query: str) -> str:
    """Searches the notes."""
    return f"{query}: a passage."


def search(at: int) -> ScriptedReply:
    arguments = json.dumps({"query": SEARCHES[at]})
    return ScriptedReply(calls=(ToolCall(id=f"c{at}", name="search_notes", arguments=arguments),))


def play(url: str, *, dies_in: int = 0, dies_after: int = 0) -> int:
    told = json.dumps([url, MODEL, SEARCHES, ANSWER, dies_in, dies_after])
    words = [sys.executable, "-c", PROGRAM, told]
    return subprocess.run(words, check=False, timeout=SECONDS, capture_output=True).returncode


def open_chat(url: str, *lines: ScriptedReply | str) -> tuple[Conversation, Speaker]:
    speaker = Speaker(*lines)
    return lamella.open(url, model=MODEL, provider=speaker).chat("garden"), speaker  # type: ignore[arg-type]


def send(chat: Conversation) -> None:
    async def main() -> None:
        async for _ in chat.send("When are beans sown?", runner="agent", tools=[search_notes]):
            pass

    asyncio.run(main())


def resume(chat: Conversation, **given: object) -> list[TurnEvent]:
    async def main() -> list[TurnEvent]:
        return [event async for event in chat.resume(**given)]  # type: ignore[arg-type]

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("dies_in", "dies_after"),
    [(1, 0), (0, 1), pytest.param(2, 0, marks=pytest.mark.long), (0, 2), pytest.param(3, 0, marks=pytest.mark.long)],
)
def test_agent_killed_between_rounds_continues_the_same(tmp_path: Path, dies_in: int, dies_after: int) -> None:
    killed = f"sqlite:///{tmp_path}/killed.db"
    assert play(killed, dies_in=dies_in, dies_after=dies_after) == -9
    left = dies_in - 1 if dies_in else dies_after
    waits = 1 if dies_in else 0
    conversation, speaker = open_chat(killed, *(search(at) for at in range(left + waits, len(SEARCHES))), ANSWER)
    resume(conversation, tools=[search_notes])
    through, unbroken = open_chat("memory:", *(search(at) for at in range(len(SEARCHES))), ANSWER)
    through.set(layout="in_place")
    send(through)
    assert speaker.requests[-1].messages == unbroken.requests[-1].messages
    assert speaker.requests[-1].tools == unbroken.requests[-1].tools
    for one in (conversation, through):
        assert [record.reply and record.reply.text for record in one.turns()] == [ANSWER]
    rounds = [[(made.usage, made.stop) for made in one.ledger()[-1]] for one in (conversation, through)]
    assert rounds[0] == rounds[1]


def test_turn_interrupted_between_rounds_continues_in_terminal(
    tmp_path: Path, home: Mapping[str, str], script: Callable[..., str]
) -> None:
    url, model = f"sqlite:///{tmp_path}/chats.db", script("In May.")
    speaker = Speaker(search(0), search(1))
    conversation = lamella.open(url, model=model, provider=speaker).chat("garden")  # type: ignore[arg-type]

    async def leave() -> None:
        events = conversation.send("When are beans sown?", runner="agent", tools=[search_notes])
        async for event in events:
            if event.output is not None:
                break
        await events.aclose()

    asyncio.run(leave())
    shown = run("chats", "show", "garden", "--store", url).out
    assert f"`lamella chats resume garden --store {url}` continues it; a new message abandons it." in shown
    words = ("chat", "garden", "--store", url, "--model", model)
    talked = spawn(*words, stdin=b"/resume\n", environment=home)
    assert "`/resume` continues it; a new message abandons it." in talked.err
    assert talked.out == "In May.\n"
    assert "gives that up" not in run("chats", "show", "garden", "--store", url).out


def test_pending_question_continues_in_chat_and_script(
    tmp_path: Path, home: Mapping[str, str], script: Callable[..., str]
) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    model = script({"text": "In", "chunk": 1, "delay": 0.0}, "Yes.")
    home = {**home, "LAMELLA_MODEL": model}
    with lamella.open(url, model=model) as engine:
        engine.chat("one").ask("When?")
        engine.chat("two").ask("When?")
    resumed = spawn("chats", "resume", "one", "--store", url, environment=home)
    assert (resumed.exit, resumed.out) == (0, "In\n")
    talked = spawn("chat", "two", "--store", url, stdin=b"/resume\n/resume\n", environment=home)
    assert talked.out == "In\n"
    assert "error: No unanswered question." in talked.err
    nothing = spawn("chats", "resume", "one", "--store", url, environment=home)
    assert nothing.exit == 2
    assert nothing.err.splitlines()[0] == "error: No unanswered question."


def test_calls_and_results_are_printed_on_one_escaped_line_each(
    tmp_path: Path, home: Mapping[str, str], script: Callable[..., str]
) -> None:
    calls = [{"name": "sear\x1b[2Jch", "arguments": {"query": "x\x1b]0;owned\x07\u202e" * 99}}]
    model = script({"text": "Hm.", "calls": calls}, "In May.", "Yes.")
    words = ("chat", "tools", "--store", f"sqlite:///{tmp_path}/chats.db", "--model", model)
    ran = spawn(*words, "--runner", "agent", stdin=b"When?\n", environment=home)
    assert ran.out == "Hm.\nIn May.\n"
    lines = ran.err.splitlines()
    called, given = (next(line for line in lines if line.startswith(mark)) for mark in ("→", "←"))
    assert called.startswith("→ sear\\x1b[2Jch(")
    assert given.startswith("← sear\\x1b[2Jch failed: There is no tool sear\\x1b[2Jch.")
    assert max(map(len, (called, given))) < 200
    assert not {"\x1b", "\x07", "\u202e"} & set(ran.err)
    assert "agent]" in lines[-2]
    told = spawn(*words, "--json", stdin=b"Again?\n", environment=home)
    events = [json.loads(line) for line in told.out.splitlines()]
    assert [event["event"] for event in events if event["event"] in ("call", "result")] == ["call", "result"]


def test_runners_are_listed_selected_and_refused_in_each_interface(
    tmp_path: Path, home: Mapping[str, str], script: Callable[..., str]
) -> None:
    listed = json.loads(spawn("runners", "--json", environment=home).out)["runners"]
    assert {one["name"]: one["does"] for one in listed} == dict(lamella.open("memory:").runners())
    assert [one["name"] for one in listed if one["usual"]] == ["chat"]
    words = spawn("runners", environment={**home, "LAMELLA_RUNNER": "agent"}).out
    assert "* agent" in words
    store = ("--store", f"sqlite:///{tmp_path}/chats.db", "--model", script("One.", "Two."))
    typed = b"/runner\n/runner agent\nWhen?\n/runner nobody\n/runner chat\nWhy?\n"
    talked = spawn("chat", "talk", *store, stdin=typed, environment=home)
    assert "* chat " in talked.out
    assert "Runner from the next message on: agent" in talked.out
    assert "error: There is no runner 'nobody'." in talked.err
    stands = [line for line in talked.err.splitlines() if line.startswith("[")]
    assert [line.endswith("· agent]") for line in stands] == [True, False]
    for wrong in (("ask", "x"), ("chat", "other"), ("ask", "x", "--preview")):
        refused = spawn(*wrong, *(store[2:] if wrong[0] == "ask" else store), "--runner", "nobody", environment=home)
        assert refused.exit == 2
        assert "There is no runner 'nobody'" in refused.err


def test_unknown_runner_is_refused_before_model_is_opened(home: Mapping[str, str]) -> None:
    refused = spawn("ask", "x", "--runner", "nobody", environment=home)
    assert refused.err.splitlines()[0] == "error: There is no runner 'nobody' here."


def test_agent_with_demo_model_answers_without_tools_and_says_so(tmp_path: Path, home: Mapping[str, str]) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "beans.md").write_text("# Beans\n\nBeans were sown in May.\n")
    words = ("chat", "--runner", "agent", "--vault", str(notes), "--store", "memory:", "--max-tokens", "12")
    # A search that the message itself asks for: the model would take long to plan one.
    ran = spawn(*words, stdin=b"@vault When were the beans sown?\n", environment={**home, "LC_ALL": "C.UTF-8"})
    assert ran.exit == 0
    assert ran.out.strip()
    assert "note: local cannot call tools; " in ran.err
    assert " answers in place of agent." in ran.err
    assert os.environ.get("LAMELLA_RUNNER") is None


def test_agent_searches_reads_and_answers_in_three_rounds(
    tmp_path: Path, home: Mapping[str, str], script: Callable[..., str]
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "beans.md").write_text("# Beans\n\nBeans were sown in May, after the frost.\n")
    model = script(
        {"calls": [{"name": "search_notes", "arguments": {"query": "zebra"}}]},
        {"calls": [{"name": "search_notes", "arguments": {"query": "beans sown"}}]},
        {"text": "One moment.", "calls": [{"name": "read_note", "arguments": {"path": "beans.md"}}]},
        "In May (beans.md).",
    )
    store = ("--store", f"sqlite:///{tmp_path}/chats.db")
    words = ("chat", "garden", "--runner", "agent", "--vault", str(notes), "--model", model, *store)
    ran = spawn(*words, stdin=b"When were the beans sown?\n", environment=home)
    assert (ran.exit, ran.out) == (0, "One moment.\nIn May (beans.md).\n")
    shown = [line for line in ran.err.splitlines() if line.startswith(("→", "←"))]
    assert [line.split("(")[0].split(" returned")[0] for line in shown] == [
        "→ search_notes",
        "← search_notes",
        "→ search_notes",
        "← search_notes",
        "→ read_note",
        "← read_note",
    ]
    assert "Nothing found" in shown[1]
    assert "after the frost" in shown[3]
    kept = json.loads(run("chats", "show", "garden", *store, "--json").out)["turns"][0]
    given = [call["output"] for one in kept["rounds"] for call in one["calls"]]
    assert [text.endswith("[User query]:\nWhen were the beans sown?") for text in given] == [True, True, False]
    assert "agent" in ran.err.splitlines()[-2]


def test_turn_with_pending_vault_tools_continues_in_script(
    tmp_path: Path, home: Mapping[str, str], script: Callable[..., str]
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "beans.md").write_text("# Beans\n\nBeans were sown in May.\n")
    url, model = f"sqlite:///{tmp_path}/chats.db", script("In May.")
    calls = ScriptedReply(calls=(ToolCall(id="c", name="read_note", arguments='{"path": "beans.md"}'),))
    engine = lamella.open(url, model=model, vault=notes, provider=Speaker(calls))  # type: ignore[arg-type]
    conversation = engine.chat("garden", runner="agent")

    async def vanish() -> None:
        events = conversation.send("When?")
        async for event in events:
            if event.call is not None:
                return

    asyncio.run(vanish())
    conversation.reload()
    words = ("chats", "resume", "garden", "--vault", str(notes), "--store", url)
    resumed = spawn(*words, environment={**home, "LAMELLA_MODEL": model})
    assert (resumed.exit, resumed.out) == (0, "In May.\n")


def test_ask_prints_total_of_all_requests(tmp_path: Path, home: Mapping[str, str], script: Callable[..., str]) -> None:
    usage = {"plain": 100, "read": 0, "output": 10}
    calls = [{"name": "time_range", "arguments": {"when": "last week"}}]
    model = script({"calls": calls, "usage": usage}, {"text": "Then.", "usage": usage}, "Well.")
    asked = spawn("ask", "When?", "--runner", "agent", "--model", model, environment=home)
    assert (asked.exit, asked.out) == (0, "Then.\n")
    assert asked.err.splitlines()[-1] == "2 requests for this question · 200 tokens in · 20 out"
    plainly = spawn("ask", "When?", "--model", script("Then."), environment=home)
    assert "requests for this question" not in plainly.err


def test_pending_question_is_shown_with_resume_command(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url) as engine:
        engine.chat("garden").ask("When are beans sown?")
    told = spawn("chats", "show", "garden", "--store", url).out
    assert f"`lamella chats resume garden --store {url}` continues it" in told
