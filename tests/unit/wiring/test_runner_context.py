"""Runner contexts: available tools, consent, and what a project cannot change."""

import asyncio
from contextlib import suppress
from inspect import isawaitable
from pathlib import Path

import pytest

import lamella
from lamella import Tool
from lamella.errors import LamellaError, WriteDeniedError
from lamella.ports import FileChange
from lamella.settings.loading import SettingOrigin
from lamella.settings.model import WritePermission
from lamella.settings.trust import TrustFile
from lamella.testing import ScriptedProvider
from lamella.wiring.memory import open_memory
from lamella.wiring.runner_context import ToolFactory, open_note_writer, open_runner_context
from lamella.wiring.services import ServiceContainer, read_services
from lamella.wiring.trust import add_trust, find_web_search_url, get_trust_key, open_trust_file

ALWAYS = ["compact", "fetch_url", "recall", "time_range"]
WITH_VAULT = [
    *("compact", "edit_note", "fetch_url", "list_files", "read_note", "recall", "search_notes", "time_range"),
    "write_note",
]


async def call(tool: Tool, **given: object) -> object:
    assert tool.run is not None
    result = tool.run(**given)
    return await result if isawaitable(result) else result


def names(services: ServiceContainer, vault: Path | None = None) -> list[str]:
    return [tool.name for tool in open_runner_context(services, vault=vault).make_tools(None)]


def test_runner_without_vault_has_independent_tools(tmp_path: Path) -> None:
    assert names(read_services()) == ALWAYS
    assert names(read_services(), tmp_path) == WITH_VAULT


def test_search_engine_and_memory_add_their_tools(tmp_path: Path) -> None:
    services = read_services({"web_search": "https://search.example"})
    place = open_runner_context(services, open_memory=lambda: open_memory(tmp_path / "memory"))
    assert [tool.name for tool in place.make_tools(None)] == sorted([*ALWAYS, "remember", "web_search"])


@pytest.mark.parametrize(("rule", "there"), [("ask", True), ("allow", True), ("off", False)])
def test_disabled_note_writes_have_no_tool(tmp_path: Path, rule: str, *, there: bool) -> None:
    services = read_services({"note_writes": rule})
    assert ("write_note" in names(services, tmp_path), "edit_note" in names(services, tmp_path)) == (there, there)
    assert open_runner_context(services, vault=tmp_path).can_write_notes is there


class Kept:
    """A conversation that has settings of its own."""

    def __init__(self, rule: object) -> None:
        self.settings = {"note_writes": rule, "memory_writes": rule}


@pytest.mark.parametrize(
    ("own", "kept", "holds"),
    [
        ("ask", "allow", "ask"),
        ("off", "allow", "off"),
        ("allow", "ask", "ask"),
        ("allow", "off", "off"),
        ("ask", None, "ask"),
        ("ask", "sure", "ask"),
        ("ask", 7, "ask"),
    ],
)
def test_conversation_may_only_be_stricter(tmp_path: Path, own: str, kept: object, holds: str) -> None:
    services = read_services({"note_writes": own, "memory_writes": own})
    maker = ToolFactory(services, vault=tmp_path, allow=None, open_memory=lambda: open_memory(tmp_path))
    for name in ("note_writes", "memory_writes"):
        assert maker.get_write_permission(Kept(kept), name) is WritePermission(holds)  # type: ignore[arg-type]


def in_project(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> ServiceContainer:
    (folder / "lamella.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    return read_services()


@pytest.mark.parametrize(
    "line",
    ['note_writes = "allow"', 'note_writes = "off"', 'note_backups = "/tmp/theirs"', 'memory_writes = "allow"'],
)
def test_project_cannot_set_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    services = in_project(tmp_path, monkeypatch, f"{line}\n")
    for opened in (lambda: open_runner_context(services), lambda: open_note_writer(tmp_path, services), open_engine):
        with pytest.raises(LamellaError, match="only your own settings"):
            opened()


def open_engine() -> object:
    return lamella.open("memory:")


def test_project_search_engine_needs_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    services = in_project(tmp_path, monkeypatch, 'web_search = "https://Search.example/"\n')
    assert services.resolved.origins["web_search"] is SettingOrigin.PROJECT
    with pytest.raises(LamellaError) as caught:
        open_runner_context(services)
    assert caught.value.code == "untrusted"
    assert "https://search.example/search" in caught.value.message
    assert get_trust_key("web_search", "https://search.example") == "https://search.example/search"
    add_trust("web_search", "https://search.example/search")
    assert isinstance(open_trust_file(), TrustFile)
    assert find_web_search_url(services) == "https://search.example/search"
    assert "web_search" in names(services)


def test_opening_runner_context_creates_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "indexes"
    vault = tmp_path / "vault"
    vault.mkdir()
    services = read_services({"index_folder": str(folder), "note_backups": str(tmp_path / "backups")})
    place = open_runner_context(services, vault=vault)
    place.make_tools(None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vault"]
    assert place.note_index is not None
    place.note_index.close()


def test_local_models_support_tools_only_by_facts(tmp_path: Path) -> None:
    facts = tmp_path / "facts.toml"
    facts.write_text(
        '[[model]]\nmatch = "dumb"\nas_of = 2026-11-17\ncalls_tools = false\n'
        '[[model]]\nmatch = "local"\nas_of = 2026-11-17\ncalls_tools = true\n',
        encoding="utf-8",
    )
    plain, told = open_runner_context(read_services()), open_runner_context(read_services({"model_facts": str(facts)}))
    for model in ("anthropic:claude-opus-5-5", "openai:gpt-6", "scripted:x", "openai:dumb-1"):
        assert plain.supports_tools(model) is True
    assert plain.supports_tools("local") is False
    assert (told.supports_tools("openai:dumb-1"), told.supports_tools("local")) == (False, True)


def test_engine_lists_tools_and_those_to_send(tmp_path: Path) -> None:
    with lamella.open("memory:", vault=tmp_path, model="scripted:x", provider=ScriptedProvider("Yes.")) as engine:
        listed = engine.tools()
        assert [tool.name for tool in listed] == WITH_VAULT
        assert [tool.name for tool in listed if tool.run is None] == ["compact", "recall"]
        conversation = engine.chat("garden")
        made = engine.tools(conversation)
        assert [tool.name for tool in made if tool.run is None] == []

        async def send() -> str:
            return "".join([event.text async for event in conversation.send("Hello?", tools=made)])

        assert asyncio.run(send()) == "Yes."


def test_consent_must_be_a_function() -> None:
    with pytest.raises(LamellaError, match="no function"):
        lamella.open("memory:", allow=True)  # type: ignore[arg-type]


def test_memory_in_prompts_adds_its_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_MEMORY_FOLDER", str(tmp_path / "memory"))
    with lamella.open("memory:") as engine:
        assert "remember" not in [tool.name for tool in engine.tools()]
    asked: list[FileChange] = []

    def allow(change: FileChange) -> bool:
        asked.append(change)
        return len(asked) > 1

    with lamella.open("memory:", memory=True, allow=allow) as engine:
        (tool,) = [tool for tool in engine.tools() if tool.name == "remember"]
        assert not (tmp_path / "memory").exists()
        with pytest.raises(WriteDeniedError, match="said no"):
            asyncio.run(call(tool, fact="The garden lies north."))
        assert list(engine.memory.read()) == []
        assert str(asyncio.run(call(engine.remember_tool, fact="The garden lies north."))).startswith("Remembered.")
        assert [(fact.text, fact.kind.value) for fact in engine.memory.read()] == [("The garden lies north.", "noted")]
    assert [change.is_memory for change in asked] == [True, True]


@pytest.mark.parametrize(("rule", "noted"), [("ask", 0), ("allow", 1), ("off", None)])
def test_model_memory_writes_follow_user_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str, noted: int | None
) -> None:
    monkeypatch.setenv("LAMELLA_MEMORY_FOLDER", str(tmp_path / "memory"))
    monkeypatch.setenv("LAMELLA_MEMORY_WRITES", rule)
    with lamella.open("memory:", memory=True) as engine:
        made = [tool for tool in engine.tools() if tool.name == "remember"]
        assert bool(made) is (noted is not None)
        for tool in made:
            with suppress(WriteDeniedError):
                asyncio.run(call(tool, fact="The garden lies north."))
        if noted is None:
            with pytest.raises(LamellaError, match="no memory that models may write to"):
                _ = engine.remember_tool
        assert len(engine.memory.read()) == (noted or 0)


def test_note_read_and_changed_since_is_not_overwritten_in_next_turn(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "plan.md").write_text("one\n", encoding="utf-8")
    place = open_runner_context(read_services({"note_writes": "allow"}), vault=vault)
    first, second = ({tool.name: tool for tool in place.make_tools(None)} for _ in range(2))
    asyncio.run(call(first["read_note"], path="plan.md"))
    (vault / "plan.md").write_text("two, by hand\n", encoding="utf-8")
    with pytest.raises(WriteDeniedError):
        asyncio.run(call(second["write_note"], path="plan.md", content="three\n"))
    assert (vault / "plan.md").read_text(encoding="utf-8") == "two, by hand\n"
