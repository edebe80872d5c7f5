"""Chats of every kind, as a client has them that sends its whole history each time: nothing of it is ever lost."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from tests.bodies import as_json

from lamella import Engine
from lamella import open as open_engine
from lamella.code import build_task_turn, get_task_state, solve_request
from lamella.errors import (
    AuthenticationError,
    ContextBudgetExceededError,
    ContextOverflowError,
    LamellaError,
    ProviderUnreachableError,
)
from lamella.testing import ScriptedProvider, ScriptedReply

TERMINAL = "hasTerminalErrorInstructionsBeenGiven"
CODEBASE = "hasCodebaseAnalysisInstructionsBeenGiven"
REGULAR = "hasRegularChatInteractionInstructionsBeenGiven"
FILES = [{"path": "beds.py", "content": "def water_beds():\n    return 'wet'\n"}]


class Tab:
    """A client's tab: its messages and its state, replaced by what each answer gives; ``kept`` names a conversation."""

    def __init__(self, folder: Path, *lines: ScriptedReply | str, kept: str | None = None) -> None:
        self.provider = ScriptedProvider(*lines)
        self.url = f"sqlite:///{folder / 'chats.db'}" if kept else "memory:"
        self.kept = kept
        self.messages: list[dict[str, object]] = []
        self.state: dict[str, object] = {}
        self.last: dict[str, Any] = {}

    def ask(self, prompt: str, **more: object) -> str:
        """Ask, and take over what comes back, as the documented client does."""
        body = {"prompt": prompt, "messages": self.messages, "chatState": self.state, **more}
        self.last = asyncio.run(self._ask(body | ({"conversation": self.kept} if self.kept else {})))
        self.messages = [{**message, "fullContent": message["content"]} for message in self.last["chatHistory"]]
        self.state = self.last["chatState"]
        return str(self.last["data"])

    async def _ask(self, body: dict[str, object]) -> dict[str, object]:
        async with self._open() as engine:
            return cast(dict[str, object], as_json(await solve_request(engine, body)))

    def _open(self) -> Engine:
        # Nothing here is worth waiting for.
        return open_engine(self.url, model="scripted:m", provider=self.provider, max_attempts=1)

    @property
    def sent(self) -> list[str]:
        return [message.text for message in self.provider.requests[-1].messages]

    @property
    def said(self) -> list[object]:
        return [message["content"] for message in self.messages]


KEPT = pytest.mark.parametrize("kept", [None, "garden"])


@KEPT
def test_ordinary_chat_keeps_its_context(tmp_path: Path, kept: str | None) -> None:
    tab = Tab(tmp_path, "one", "two", "three", kept=kept)
    for prompt in "abc":
        tab.ask(prompt)
    assert tab.sent[1:] == ["a", "one", "b", "two", "c"]
    assert tab.said == ["a", "one", "b", "two", "c", "three"]
    assert (tab.state[REGULAR], tab.state[TERMINAL], tab.state[CODEBASE]) == (True, False, False)


@KEPT
def test_functions_keep_code_and_context(tmp_path: Path, kept: str | None) -> None:
    tab = Tab(tmp_path, "it adds", "it is None", kept=kept)
    tab.ask("", kind="explain", codeSnippet="def add(a, b): return a + b")
    tab.ask("", kind="fix", codeSnippet="TypeError: None")
    assert any("def add(a, b)" in text for text in tab.sent)
    assert "it adds" in tab.sent
    assert (tab.state[TERMINAL], tab.state["given"]) == (True, ["explain", "fix"])


@KEPT
def test_codebase_is_still_there_for_the_questions_after(tmp_path: Path, kept: str | None) -> None:
    tab = Tab(tmp_path, "water_beds does", "it says wet", kept=kept)
    tab.ask("Who waters?", isCodebaseAnalysis=True, codebase=FILES)
    tab.ask("What does it say?")
    assert sum(text.count("def water_beds") for text in tab.sent) == 1
    assert (tab.state[CODEBASE], tab.state[REGULAR]) == (True, True)


@KEPT
def test_code_tasks_mix_in_one_conversation_with_separate_flags(tmp_path: Path, kept: str | None) -> None:
    tab = Tab(tmp_path, *"12345", kept=kept)
    seen = []
    asked: list[dict[str, object]] = [
        {"kind": "fix", "codeSnippet": "E1"}, {}, {"isCodebaseAnalysis": True, "codebase": FILES}, {},
    ]  # fmt: skip
    for more in asked:
        tab.ask("Who waters?", **more)
        seen.append((tab.state[TERMINAL], tab.state[REGULAR], tab.state[CODEBASE]))
    assert seen == [(True, False, False), (True, True, False), (True, True, True), (True, True, True)]
    assert len(tab.messages) == 8


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WINDOW": "2600", "RESERVE": "200", "SUMMARIZER": "off"}.items():
        monkeypatch.setenv(f"LAMELLA_{name}", value)


@KEPT
@pytest.mark.usefixtures("small")
def test_long_conversation_is_pruned_in_the_prompt_and_never_in_the_history(tmp_path: Path, kept: str | None) -> None:
    words = [f"Answer {number}. " + "Beans. " * 130 for number in range(12)]
    tab = Tab(tmp_path, *words, kept=kept)
    tab.messages = [{"role": "system", "content": "Be terse."}]
    for number in range(12):
        tab.ask(f"Question {number}?")
    assert [text for text in tab.said if str(text).startswith("Question")] == [f"Question {n}?" for n in range(12)]
    assert tab.said[0] == "Be terse."
    assert tab.said[2::2] == words
    assert tab.sent[0].startswith("Be terse.")
    assert tab.sent[-1] == "Question 11?"
    assert len("".join(tab.sent)) < len("".join(words)), "some of the answers had to go"


@pytest.mark.parametrize(
    "error",
    [
        ContextOverflowError("The prompt is too long.", hint="Shorten it."),
        AuthenticationError("The key is refused.", hint="Check it."),
        ProviderUnreachableError("Nobody is there.", hint="Try again."),
    ],
)
@KEPT
def test_error_leaves_context_unchanged(tmp_path: Path, kept: str | None, error: LamellaError) -> None:
    tab = Tab(tmp_path, "one", ScriptedReply(error=error), kept=kept)
    tab.ask("a")
    messages, state = list(tab.messages), dict(tab.state)
    with pytest.raises(LamellaError) as caught:
        tab.ask("b")
    assert caught.value.hint
    assert (tab.messages, tab.state) == (messages, state)
    tab.provider = ScriptedProvider("two")
    tab.ask("b")
    assert tab.said == ["a", "one", "b", "two"]
    assert tab.sent[1:] == ["a", "one", "b"]


@KEPT
@pytest.mark.usefixtures("small")
def test_oversized_question_fails_with_numbers_and_loses_nothing(tmp_path: Path, kept: str | None) -> None:
    tab = Tab(tmp_path, "one", "two", kept=kept)
    tab.ask("a")
    with pytest.raises(ContextBudgetExceededError) as caught:
        tab.ask("word " * 4_000)
    assert "2,400" in caught.value.message
    tab.ask("b")
    assert tab.said == ["a", "one", "b", "two"]


def test_each_answer_logs_one_line_without_caller_details(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tab = Tab(tmp_path, "one\ntwo\u2028three", "four\r\nfive")
    who: dict[str, object] = {"apiKey": "sk-swordfish", "userId": 4711, "isPremium": True}
    with caplog.at_level(logging.DEBUG):
        tab.ask("a", **who)
        tab.ask("b", **who)
    lines = [record.getMessage() for record in caplog.records if record.name == "lamella.turns"]
    assert len(lines) == 2, "what was answered before is no answer of now"
    assert all(line.splitlines() == [line] and "length=" in line and "used=" in line for line in lines)
    assert not any(secret in str(vars(record)) for record in caplog.records for secret in ("swordfish", "4711"))
    assert tab.last["ignored"] == ["apiKey", "isPremium", "userId"]


def test_caller_details_are_not_stored(tmp_path: Path) -> None:
    tab = Tab(tmp_path, "one", kept="garden")
    tab.ask("a", apiKey="sk-swordfish", userId=47_114_711)
    for file in tmp_path.iterdir():
        data = file.read_bytes()
        assert b"swordfish" not in data
        assert b"47114711" not in data


def test_message_sent_twice_by_client_counts_once(tmp_path: Path) -> None:
    tab = Tab(tmp_path, "one", "two")
    tab.messages = [
        {"role": "system", "content": "Be terse."},
        {"role": "system", "content": "Be terse."},
        {"role": "pro_user", "content": "a"},
    ]
    tab.ask("a")
    assert tab.said == ["Be terse.", "a", "one"]
    tab.messages = [*tab.messages, {"role": "user", "content": "b"}]
    tab.ask("b")
    assert tab.said == ["Be terse.", "a", "one", "b", "two"]
    assert tab.sent[0].count("Be terse.") == 1


def read_roles(messages: Sequence[dict[str, object]]) -> set[object]:
    return {message["role"] for message in messages}


def test_no_role_of_a_client_reaches_a_model(tmp_path: Path) -> None:
    tab = Tab(tmp_path, "one")
    tab.messages = [{"role": role, "content": role} for role in ("pro_user", "system_warning", "assistant", "robot")]
    tab.ask("a")
    assert read_roles(tab.messages) == {"system", "user", "assistant"}
    assert {message.role for message in tab.provider.requests[0].messages} == {"system", "user", "assistant"}
    assert "robot" in tab.last["warnings"][0]


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
def test_task_flag_follows_its_block_through_compaction_and_undo(tmp_path: Path, layout: str) -> None:
    with open_engine(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        conversation = engine.chat(
            "garden", layout=layout, model="scripted:m", window=4_000, reserve=200, summarizer="off"
        )
        fix = build_task_turn("fix", text="E1")
        for text, attach in ((fix.text, fix.attach), *(("And? " + "Beans. " * 50, ()) for _ in range(5))):
            conversation.ask(text, attach=attach)
            conversation.reply("So. " * 40)
        before = conversation.turns()[0].reply
        assert get_task_state(conversation).has_terminal_error
        assert conversation.compact(to=0.05) is not None
        assert not get_task_state(conversation).has_terminal_error
        assert not get_task_state(engine.chat("garden")).has_terminal_error, "also once it is loaded again"
        conversation.ask(fix.text, attach=fix.attach)
        conversation.reply("Mended.")
        assert get_task_state(conversation).has_terminal_error, "whoever asks for it again brings it again"
        conversation.undo()
        assert get_task_state(conversation).has_terminal_error
        assert before is not None
        conversation.fork(before.id)
        assert get_task_state(conversation).has_terminal_error
        conversation.delete(conversation.turns()[0].message.id)
        assert not get_task_state(conversation).has_terminal_error, "a branch from before it never had it"
