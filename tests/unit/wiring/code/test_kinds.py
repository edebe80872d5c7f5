"""The one function that answers, in Python and for requests, and the filter of a codebase."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.bodies import as_json

from lamella import Engine, TurnEvent
from lamella import open as open_engine
from lamella.code import CodeAnswer, InstructionsInPrompt, ask_about_code, select_files_for_request, solve_request
from lamella.errors import InvalidOperationError, UntrustedError
from lamella.testing import ScriptedProvider
from lamella.wiring.code import open_engine_for_request

FILES = {"beds.py": "def water_beds():\n    return 'wet'\n", ".env": "KEY=1\n"}


def engine_of(*lines: str, url: str = "memory:") -> tuple[Engine, ScriptedProvider]:
    provider = ScriptedProvider(*lines)
    return open_engine(url, model="scripted:m", provider=provider), provider


def run(engine: Engine, *asked: Coroutine[Any, Any, Any]) -> list[Any]:
    async def walk() -> list[Any]:
        async with engine:
            return [await one for one in asked]

    return asyncio.run(walk())


def test_python_task_request_gives_events_and_answer() -> None:
    engine, provider = engine_of("so")
    heard: list[TurnEvent] = []
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    (found,) = run(
        engine,
        ask_about_code(
            engine,
            code="x = 1",
            task="explain",
            messages=messages,
            task_state={"given": ["fix"]},
            on_event=heard.append,
        ),
    )
    assert isinstance(found, CodeAnswer)
    assert found.state == InstructionsInPrompt(("explain", "fix"))
    assert "".join(event.text for event in heard) == found.reply == "so"
    assert provider.requests[0].messages[-1].text.endswith("Explain this code.\n\n```\nx = 1\n```")


def test_documented_request_gets_documented_answer() -> None:
    engine, _ = engine_of("so")
    body = {"prompt": "why", "apiKey": "sk-secret", "userId": 7, "isPremium": True, "useTemplate": True}
    (found,) = run(engine, solve_request(engine, body))
    assert found.data == "so"
    assert list(found.ignored) == ["apiKey", "isPremium", "userId"]
    assert "secret" not in str(as_json(found))


def test_files_are_selected_and_kept_in_unstored_history() -> None:
    engine, provider = engine_of("wet")
    (found,) = run(engine, ask_about_code(engine, "Who waters the beds?", task="codebase", files=FILES))
    assert "def water_beds" in provider.requests[0].messages[-1].text
    assert "def water_beds" in found.history[0].content
    assert "KEY=1" not in found.history[0].content
    assert "codebase" in found.state.task_names


def test_files_of_stored_conversation_are_sent_once(tmp_path: Path) -> None:
    engine, provider = engine_of("wet", "still", url=f"sqlite:///{tmp_path / 'chats.db'}")
    asked = [
        ask_about_code(engine, "Who waters the beds?", task="codebase", files=FILES, conversation_key="garden")
        for _ in range(2)
    ]
    _, found = run(engine, *asked)
    assert [one.content for one in found.history] == ["Who waters the beds?", "wet", "Who waters the beds?", "still"]
    texts = [message.text for message in provider.requests[-1].messages]
    assert sum(text.count("def water_beds") for text in texts) == 1


def test_files_go_with_a_question_about_a_codebase_alone() -> None:
    engine, _ = engine_of("so")
    with pytest.raises(InvalidOperationError, match="files go with no regular"):
        run(engine, ask_about_code(engine, "why", files=FILES))


def test_filter_answer_has_contents_and_omission_reasons() -> None:
    sent = [{"path": path, "content": text} for path, text in FILES.items()]
    body = {"codebase": sent, "question": "Who waters?", "filterMaxTokensCount": 1_000, "apiKey": "sk-secret"}
    found = as_json(select_files_for_request(body))
    assert found["data"] == [
        {"path": "beds.py", "content": FILES["beds.py"], "form": "full", "tokens": found["data"][0]["tokens"]}
    ]
    assert [one["path"] for one in found["left_out"]] == [".env"]
    assert found["ignored"] == ["apiKey"]
    assert "sk-" not in json.dumps(found)


def test_solver_stores_only_requests_with_conversation(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    open_engine_for_request({"prompt": "x"}, store=url).close()
    assert not (tmp_path / "chats.db").exists()
    open_engine_for_request({"prompt": "x", "conversation": "garden"}, store=url).close()
    assert (tmp_path / "chats.db").exists()


def test_request_cannot_redirect_keys() -> None:
    engine = open_engine("memory:", model="local")
    body = {"prompt": "x", "model": "openai-compatible:http://example.org/v1#m"}
    with pytest.raises(UntrustedError, match=r"example\.org"):
        run(engine, solve_request(engine, body))
