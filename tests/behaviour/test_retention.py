"""How long an attachment stays in use: until turns turn out to list everything that they need."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.conftest import Watched

import lamella
from lamella import Note
from lamella.archive.transcript import load_transcript
from lamella.wiring.transcripts import replay_transcript

START = datetime(2026, 11, 1, tzinfo=UTC)


def note(name: str, text: str = "") -> Note:
    return Note(path=f"{name}.md", text=text or name)


def play(chat: Watched, *listed: str) -> list[list[str]]:
    """Ask once for each list of notes, and return what each request must show."""
    found: list[list[str]] = []
    for names in listed:
        turn = chat.ask("go on", attach=[note(*one.split("=")) for one in names.split()])
        found.append(list(turn.envelope.prompt.working_set))
        chat.reply("r")
    return found


def test_retention_ends_once_two_turns_in_a_row_list_what_was_listed_before(converse: type[Watched]) -> None:
    seen = play(converse(layout="auto"), "a b", "a b", "a c", "c", "", "d")
    assert seen == [["a.md", "b.md"], ["a.md", "b.md"], ["a.md", "c.md"], ["c.md"], [], ["d.md"]]


def test_one_repeated_list_does_not_end_retention(converse: type[Watched]) -> None:
    seen = play(converse(layout="auto"), "a b", "a", "c", "c", "d")
    assert seen[-1] == ["c.md", "d.md"]
    assert seen[2] == ["a.md", "b.md", "c.md"]


@pytest.mark.moves_prefix(reason="the full text costs less than two differences")
def test_changed_text_is_no_repetition(converse: type[Watched]) -> None:
    seen = play(converse(layout="auto"), "a=1 b", "a=2", "a=3", "c")
    assert seen[-1] == ["a.md", "c.md"]


@pytest.mark.parametrize("given", [{"linger": 2}, {"attachments": "sticky"}], ids=["linger", "sticky"])
def test_explicit_settings_are_never_changed(converse: type[Watched], given: dict[str, object]) -> None:
    chat = converse(layout="auto", **given)  # type: ignore[arg-type]
    seen = play(chat, "a", "a", "a", "b")
    assert seen[-1] == ["a.md", "b.md"]


def test_learnt_retention_survives_reopening_and_branches(tmp_path: Path) -> None:
    url, at = f"sqlite:///{tmp_path / 'chats.db'}", START
    for number, names in enumerate(("ab", "ab", "ac", "c", "d")):
        # Each turn in an engine of its own, as programs do that run once per question.
        with lamella.open(url) as engine:
            chat = engine.chat("demo", layout="auto", model="anthropic:claude-opus-5-5")
            chat.ask("go on", attach=[note(one) for one in names], at=at + timedelta(minutes=number))
            chat.reply("r", at=at + timedelta(minutes=number))
    with lamella.open(url) as engine:
        chat = engine.chat("demo")
        assert [turn.envelope.prompt.turn_settings.linger for turn in chat.replay()] == [2, 2, 0, 0, 0]
        before = chat.turns()[1].reply
        assert before is not None
        chat.fork(before.id)
        turn = chat.ask("go on", attach=[note("x")])
        assert turn.envelope.prompt.working_set == ("a.md", "b.md", "x.md")


def test_transcript_replays_the_same_requests(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(url) as engine:
        chat = engine.chat("demo", layout="in_place", model="anthropic:claude-opus-5-5")
        for names in ("ab", "ab", "ac", "c", "d"):
            chat.ask("go on", attach=[note(one) for one in names])
            chat.reply("r")
        written = chat.transcript()
    assert written["learns_retention"] is True
    assert "linger" not in written
    assert "differing_turns" not in written


def test_transcript_without_learning_keeps_its_retention(tmp_path: Path) -> None:
    turns = [{"user": "go on", "attach": [{"kind": "note", "path": "a.md", "text": "A"}], "reply": "r"}] * 4
    turns.append({"user": "go on"})
    for learns, stays in ((False, ("a.md",)), (True, ())):
        file = tmp_path / f"{learns}.json"
        body = {"lamella": 1, "conversation": "c", "layout": "auto", "learns_retention": learns, "turns": turns}
        file.write_text(json.dumps(body))
        *_, last = replay_transcript(load_transcript(file), overrides={}, base_folder=tmp_path)
        assert last.envelope.prompt.working_set == stays
