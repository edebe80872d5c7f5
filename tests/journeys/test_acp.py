"""``lamella acp`` as an editor uses it, with the client of the protocol's SDK."""

import asyncio
import base64
import json
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.helpers import embedded_text_resource, image_block, resource_block, resource_link_block
from acp.schema import FileEditToolCallContent, McpServerStdio
from tests.journeys.editors import Editor, open_editor, run
from tests.journeys.running import spawn_in
from tests.unit.pictures import png

import lamella
from lamella import Engine

Script = Callable[..., str]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "beans.md").write_text("# Beans\n\nSown on 3 May.\n", encoding="utf-8")
    (folder / "plan.md").write_text("# Plan\n\nWater daily.\n", encoding="utf-8")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/chats.db"


def opened(store: str) -> Engine:
    return lamella.open(store)


def test_mentioned_note_is_attached_once_and_updated(
    vault: Path, store: str, home: dict[str, str], script: Script
) -> None:
    model = script("On 3 May.", "Still 3 May.", "On 9 May.")
    note = vault / "beans.md"

    async def journey() -> None:
        async with open_editor(["--model", model, "--store", store], home) as window:
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            link = resource_link_block("beans", note.as_uri())
            response = await window.ask(new.session_id, "When were the beans in ", link, " sown?")
            assert response.stop_reason == "end_turn"
            assert window.editor.text() == "On 3 May."
            await window.ask(new.session_id, link, "Really?")
            note.write_text("# Beans\n\nSown on 9 May.\n", encoding="utf-8")
            await window.ask(new.session_id, "And now?")

    run(journey)
    with opened(store) as engine:
        (listed,) = engine.chats()
        chat = engine.chat(listed.name)
        first, second, third = chat.turns()
        assert first.message.typed == "When were the beans in `beans.md` sown?"
        assert second.message.typed == "Really?"
        assert chat.library()[0].id == "beans.md"
        sent = [turn.messages[-1].text for turn in chat.sent_turns()]
        assert sent[0].count("Sown on 3 May.") == 1
        assert "Sown on 3 May." not in sent[1]
        assert "Sown on 9 May." in sent[2]
        assert third.reply is not None
        assert third.reply.text == "On 9 May."


def test_text_of_unsaved_buffer_is_sent_in_place_of_file(
    vault: Path, store: str, home: dict[str, str], script: Script
) -> None:
    model = script("On 4 May.", "On 5 May.", "On 3 May.")
    note = vault / "beans.md"
    editor = Editor(buffers={str(note): "# Beans\n\nSown on 4 May.\n"})

    async def journey() -> None:
        async with open_editor(["--model", model, "--store", store], home, editor=editor, reads_files=True) as window:
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            await window.ask(new.session_id, resource_link_block("beans", note.as_uri()), "When?")
            editor.buffers[str(note)] = "# Beans\n\nSown on 5 May.\n"
            await window.ask(new.session_id, "And now?")
            del editor.buffers[str(note)]
            await window.ask(new.session_id, "Without saving?")

    run(journey)
    assert str(note) in editor.files_read
    with opened(store) as engine:
        sent = [turn.messages[-1].text for turn in engine.chat(engine.chats()[0].name).sent_turns()]
        assert "Sown on 4 May." in sent[0]
        assert "Sown on 5 May." in sent[1]
        assert "Sown on 3 May." in sent[2]


def test_embedded_copy_of_note_is_read_from_vault(
    vault: Path, store: str, home: dict[str, str], script: Script
) -> None:
    model = script("Daily.")
    shortened = embedded_text_resource((vault / "plan.md").as_uri(), "# Plan [shortened]", mime_type="text/markdown")
    elsewhere = embedded_text_resource("zed:///agent/thread/1", "We spoke of peas.")

    async def journey() -> None:
        async with open_editor(["--model", model, "--store", store], home) as window:
            assert window.initialized.agent_capabilities.prompt_capabilities.embedded_context
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            await window.ask(
                new.session_id, resource_block(shortened), resource_block(elsewhere), "How often in [[beans]]?"
            )

    run(journey)
    with opened(store) as engine:
        chat = engine.chat(engine.chats()[0].name)
        (turn,) = chat.sent_turns()
        text = turn.messages[-1].text
        assert "Water daily." in text
        assert "[shortened]" not in text
        assert "We spoke of peas." in text
        assert "Sown on 3 May." in text
        assert [item.kind for item in chat.library()] == ["note", "unknown", "note"]


@pytest.mark.parametrize("answer", ["allow_once", "reject_once", None])
def test_note_is_written_only_after_permission(
    vault: Path, store: str, home: dict[str, str], script: Script, answer: str | None
) -> None:
    call = {"name": "write_note", "arguments": {"path": "peas.md", "content": "# Peas\n"}, "id": "c1"}
    model = script({"text": "I make it.", "calls": [call]}, "Done.")
    editor = Editor(answer=answer)

    async def journey() -> None:
        async with open_editor(
            ["--model", model, "--runner", "agent", "--store", store], home, editor=editor
        ) as window:
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            assert new.modes is not None
            assert new.modes.current_mode_id == "agent"
            if answer is None:
                asking = asyncio.create_task(window.ask(new.session_id, "Make a note about peas."))
                await editor.wait_until(lambda: bool(editor.asked))
                await window.agent.cancel(session_id=new.session_id)
                assert (await asking).stop_reason == "cancelled"
            else:
                await window.ask(new.session_id, "Make a note about peas.")

    run(journey)
    (asked,) = editor.asked
    assert asked.content
    (diff,) = asked.content
    assert isinstance(diff, FileEditToolCallContent)
    assert (diff.path, diff.new_text, diff.old_text) == (str(vault / "peas.md"), "# Peas\n", None)
    (started,) = editor.of_kind("tool_call")
    assert started.kind == "edit"
    assert [place.path for place in started.locations] == [str(vault / "peas.md")]
    assert {update.tool_call_id for update in editor.of_kind("tool_call_update")} == {started.tool_call_id}
    assert asked.tool_call_id == started.tool_call_id
    assert (vault / "peas.md").is_file() is (answer == "allow_once")
    if answer is not None:
        last = editor.of_kind("tool_call_update")[-1]
        assert last.status == ("completed" if answer == "allow_once" else "failed")
        assert editor.text() == "I make it.Done."


def test_all_changes_of_session_are_allowed_with_one_answer(
    vault: Path, store: str, home: dict[str, str], script: Script
) -> None:
    calls = [
        {"name": "write_note", "arguments": {"path": f"{name}.md", "content": f"# {name}\n"}}
        for name in ("peas", "kale")
    ]
    model = script(*({"text": "", "calls": [call]} for call in calls), "Done.")
    editor = Editor(answer="allow_always")

    async def journey() -> None:
        async with open_editor(
            ["--model", model, "--runner", "agent", "--store", store], home, editor=editor
        ) as window:
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            await window.ask(new.session_id, "Make two notes.")

    run(journey)
    assert len(editor.asked) == 1
    assert (vault / "peas.md").is_file()
    assert (vault / "kale.md").is_file()


def test_cancelled_answer_keeps_its_text_and_session_goes_on(
    vault: Path, store: str, home: dict[str, str], script: Script
) -> None:
    model = script({"text": "one two three four", "chunk": 4, "delay": 0.2}, "Again.")
    editor = Editor()

    async def journey() -> None:
        async with open_editor(["--model", model, "--store", store], home, editor=editor) as window:
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            asking = asyncio.create_task(window.ask(new.session_id, "Count."))
            await editor.wait_until(lambda: bool(editor.text()))
            await window.agent.cancel(session_id=new.session_id)
            assert (await asking).stop_reason == "cancelled"
            await window.agent.cancel(session_id=new.session_id)
            assert (await window.ask(new.session_id, "Go on.")).stop_reason == "end_turn"

    run(journey)
    with opened(store) as engine:
        cut, whole = engine.chat(engine.chats()[0].name).turns()
        assert cut.reply is not None
        assert "one two three four".startswith(cut.reply.text)
        assert cut.reply.text not in ("", "one two three four")
        assert cut.cut_reason == "stopped"
        assert whole.reply is not None
        assert whole.reply.text == "Again."


def test_closed_editor_keeps_text_of_running_answer(
    vault: Path, store: str, home: dict[str, str], script: Script
) -> None:
    model = script({"text": "one two three four", "chunk": 4, "delay": 0.5})
    editor = Editor()

    async def journey() -> None:
        async with open_editor(["--model", model, "--store", store], home, editor=editor) as window:
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            asking = asyncio.create_task(window.ask(new.session_id, "Count."))
            await editor.wait_until(lambda: bool(editor.text()))
            assert window.process.stdin is not None
            window.process.stdin.close()
            with pytest.raises(ConnectionError):
                await asking
            assert await window.process.wait() == 0

    run(journey)
    with opened(store) as engine:
        (cut,) = engine.chat(engine.chats()[0].name).turns()
        assert cut.reply is not None
        assert cut.cut_reason == "interrupted"


def test_session_goes_on_in_terminal_and_is_loaded_again(
    vault: Path, store: str, home: dict[str, str], script: Script
) -> None:
    call = {"name": "read_note", "arguments": {"path": "beans.md"}, "id": "c1"}
    model = script({"text": "Let me look.", "calls": [call]}, "On 3 May.")
    sessions: list[str] = []

    async def begin() -> None:
        async with open_editor(["--model", model, "--runner", "agent", "--store", store], home) as window:
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            sessions.append(new.session_id)
            await window.ask(new.session_id, "When were the beans sown?")

    run(begin)
    more = script("For soup.")
    done = spawn_in({**home, "PATH": ""}, "ask", "--chat", sessions[0], "What for?", "--store", store, "--model", more)
    assert done.exit == 0, done.err
    other = vault.parent / "other"
    other.mkdir()
    model = script("In June.", "In July.")

    async def go_on() -> None:
        async with open_editor(["--model", model, "--store", store], home) as window:
            listed = (await window.agent.list_sessions(cwd=str(vault))).sessions
            assert [(one.session_id, one.cwd) for one in listed] == [(sessions[0], str(vault))]
            assert (await window.agent.list_sessions(cwd=str(other))).sessions == []
            loaded = await window.agent.load_session(cwd=str(vault), session_id=sessions[0], mcp_servers=[])
            assert loaded.modes is not None
            assert loaded.modes.current_mode_id == "agent"
            editor = window.editor
            assert editor.text("user_message_chunk") == "When were the beans sown?What for?"
            assert editor.text() == "Let me look.On 3 May.For soup."
            (call,), (result,) = editor.of_kind("tool_call"), editor.of_kind("tool_call_update")
            assert (call.kind, result.status) == ("read", "completed")
            assert call.tool_call_id == result.tool_call_id
            editor.updates.clear()
            await window.ask(sessions[0], "When is harvest?")
            assert editor.text() == "In June."
            fork = await window.agent.fork_session(cwd=str(vault), session_id=sessions[0])
            assert fork.session_id != sessions[0]
            await window.agent.resume_session(cwd=str(vault), session_id=sessions[0])
            editor.updates.clear()
            await window.ask(fork.session_id, "And next year?")
            assert editor.text("user_message_chunk") == ""

    run(go_on)
    with opened(store) as engine:
        counts = sorted(len(engine.chat(one.name).turns()) for one in engine.chats())
        assert counts == [3, 4]


def test_usage_update_has_window_cost_and_cached_tokens(
    vault: Path, store: str, home: dict[str, str], script: Script
) -> None:
    usage = {"plain": 100, "read": 900, "output": 20}
    model = script({"text": "Yes.", "usage": usage})

    async def journey() -> None:
        async with open_editor(["--model", model, "--store", store], home) as window:
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            response = await window.ask(new.session_id, "Well?")
            assert response.usage is not None
            assert (response.usage.input_tokens, response.usage.output_tokens) == (1_000, 20)
            assert response.usage.cached_read_tokens == 900
            last = window.editor.of_kind("usage_update")[-1]
            assert last.used == 1_020
            assert last.size > last.used
            assert last.field_meta["lamella"] == {"cachedTokens": 900, "promptTokens": 1_000}
            assert window.editor.of_kind("session_info_update")[-1].title == "Well?"

    run(journey)


def test_bad_requests_get_clear_errors_and_agent_goes_on(
    vault: Path, store: str, home: dict[str, str], script: Script
) -> None:
    model = script("Yes.")

    async def journey() -> None:
        async with open_editor(["--model", model, "--store", store], home) as window:
            agent = window.agent
            new = await agent.new_session(cwd=str(vault), mcp_servers=[])
            requests: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
                "is no folder": lambda: agent.new_session(cwd=str(vault / "missing"), mcp_servers=[]),
                "no conversation": lambda: agent.load_session(cwd=str(vault), session_id="none", mcp_servers=[]),
                "is not open": lambda: window.ask("none", "Hello?"),
                "no messages yet": lambda: agent.fork_session(cwd=str(vault), session_id=new.session_id),
                "no runner": lambda: agent.set_session_mode(session_id=new.session_id, mode_id="none"),
                "not offered": lambda: agent.set_config_option("model", new.session_id, "openai:none"),
                "no option": lambda: agent.set_config_option("colour", new.session_id, "red"),
                "not base64": lambda: window.ask(new.session_id, image_block("%%%", "image/png"), "See?"),
                "cursor": lambda: agent.list_sessions(cursor="x"),
                "Method not found": lambda: agent.ext_method("none", {}),
            }
            for words, request in requests.items():
                with pytest.raises(RequestError, match=words) as refused:
                    await request()
                assert "Traceback" not in str(refused.value)
            outside = resource_link_block("passwd", "file:///etc/passwd")
            assert (await window.ask(new.session_id, outside, "What is this?")).stop_reason == "end_turn"
            assert "/etc/passwd is not attached" in window.editor.text("agent_thought_chunk")

    run(journey)


def test_lines_that_are_no_messages_get_error_responses(
    vault: Path, store: str, home: dict[str, str], script: Script
) -> None:
    asked = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": 99}}
    lines = [b"{not json", b"[1, 2]", b"", json.dumps(asked).encode()]
    done = spawn_in(
        {**home, "PATH": ""}, "acp", "--model", script("Yes."), "--store", store, stdin=b"\n".join([*lines, b""])
    )
    assert done.exit == 0, done.err
    broken, wrong, answered = (json.loads(line) for line in done.out.splitlines())
    assert (broken["error"]["code"], wrong["error"]["code"]) == (-32700, -32600)
    assert answered["result"]["protocolVersion"] == 1


def test_missing_key_is_named_with_its_variable(vault: Path, store: str, home: dict[str, str]) -> None:
    async def journey() -> None:
        async with open_editor(["--model", "anthropic:claude-opus-5-5", "--store", store], home) as window:
            (method,) = window.initialized.auth_methods
            assert [one.name for one in method.vars] == ["ANTHROPIC_API_KEY"]
            with pytest.raises(RequestError, match="ANTHROPIC_API_KEY") as refused:
                await window.agent.authenticate(method_id=method.id)
            assert refused.value.code == -32000
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            with pytest.raises(RequestError, match="There is no key"):
                await window.ask(new.session_id, "Hello?")

    run(journey)


def test_slash_commands_work_on_the_session(vault: Path, store: str, home: dict[str, str], script: Script) -> None:
    model = script("On 3 May.", "In May.", "Daily.")

    async def journey() -> None:
        async with open_editor(["--model", model, "--store", store], home) as window:
            editor = window.editor
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            await editor.wait_until(lambda: bool(editor.of_kind("available_commands_update")))
            (offered,) = editor.of_kind("available_commands_update")
            names = {one.name for one in offered.available_commands}
            assert {"attach", "compact", "ledger", "retry", "runner", "stage"} <= names
            assert not {"quit", "copy", "new", "chats"} & names
            await window.ask(new.session_id, "/attach beans.md")
            await window.ask(new.session_id, "When were they sown?")
            assert editor.text().endswith("On 3 May.")

            async def shown(line: str) -> str:
                editor.updates.clear()
                assert (await window.ask(new.session_id, line)).stop_reason == "end_turn"
                return editor.text()

            assert "beans.md" in await shown("/show")
            assert "In May." in await shown("/retry")
            assert "error: There is no setting colour." in await shown("/set colour red")
            assert "agent" in await shown("/runner agent")
            assert [one.current_mode_id for one in editor.of_kind("current_mode_update")] == ["agent"]
            assert await shown("/unknown is a question") == "Daily."
            await shown("/stage new paper")
            plan = editor.of_kind("plan")[-1]
            assert plan.entries[0].status == "in_progress"
            assert len(plan.entries) > 3

    run(journey)
    with opened(store) as engine:
        chat = engine.chat(engine.chats()[0].name)
        assert [one.message.typed for one in chat.turns()] == ["When were they sown?", "/unknown is a question"]
        assert len(chat.branches()) == 2


def test_mode_and_model_are_those_of_the_next_turn(
    vault: Path, store: str, home: dict[str, str], script: Script, tmp_path: Path
) -> None:
    first = script("One.", "Two.")
    other = tmp_path / "other.json"
    other.write_text(json.dumps(["Three."]), encoding="utf-8")
    chosen = {**home, "LAMELLA_MODEL": f"scripted:{other}"}

    async def journey() -> None:
        async with open_editor(["--model", first, "--store", store], chosen) as window:
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            assert new.config_options is not None
            options = {one.id: one for one in new.config_options}
            assert options["model"].current_value == first
            await window.ask(new.session_id, "First?")
            await window.agent.set_session_mode(session_id=new.session_id, mode_id="vault_qa")
            changed = await window.agent.set_config_option("model", new.session_id, f"scripted:{other}")
            assert changed is not None
            assert [one.current_value for one in changed.config_options] == ["vault_qa", f"scripted:{other}"]
            await window.agent.set_config_option("mode", new.session_id, "chat")
            await window.ask(new.session_id, "Third?")
            assert window.editor.text() == "One.Three."

    run(journey)


@pytest.mark.parametrize("answer", ["allow_once", "reject_once"])
def test_tool_of_editors_server_is_called_after_permission(
    vault: Path, store: str, home: dict[str, str], script: Script, answer: str
) -> None:
    call = {"name": "notes__add", "arguments": {"text": "peas"}, "id": "c1"}
    model = script({"text": "", "calls": [call]}, "Done.")
    written = vault.parent / "added.txt"
    program = f"""
from mcp.server.mcpserver import MCPServer
server = MCPServer("notes")
@server.tool()
def add(text: str) -> str:
    "Add a note."
    open({str(written)!r}, "w").write(text)
    return "Added."
server.run()
"""
    server = McpServerStdio(name="notes", command=sys.executable, args=["-c", program], env=[])
    editor = Editor(answer=answer)

    async def journey() -> None:
        async with open_editor(
            ["--model", model, "--runner", "agent", "--store", store], home, editor=editor
        ) as window:
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[server])
            await window.ask(new.session_id, "Add peas.")

    run(journey)
    assert [one.raw_input for one in editor.asked] == [{"text": "peas"}], editor.updates
    assert written.is_file() is (answer == "allow_once")
    assert editor.of_kind("tool_call_update")[-1].status == ("completed" if answer == "allow_once" else "failed")


def test_picture_and_selected_lines_are_attached_as_such(
    vault: Path, store: str, home: dict[str, str], script: Script
) -> None:
    picture = base64.b64encode(png(4, 4)).decode()
    model = script("Seen.")

    async def journey() -> None:
        async with open_editor(["--model", model, "--store", store], home) as window:
            new = await window.agent.new_session(cwd=str(vault), mcp_servers=[])
            lines = resource_link_block("beans", f"{(vault / 'beans.md').as_uri()}#L3-3")
            await window.ask(new.session_id, image_block(picture, "image/png"), lines, "What is this?")

    run(journey)
    with opened(store) as engine:
        chat = engine.chat(engine.chats()[0].name)
        kinds = {item.kind for item in chat.library()}
        assert "selected_text" in kinds
        (turn,) = chat.sent_turns()
        assert "Sown on 3 May." in turn.messages[-1].text
        assert "# Beans" not in turn.messages[-1].text
        assert len(turn.messages[-1].images) == 1
