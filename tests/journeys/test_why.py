"""``lamella why``: why an artifact is in the prompt of a stored conversation, or is not, and what to do about it."""

import json
from pathlib import Path

import pytest
from tests.journeys.running import refusal, run

import lamella
from lamella import Note

SPEC = Note(path="a/spec.md", text="# Spec\n" + "A sentence of the spec.\n" * 400)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with a conversation that attached a note, dropped another, and was compacted."""
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(url) as engine:
        conversation = engine.chat("garden", window=20_000, reserve=0)
        for text, more in (
            ("Read this.", {"attach": [SPEC, Note(path="b.md", text="B"), Note(path="secret.md", text="S")]}),
            ("Without b.", {"drop": ["b.md"]}),
            *((f"Question {number}? " + "word " * 60, {}) for number in range(6)),
        ):
            conversation.ask(text, **more)  # type: ignore[arg-type]
            conversation.reply("An answer. " * 20)
        assert conversation.compact(to=0.02) is not None
    return url


@pytest.mark.layout("library")
def test_why_prints_reason_and_commands_to_paste(url: str) -> None:
    ran = run("why", "garden", "spec", "--store", url)
    assert (ran.exit, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "a/spec.md is in the prompt of garden."
    assert "shortened it in its step" in lines[1]
    (undo,) = [line.strip().removeprefix("undo: ") for line in lines if line.strip().startswith("undo: ")]
    (read,) = [line.strip().removeprefix("read it: ") for line in lines if "read it: " in line]
    assert "# Spec" in run(*read.split()[1:]).out
    assert run(*undo.split()[1:]).exit == 0
    assert "It is in the context library in full." in run("why", "garden", "spec", "--store", url).out


def test_json_option_prints_same_reason(url: str) -> None:
    body = json.loads(run("why", "garden", "b.md", "--json", "--store", url).out)
    assert (body["id"], body["in_prompt"], body["why"]) == ("b.md", False, "It was dropped in turn 2.")
    assert body["brings_in"] == [{"do": "attach", "what": "b.md"}, {"do": "recall", "what": "b.md"}]
    with lamella.open(url) as engine:
        assert engine.chat("garden").why("b.md").why == body["why"]


def test_erased_attachment_is_reported(url: str) -> None:
    assert run("chats", "delete", "garden", "--artifact", "secret.md", "--yes", "--store", url).exit == 0
    reason = json.loads(run("why", "garden", "secret.md", "--json", "--store", url).out)
    assert (reason["in_prompt"], reason["why"]) == (False, "It was erased for good.")


def test_message_skipped_by_branch_is_not_forgotten_attachment(url: str) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("garden")
        gone = conversation.turns()[1].message.id
        conversation.delete(gone)
    lines = run("why", "garden", gone, "--store", url).out.splitlines()
    assert lines[1] == "It is a message of another branch."
    assert not any("attach" in line for line in lines)
    (back,) = [line.strip().removeprefix("continue from it: ") for line in lines if "continue from it" in line]
    assert run(*back.split()[1:]).exit == 0
    assert json.loads(run("why", "garden", gone, "--json", "--store", url).out)["in_prompt"] is True


def test_missing_conversation_is_refused(url: str) -> None:
    assert "nobody" in refusal(run("why", "nobody", "spec", "--json", "--store", url), code="bad_call")
