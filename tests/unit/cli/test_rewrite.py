"""``cli.rewrite``: a conversation whose model only the program that asked it can provide."""

import asyncio
from pathlib import Path

import pytest

import lamella
from lamella.cli.entry_point import run_command_line
from lamella.cli.rewrite import resume_question
from lamella.errors import SettingError
from lamella.providers.scripted import ScriptedProvider


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with a conversation of a model that no provider of Lamella has."""

    async def talk() -> None:
        async with lamella.open(url, model="pretend:desk", provider=ScriptedProvider("Booked.")) as engine:
            async for _ in engine.chat("desks").send("Book a desk."):
                pass

    url = f"sqlite:///{tmp_path}/chats.db"
    asyncio.run(talk())
    return url


def test_model_of_another_program_is_explained(store: str) -> None:
    with pytest.raises(SettingError, match="There is no provider 'pretend'") as refused:
        resume_question("desks", vault=None, model=None, max_answer_tokens=None, store=store, as_json=False)
    assert refused.value.hint.startswith(
        "This conversation was last asked with pretend:desk. Continue it in the program"
    )


def test_model_that_the_user_named_is_not_explained_so(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["chats", "resume", "desks", "--model", "pretend:other", "--store", store]) == 2
    printed = capsys.readouterr().err
    assert "There is no provider 'pretend'" in printed
    assert "last asked" not in printed


@pytest.mark.parametrize("command", ["show", "ledger", "chats show"])
def test_first_command_on_a_new_machine_says_that_there_are_no_conversations(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LAMELLA_CONFIG", "/dev/null")
    monkeypatch.delenv("LAMELLA_STORE", raising=False)
    assert run_command_line([*command.split(), "nope"]) == 2
    assert capsys.readouterr().err == (
        "error: No conversations yet.\nhint: Start or import one: `lamella chat` or `lamella chats import FILE`\n"
    )
