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


# Each file is listed for three turns and leaves then.
NAMES = [f"n{number}" for number in range(20)]
STAYING = [" ".join(NAMES[max(0, at - 2) : at + 1]) for at in range(20)]


def steps_cache(folder: Path) -> str:
    """Write facts of a model whose cache serves every prefix, so that the order of notes within a message matters."""
    file = folder / "facts.toml"
    file.write_text(
        '[[model]]\nmatch = "steps"\nas_of = 2026-11-17\nlike = "claude-sonnet-5"\nread = 0.5\nlifetime = 300\n'
        "minimum = 1024\ngranularity = 128\nbreakpoints = 0\nimplicit = true\nbills_writes = false\n"
        'lifetimes = [{name = "5m", seconds = 300, write = 1}]\n'
    )
    return str(file)


@pytest.mark.moves_prefix(reason="notes that are no longer listed are cut out")
def test_listing_notes_in_each_turn_costs_the_same_as_attaching_them_once(
    converse: type[Watched], tmp_path: Path
) -> None:
    texts = {name: f"{name} " * 2_000 for name in NAMES}
    facts = steps_cache(tmp_path)
    sizes: list[list[int]] = []
    for listed in (True, False):
        chat = converse(
            layout="auto",
            attachments="turn" if listed else "sticky",
            linger=0,
            model="anthropic:steps",
            model_facts=facts,
            window=10**6,
        )
        before: set[str] = set()
        sent: list[int] = []
        for names in map(str.split, STAYING):
            new = names if listed else [name for name in names if name not in before]
            gone = () if listed else tuple(f"{name}.md" for name in sorted(before - {*names}))
            turn = chat.ask("go on", attach=[note(name, texts[name]) for name in new], detach=gone, at=START)
            sent.append(turn.envelope.prompt.total)
            chat.reply("r", at=START)
            before = {*names}
        sizes.append(sent)
    assert sizes[0] == sizes[1]


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
