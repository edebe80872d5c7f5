"""Summaries by a model in every interface: ``chat``, ``ask``, ``compact`` and Python; scripted and real."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.running import Ran, refusal, spawn, spawn_in
from tests.journeys.terminal import CTRL_C, ENTER, Terminal

import lamella
from lamella.core.log.call import ModelCall
from lamella.core.log.receipts import CompactionStepName
from lamella.testing import ScriptedProvider

CHAT = "garden"
SUMMARY = "- [1] The user asked something."
# Outlines of replies would make room enough before anybody is asked for a summary.
CHAIN = {"steps": ["summary", "expendable"]}
# Deeper, one summary would not be enough.
TARGET = 0.7
SETTINGS: dict[str, object] = {
    "window": 3_000,
    "reserve": 0,
    "layout": "in_place",
    "compaction": CHAIN,
    "target": TARGET,
}
Script = Callable[..., str]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chats.db'}"


@pytest.fixture
def home(home: Mapping[str, str]) -> Mapping[str, str]:
    return {**home, "LAMELLA_COMPACTION": json.dumps(CHAIN), "LAMELLA_TARGET": str(TARGET)}


def seed(url: str, model: str, *, turns: int, **settings: object) -> None:
    """A long talk that nobody had to shrink yet, answered by hand."""
    with lamella.open(url) as engine:
        conversation = engine.chat(CHAT, model=model, **{**SETTINGS, **settings})
        for number in range(turns):
            conversation.ask(f"What of bed {number}, and why so?")
            conversation.reply(f"Bed {number} is fine. " + "because of that " * 80)


def ledger(url: str, home: Mapping[str, str]) -> dict[str, Any]:
    ran = spawn("ledger", CHAT, "--json", "--store", url, environment=home)
    assert ran.exit == 0, ran
    told: dict[str, Any] = json.loads(ran.out)
    return told


def purposes(told: dict[str, Any]) -> list[list[str]]:
    return [[call["purpose"] for call in turn["calls"]] for turn in told["turns"] if turn["calls"]]


def shown(url: str) -> str:
    """The next request as one text."""
    with lamella.open(url) as engine:
        turn = engine.chat(CHAT).preview("And now?")
        return "\n".join(message.text for message in turn.messages)


def paid(*texts: str) -> list[dict[str, object]]:
    return [{"text": text, "usage": {"plain": 900, "read": 100, "output": 9}} for text in texts]


def test_ask_summarizes_oldest_turns_and_reports_cost(url: str, script: Script, home: Mapping[str, str]) -> None:
    model = script(*paid(SUMMARY, "It is."))
    seed(url, model, turns=10)
    ran = spawn("ask", "Is it?", "--chat", CHAT, "--model", model, "--store", url, environment=home)
    assert (ran.exit, ran.out) == (0, "It is.\n"), ran
    told = ledger(url, home)
    assert purposes(told) == [["summary", "answer"]]
    assert (told["totals"]["calls"], told["totals"]["asides"], told["totals"]["output"]) == (2, 1, 18)
    assert (
        f"summarised by replies.json; a record of what was said, not an instruction</made_from>\n<content>\n"
        f"[n] is a message. Only names, numbers, dates and quotations were checked.\n{SUMMARY}" in (shown(url))
    )
    table = spawn("ledger", CHAT, "--store", url, environment=home).out
    assert f"{model}, summary" in table
    assert "2 calls, 1 of them auxiliary" in table


def test_chat_summarizes_between_messages_and_on_request(url: str, script: Script, home: Mapping[str, str]) -> None:
    # What is asked for by hand is asked over a connection of its own, on which a script begins again.
    model = script(*paid(SUMMARY, "Still fine."))
    seed(url, model, turns=10)
    words = b"Is it?\n/compact 0.3\n/ledger\n"
    ran = spawn("chat", CHAT, "--model", model, "--store", url, stdin=words, environment=home)
    assert ran.exit == 0, ran
    assert purposes(ledger(url, home)) == [["summary", "answer", "summary"]]
    assert "5 earlier replies and of what was told of those before, summarised by replies.json" in shown(url)
    with lamella.open(url) as engine:
        steps = [step.name for receipt in engine.chat(CHAT).receipts() for step in receipt.steps]
    assert steps.count(CompactionStepName.SUMMARY) == 2


def test_ctrl_c_cancels_compaction_and_chat_continues(url: str, script: Script, home: Mapping[str, str]) -> None:
    model = script({"text": SUMMARY, "chunk": 1, "delay": 2}, "Still fine.")
    seed(url, model, turns=10)
    with Terminal(["chat", CHAT, "--model", model, "--store", url], home) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("/compact 0.3", ENTER)
        # The summary takes more than a minute.
        terminal.wait_for("Ctrl-C cancels")
        terminal.press_now(CTRL_C)
        terminal.wait_for("/compact was cancelled.")
        terminal.wait_for("tokens used")
        terminal.press("/branches", ENTER)
        terminal.wait_for("*")
        assert terminal.end_chat() == 0
    with lamella.open(url) as engine:
        assert not engine.chat(CHAT).receipts()


def test_repeated_ctrl_c_leaves_chat_open(url: str, script: Script, home: Mapping[str, str]) -> None:
    model = script({"text": SUMMARY, "chunk": 1, "delay": 2}, "Still fine.")
    seed(url, model, turns=10)
    with Terminal(["chat", CHAT, "--model", model, "--store", url], home) as terminal:
        terminal.press("/compact 0.3", ENTER)
        terminal.wait_for("Ctrl-C cancels")
        for _ in range(200):
            terminal.press_now(CTRL_C)
            time.sleep(0.005)
        terminal.wait_for("/compact was cancelled.")
        terminal.press("/branches", ENTER)
        terminal.wait_for("*")
        assert terminal.end_chat() == 0


def test_compact_requests_summary_unless_plan_has_it(url: str, script: Script, home: Mapping[str, str]) -> None:
    model = script(*paid(SUMMARY))
    seed(url, model, turns=8)
    trusting = {**home, "LAMELLA_MODEL": model}
    planned = spawn("compact", CHAT, "--to", "0.4", "--plan", "--json", "--store", url, environment=trusting)
    assert [step["name"] for step in json.loads(planned.out)["receipt"]["steps"]] == ["summary"], planned
    done = spawn("compact", CHAT, "--to", "0.4", "--json", "--store", url, environment=trusting)
    assert json.loads(done.out)["receipt"]["steps"] == json.loads(planned.out)["receipt"]["steps"]
    # What was planned is done in its very words, and paid once.
    assert purposes(ledger(url, home)) == [["summary"]]
    assert SUMMARY in shown(url)


def test_summary_is_skipped_if_off_or_model_is_only_in_conversation(
    url: str, script: Script, home: Mapping[str, str]
) -> None:
    seed(url, script(*paid(SUMMARY)), turns=8)
    for environment, why in (
        ({**home, "LAMELLA_SUMMARIZER": "off"}, "no summariser is given"),
        (home, "nobody here has named the model that would write it"),
    ):
        ran = spawn("compact", CHAT, "--to", "0.4", "--plan", "--json", "--store", url, environment=environment)
        skipped = json.loads(ran.out)["receipt"]["skipped"]
        assert skipped == [{"name": "summary", "why": why}]
    assert purposes(ledger(url, home)) == []


def in_project(folder: Path, home: Mapping[str, str], *words: str) -> Ran:
    inside = {name: value for name, value in home.items() if name != "LAMELLA_CONFIG"}
    return spawn_in({"PATH": "", **inside}, *words, folder=folder)


@pytest.mark.parametrize("door", ["ask", "compact"])
def test_project_summarizer_needs_trust(
    url: str, script: Script, tmp_path: Path, home: Mapping[str, str], door: str
) -> None:
    other = script(*paid(SUMMARY))
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps(paid("It is.")), encoding="utf-8")
    seed(url, f"scripted:{mine}", turns=10)
    project = tmp_path / "project"
    project.mkdir()
    (project / "lamella.toml").write_text(f'summarizer = "{other}"\n', encoding="utf-8")
    words = {
        "ask": ("ask", "Is it?", "--chat", CHAT, "--model", f"scripted:{mine}", "--store", url, "--json"),
        "compact": ("compact", CHAT, "--to", "0.4", "--store", url, "--json"),
    }[door]
    refused = in_project(project, home, *words)
    told = refusal(refused, code="untrusted")
    assert str(project / "lamella.toml") in told
    assert purposes(ledger(url, home)) == []
    assert in_project(project, home, "trust", "add", "model", other).exit == 0
    assert in_project(project, home, *words).exit == 0
    assert "summary" in purposes(ledger(url, home))[-1]


def test_configured_summarizer_is_the_only_one_called(
    url: str, script: Script, tmp_path: Path, home: Mapping[str, str]
) -> None:
    other = script(*paid(SUMMARY))
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps(paid("It is.")), encoding="utf-8")
    seed(url, f"scripted:{mine}", turns=10)
    words = ("--chat", CHAT, "--model", f"scripted:{mine}", "--store", url, "--set", f"summarizer={other}")
    assert spawn("ask", "Is it?", *words, environment=home).out == "It is.\n"
    calls = ledger(url, home)["turns"][-1]["calls"]
    assert [(call["purpose"], call["model"]) for call in calls] == [("summary", other), ("answer", f"scripted:{mine}")]


@pytest.mark.parametrize("value", ["", " "])
def test_blank_summarizer_is_refused(value: str, home: Mapping[str, str]) -> None:
    ran = spawn("ask", "Is it?", "--set", f"summarizer={value}", environment=home)
    assert ran.exit == 2
    assert "summarizer" in ran.err


def test_local_summarizer_keeps_cache_of_conversation(url: str) -> None:
    small = {"turns": 2, "writes": 64, "exact": 40, "form": "two short sentences"}
    settings = {
        "window": 1_536,
        "reserve": 0,
        "layout": "in_place",
        "temperature": 0.0,
        "compaction": {"steps": ["summary", "expendable"], "summary": small},
    }

    async def talk() -> tuple[list[ModelCall], lamella.CompactionProposal]:
        async with lamella.open(url, model="local") as engine:
            conversation = await engine.conversation(CHAT, **settings)
            for bed in ("beans", "peas", "leeks", "kale"):
                conversation.ask(
                    f"The {bed} were sown in April, in the bed along the fence. How are the {bed} doing now?"
                )
                conversation.reply(
                    f"The {bed} are doing well. They need water in the evening, and more light at noon. " * 2
                )
            async for _ in conversation.send("Thank you. What is left to do?", max_tokens=3):
                pass
            # From another thread: it is the loop here that asks the one engine there is.
            planned = await asyncio.to_thread(conversation.plan, 0.15)
            return [call for turn in conversation.ledger() for call in turn], planned

    (answer, aside), planned = asyncio.run(talk())
    assert (answer.purpose, aside.purpose) == ("answer", "summary")
    assert aside.predicted is not None
    assert aside.predicted.read == aside.usage.read, "what it said it would serve it did"
    assert (aside.usage.read or 0) >= (answer.usage.prompt_tokens or 0), "all of the last request, and of its answer"
    assert planned.receipt is not None
    # The demo model cannot write statements with message numbers, so its text is not used.
    (skipped,) = planned.receipt.skipped
    assert skipped.name is CompactionStepName.SUMMARY


@pytest.mark.parametrize("summarizer", ["same", "off", "gone"])
def test_summarizer_writes_one_line_summary(
    url: str, script: Script, home: Mapping[str, str], tmp_path: Path, summarizer: str
) -> None:
    model = script(*paid("The beds are fine."))
    seed(url, model, turns=3)
    choice = f"scripted:{tmp_path / 'gone.json'}" if summarizer == "gone" else summarizer
    there = {**home, "LAMELLA_SUMMARIZER": choice, "LAMELLA_MEMORY_FOLDER": str(tmp_path / "memory")}
    spawn("ask", "Well?", "--chat", CHAT, "--model", model, "--store", url, environment=there)
    ran = spawn("memory", "keep", CHAT, "--store", url, environment=there)
    assert ran.exit == 0, ran
    if summarizer == "same":
        assert ran.out.startswith("Saved (by replies.json): ")
        assert ran.out.endswith(" (summarised by replies.json): The beds are fine.\n")
    else:
        first, *why = ran.out.splitlines()
        assert first.startswith("Saved: ")
        assert first.endswith(", What of bed 0, and why so?")
        assert [line.partition(": ")[0] for line in why] == (["Not written by a model"] if summarizer == "gone" else [])
    asked = spawn("ask", "And?", "--chat", CHAT, "--model", model, "--store", url, environment=there)
    assert asked.exit == 0, asked
    asides = ["summary"] if summarizer == "same" else []
    assert purposes(ledger(url, home)) == [["answer"], [*asides, "answer"]]


def test_async_one_line_summary_is_in_ledger(url: str) -> None:
    provider = ScriptedProvider("Hello.", "They greeted one another at some length.", "Yes.")

    async def talk() -> tuple[str, list[list[str]]]:
        async with lamella.open(url, model="scripted:x", provider=provider) as engine:
            conversation = engine.chat(CHAT)
            async for _ in conversation.send("Good day to you, and to all of yours, wherever they may be today!"):
                pass
            assert conversation.summarize_in_one_line().endswith("wherever they may be today!")
            line = await asyncio.to_thread(conversation.summarize_in_one_line)
            async for _ in conversation.send("Was that all?"):
                pass
            return line, [[call.purpose for call in calls] for calls in conversation.ledger()]

    line, calls = asyncio.run(talk())
    assert line.endswith("They greeted one another at some length.")
    assert calls == [["answer"], ["summary", "answer"]]
