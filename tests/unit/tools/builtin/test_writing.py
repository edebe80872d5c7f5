"""Writing as tools: a change is shown, and made after a yes and never without one."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lamella.attach import Tool
from lamella.conversation.tool_executor import LocalToolset
from lamella.core.messages import ToolCall, ToolOutput
from lamella.ports import FileChange
from lamella.tools.builtin import ConfirmedNoteWriter, make_edit_tool, make_write_tool
from lamella.vault_writer import BackupFolder, NoteWriter

Allow = Callable[[FileChange], bool | Awaitable[bool]]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "a.md").write_text("old\n", encoding="utf-8")
    return folder


def make(vault: Path, allow: Allow | None, *, asks: bool = True) -> list[Tool]:
    writer = NoteWriter(
        vault,
        open_backups=lambda: BackupFolder(vault.parent / "backups"),
        now=lambda: datetime(2026, 11, 17, tzinfo=UTC),
    )
    permit = ConfirmedNoteWriter(writer=writer, allow=allow, asks_user=asks)
    return [make_write_tool(permit), make_edit_tool(permit)]


def run(tools: list[Tool], *calls: tuple[str, str]) -> list[ToolOutput]:
    toolbox = LocalToolset(tools, call_timeout=0.01)
    made = [ToolCall(id=str(number), name=name, arguments=arguments) for number, (name, arguments) in enumerate(calls)]
    return list(asyncio.run(toolbox.run_all(made, toolbox.definitions)))


WRITE = ("write_note", '{"path": "a.md", "content": "new\\n"}')


def test_consent_shows_whole_change_and_yes_writes_it(vault: Path) -> None:
    seen: list[FileChange] = []

    def allow(change: FileChange) -> bool:
        assert (vault / "a.md").read_text(encoding="utf-8") == "old\n"
        seen.append(change)
        return True

    (output,) = run(make(vault, allow), WRITE)
    assert not output.failed
    assert (vault / "a.md").read_text(encoding="utf-8") == "new\n"
    assert [(one.path, one.diff) for one in seen] == [("a.md", "--- a.md\n+++ a.md\n@@ -1 +1 @@\n-old\n+new\n")]


def test_consent_may_be_awaited_beyond_tool_timeout(vault: Path) -> None:
    async def allow(_change: FileChange) -> bool:
        await asyncio.sleep(0.1)
        return True

    (output,) = run(make(vault, allow), ("edit_note", '{"path": "a.md", "old": "old", "new": "new"}'))
    assert output.output == "a.md was changed. A backup is kept; the user can take it back."


@pytest.mark.parametrize("answer", [False, None, 0, 1, "yes", "no", [True]])
def test_any_answer_but_true_means_no(vault: Path, answer: object) -> None:
    (output,) = run(make(vault, lambda _change: answer), WRITE)  # type: ignore[arg-type, return-value]
    assert (output.failed, "the user said no" in output.output) == (True, True)
    assert (vault / "a.md").read_text(encoding="utf-8") == "old\n"


def test_error_in_consent_function_means_no(vault: Path) -> None:
    def allow(_change: FileChange) -> bool:
        raise RuntimeError("the window was closed")

    (output,) = run(make(vault, allow), WRITE)
    assert (output.failed, output.output) == (True, "RuntimeError: the window was closed")
    assert (vault / "a.md").read_text(encoding="utf-8") == "old\n"


def test_missing_consent_function_writes_nothing_and_says_so(vault: Path) -> None:
    (output,) = run(make(vault, None), WRITE)
    assert (output.failed, "nobody can be asked here" in output.output) == (True, True)
    assert (vault / "a.md").read_text(encoding="utf-8") == "old\n"


def test_prior_consent_asks_nobody(vault: Path) -> None:
    (output,) = run(make(vault, None, asks=False), WRITE)
    assert not output.failed
    assert (vault / "a.md").read_text(encoding="utf-8") == "new\n"


def test_unchanged_note_asks_nobody(vault: Path) -> None:
    (output,) = run(make(vault, None), ("write_note", '{"path": "a.md", "content": "old\\n"}'))
    assert output.output == "a.md says that already; nothing was written."


def test_two_changes_of_one_answer_are_asked_one_by_one(vault: Path) -> None:
    shown: list[str] = []

    async def allow(change: FileChange) -> bool:
        await asyncio.sleep(0)
        shown.append(change.diff.splitlines()[-1])
        return True

    add = '{{"path": "a.md", "old": "", "new": "{}\\n"}}'
    outputs = run(make(vault, allow), ("edit_note", add.format("one")), ("edit_note", add.format("two")))
    assert [one.failed for one in outputs] == [False, False]
    assert shown == ["+one", "+two"]
    assert (vault / "a.md").read_text(encoding="utf-8") == "old\none\ntwo\n"


def test_note_changed_during_consent_is_not_written(vault: Path) -> None:
    def allow(_change: FileChange) -> bool:
        (vault / "a.md").write_text("by hand\n", encoding="utf-8")
        return True

    (output,) = run(make(vault, allow), WRITE)
    assert (output.failed, "changed by somebody else" in output.output) == (True, True)
    assert (vault / "a.md").read_text(encoding="utf-8") == "by hand\n"


@pytest.mark.parametrize("path", ["../b.md", "/tmp/b.md", ".obsidian/app.md", "b.sh", ""])
def test_invalid_path_is_refused_without_asking(vault: Path, path: str) -> None:
    asked: list[FileChange] = []
    tools = make(vault, lambda change: asked.append(change) or True)  # type: ignore[func-returns-value]
    (output,) = run(tools, ("write_note", f'{{"path": "{path}", "content": "x"}}'))
    assert (output.failed, asked) == (True, [])
