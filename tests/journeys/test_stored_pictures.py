"""Images are stored with their conversation: reloaded, forked, edited, regenerated, archived, and in transcripts."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import run, spawn
from tests.sites import reply, site
from tests.unit.pictures import png

import lamella
from lamella import ActiveNote, Conversation, Engine, Image

MODEL = "anthropic:claude-opus-5-5"
CHART, DOT = png(60, 40), png(4, 4, 9)


def pictures(chat: Conversation, number: int = -1) -> list[list[bytes]]:
    turn = list(chat.replay())[number]
    return [[image.data for image in message.images] for message in turn.messages if message.images]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "note.md").write_text("Look: ![[chart.png]]", encoding="utf-8")
    (folder / "chart.png").write_bytes(CHART)
    return folder


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/chats.db"


@pytest.fixture
def engine(url: str, vault: Path) -> Iterator[Engine]:
    """A store with a conversation of two turns, and a vault whose files are gone by now."""
    with lamella.open(url, model=MODEL, vault=vault) as engine:
        conversation = engine.chat("pier", layout="in_place", attachments="turn")
        conversation.ask("What is this?", attach=[ActiveNote(path="note.md"), Image(data=DOT, title="dot")])
        conversation.reply("A pier and a dot.")
        conversation.ask("How long is it?")
        conversation.reply("Sixty metres.")
    (vault / "note.md").unlink()
    (vault / "chart.png").unlink()
    with lamella.open(url, model=MODEL, vault=vault) as engine:
        yield engine


def test_reload_resends_message_with_images_unchanged(engine: Engine) -> None:
    conversation = engine.chat("pier")
    assert pictures(conversation) == [[DOT, CHART]]
    later = conversation.ask("And now?")
    assert [image.data for image in later.messages[0].images] == [DOT, CHART]
    assert str(later.prefix_change.prefix_change) == "none"


def test_fork_keeps_images(engine: Engine) -> None:
    conversation = engine.chat("pier")
    fork = engine.fork(conversation, conversation.turns()[1].message.id, "elsewhere")
    assert pictures(fork) == [[DOT, CHART]]
    conversation.fork(conversation.turns()[0].message.id)
    assert pictures(conversation) == [[DOT, CHART]]


def test_edit_and_regeneration_keep_images(engine: Engine) -> None:
    conversation = engine.chat("pier")
    edited = conversation.edit(conversation.turns()[0].message.id, "What is that?")
    assert [image.data for image in edited.messages[-1].images] == [DOT, CHART]
    conversation.reply("That is a pier.")
    again = conversation.regenerate()
    assert [image.data for image in again.messages[-1].images] == [DOT, CHART]


def test_archive_includes_images(engine: Engine, tmp_path: Path) -> None:
    file = engine.export_archive("pier", tmp_path / "out")
    with lamella.open("sqlite://", model=MODEL) as other:
        conversation, _, warnings = other.import_archive(file)
        assert (pictures(conversation), list(warnings)) == ([[DOT, CHART]], [])


def test_transcript_includes_images_and_replays_the_same(engine: Engine, tmp_path: Path) -> None:
    conversation = engine.chat("pier")
    file = tmp_path / "pier.json"
    file.write_text(json.dumps(conversation.transcript()), encoding="utf-8")
    printed = json.loads(run("replay", str(file), "--json").out)
    sent = [turn["messages"] for turn in printed["turns"]]
    assert sent == [[message.to_dict() for message in turn.messages] for turn in conversation.replay()]
    assert str(sent).count(b64encode(CHART).decode()) == 2


@pytest.mark.parametrize("has_vault", [True, False])
def test_web_image_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_vault: bool) -> None:
    monkeypatch.setenv("LAMELLA_PRIVATE_ADDRESSES", "127.0.0.1")
    monkeypatch.setenv("LAMELLA_CONVERSIONS", str(tmp_path / "kept"))
    with site(lambda _path, _headers: reply(CHART, kind="image/png")) as here:
        chat = lamella.Conversation(model=MODEL, vault=tmp_path if has_vault else None)
        note = ActiveNote(path="n.md", text=f"![gauge]({here.url}/gauge.png)")
        turn = chat.ask("What is this?", attach=[note])
        assert [image.data for image in turn.messages[-1].images] == [CHART]
        chat.reply("A gauge.")
        again = chat.ask("And this?", attach=[Image(url=f"{here.url}/gauge.png")])
    assert [image.data for image in again.messages[-1].images] == [CHART]
    assert (turn.envelope.warnings, here.paths) == ((), ["/gauge.png"])


def test_pasted_image_is_sent_with_next_message(
    home: Mapping[str, str], script: Callable[..., str], tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (tmp_path / "clipboard.png").write_bytes(CHART)
    program = programs / "wl-paste"
    program.write_text(f'#!/bin/sh\ncat "{tmp_path}/clipboard.png"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {**home, "PATH": f"{programs}:/usr/bin:/bin", "WAYLAND_DISPLAY": "wayland-0"}
    lines = f"/paste\n/paste data:image/png;base64,{b64encode(DOT).decode()}\n/paste no letters\nWhat are these?\n"
    words = ("chat", "pier", "--model", script("A chart and a dot."))
    ran = spawn(*words, stdin=lines.encode(), environment=environment)
    assert (ran.exit, ran.out.splitlines()[-1]) == (0, "A chart and a dot."), ran.err
    assert "pasted-1, " in ran.err + ran.out
    assert "pasted-2, " in ran.err + ran.out
    assert "What is pasted is no data URI." in ran.err
    shown = json.loads(spawn("replay", "pier", "--json", environment=home).out)["turns"][0]["messages"][-1]["content"]
    assert [part["data"] for part in shown if part["type"] == "image"] == [
        b64encode(CHART).decode(),
        b64encode(DOT).decode(),
    ]


def test_paste_without_image_explains_alternative(home: Mapping[str, str], script: Callable[..., str]) -> None:
    environment = {**home, "PATH": "/nowhere", "WAYLAND_DISPLAY": "", "DISPLAY": ""}
    ran = spawn("chat", "pier", "--model", script("Hello."), stdin=b"/paste\n", environment=environment)
    assert "No image found on the clipboard." in ran.err
    assert "/attach the file" in ran.err
