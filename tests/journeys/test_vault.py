"""A stored chat over a vault: embedded notes, aliases, moved notes, and the active note."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import Ran, spawn
from tests.unit.pictures import png

Talk = Callable[..., Ran]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "sea").mkdir(parents=True)
    (folder / "trip.md").write_text("# Trip\n\n![[tides#Today]]\n\n![[map.png]]\n")
    (folder / "sea" / "tides.md").write_text(
        "---\naliases: [Ebb and flow]\n---\n# Today\nLow at 14:10.\n# Later\nHigh.\n"
    )
    (folder / "map.png").write_bytes(png(4, 3))
    return folder


@pytest.fixture
def talk(home: Mapping[str, str], notes: Path, script: Callable[..., str]) -> Talk:
    """A chat over these notes that gets these lines."""

    def talking(*lines: str, options: tuple[str, ...] = ()) -> Ran:
        model = script(*(f"Answer {number}." for number in range(9)))
        words = ("chat", "talk", "--model", model, "--vault", str(notes), *options)
        return spawn(*words, stdin="".join(f"{line}\n" for line in lines).encode(), environment=home)

    return talking


def sent(home: Mapping[str, str]) -> str:
    """All messages of the last request."""
    turns = json.loads(spawn("replay", "talk", "--json", environment=home).out)["turns"]
    return json.dumps(turns[-1]["messages"], ensure_ascii=False)


def test_changed_embedded_note_is_sent_in_next_session(talk: Talk, home: Mapping[str, str], notes: Path) -> None:
    assert talk("What of [[trip]]?", "More?").exit == 0
    assert sent(home).count("Low at 14:10.") == 1
    assert "High." not in sent(home)
    (notes / "sea" / "tides.md").write_text("# Today\nLow at 15:20.\n")
    ran = talk("And now?")
    assert "warning: trip.md changed since it was last sent; its new text is sent now.\n" in ran.err
    assert "Low at 15:20." in sent(home)


def test_note_that_was_moved_between_two_sessions_is_not_sent_again(
    talk: Talk, home: Mapping[str, str], notes: Path
) -> None:
    ran = talk("What of [[Ebb and flow]]?")
    assert "attached: sea/tides.md\n" in ran.err
    (notes / "archive").mkdir()
    (notes / "sea" / "tides.md").rename(notes / "archive" / "old tides.md")
    ran = talk("And now?", "And then?")
    told = "sea/tides.md was moved to archive/old tides.md. It keeps its name here, and its text is not sent again."
    assert ran.err.count(told) == 1
    assert sent(home).count("Low at 14:10.") == 1
    (notes / "archive" / "old tides.md").write_text("Low at 16:30.\n")
    assert "warning: sea/tides.md changed since it was last sent" in talk("And today?").err


def test_active_note_sends_images_with_each_message_until_cleared(
    talk: Talk, home: Mapping[str, str], notes: Path
) -> None:
    ran = talk("What is open?", "/active", "And now?", options=("--active-note", "trip.md"))
    assert (ran.exit, ran.out.count("No active note.")) == (0, 1)
    turns = json.loads(spawn("replay", "talk", "--json", environment=home).out)["turns"]
    kinds = [[one["kind"] for one in turn["envelope"]["layers"][2]["segments"]] for turn in turns]
    assert kinds == [["active_note", "image"], []]
    (notes / "trip.md").unlink()
    ran = talk("/active [[Ebb and flow]]", "/active map.png", "/active gone", "What is open?")
    assert "Active note: [[Ebb and flow]]. It is sent with every message." in ran.out
    assert "error: map.png is not a note.\n" in ran.err
    assert "error: There is no file gone in the vault.\n" in ran.err
    assert "<active_note>" in sent(home)


def test_missing_active_note_does_not_stop_chat(talk: Talk, home: Mapping[str, str], notes: Path) -> None:
    refused = talk("What is open?", options=("--active-note", "gone.md"))
    assert (refused.exit, "error: There is no file gone.md in the vault." in refused.err) == (2, True)
    asked = spawn(
        *("ask", "What is open?", "--active-note", "trip.md", "--vault", str(notes), "--preview", "--json"),
        environment=home,
    )
    assert [one["kind"] for one in json.loads(asked.out)["envelope"]["layers"][2]["segments"]] == [
        "active_note",
        "image",
    ]
