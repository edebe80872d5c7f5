"""Extreme sizes: they fit, or the error gives the excess, within seconds."""

import json
from pathlib import Path

import pytest
from tests.journeys.running import Ran, one_turn, refusal, replay, run, spawn

from lamella.tokenizers.o200k import count_tokens, encode

LINE = "The quick brown fox jumps over the lazy dog, again and again.\n"
MILLION = 1_000_000


def sized(plain: int, long: int) -> pytest.MarkDecorator:
    """A size that shows in seconds what the other one shows in a long run."""
    return pytest.mark.parametrize("size", [plain, pytest.param(long, marks=pytest.mark.long)])


def note(text: str) -> dict[str, object]:
    return one_turn(attach=[{"kind": "note", "path": "big.md", "text": text}])


def saved(folder: Path, transcript: object) -> str:
    file = folder / "t.json"
    with file.open("w", encoding="utf-8") as out:
        json.dump(transcript, out, indent=1)
    return str(file)


def needed(ran: Ran) -> int:
    """How many tokens the refused request has."""
    message = refusal(ran, code="budget_exceeded", exit_code=1)
    words = message.partition("The request needs ")[2].split()
    return int(words[0].replace(",", ""))


@sized(20_000_000, 200_000_000)
def test_text_of_many_megabytes_is_refused_with_tokens(tmp_path: Path, size: int) -> None:
    lines = size // len(LINE)
    ran = spawn("replay", saved(tmp_path, one_turn(user=LINE * lines)), "--json")
    assert lines * count_tokens(LINE) < needed(ran) < lines * count_tokens(LINE) + 100


@sized(20_000_000, 200_000_000)
def test_note_of_many_megabytes_is_outlined_with_warning(tmp_path: Path, size: int) -> None:
    lines = size // len(LINE)
    ran = spawn("replay", saved(tmp_path, note(LINE * lines)))
    assert (ran.exit, ran.err) == (0, "")
    words = ran.out.partition("warning: big.md is sent as its outline: its ")[2].split()
    assert lines * count_tokens(LINE) < int(words[0].replace(",", "")) < lines * count_tokens(LINE) + 100


@sized(MILLION // 8, MILLION)
def test_note_of_many_lines_is_outlined_or_fits_by_window(tmp_path: Path, size: int) -> None:
    transcript = note("line\n" * size)
    (outlined,) = json.loads(replay(tmp_path, transcript).out)["turns"][0]["messages"]
    assert f"[A summary of {5 * size:,} characters. " in outlined["content"]
    assert outlined["content"].count("line\n") < 1_000
    fits = replay(tmp_path, {**transcript, "window": 10 * MILLION})
    assert json.loads(fits.out)["turns"][0]["messages"][0]["content"].count("line\n") == size


@sized(MILLION // 8, MILLION)
def test_transcript_of_many_turns_replays_until_window_is_full(tmp_path: Path, size: int) -> None:
    turns = [{"user": f"Question {number}?", "reply": f"Answer {number}."} for number in range(size // 4)]
    never: dict[str, list[str]] = {"steps": []}
    file = saved(tmp_path, {"lamella": 1, "window": 8_000, "compaction": never, "turns": turns})
    assert Path(file).read_bytes().count(b"\n") > size
    ran = run("replay", file)
    shown = ran.out.count("\nturn ")
    assert shown > 100
    assert f"error: In turn {shown + 1}: The request needs " in ran.err
    assert "hint: " in ran.err
    assert ran.exit == 1
    assert ran.out.count("of 3,904 tokens") == shown + ran.out.count("warning: ")


ENDLESS = {
    "one letter": "a",
    "spaces": " ",
    "line breaks": "\n",
    "indented lines": "\n  x",
    "letters and digits": "a1B2c3",
    "a script without spaces": "的是一",
    "faces": "🙂",
    "one mark upon another": "\u0301",
}


@sized(MILLION // 4, 3 * MILLION)
@pytest.mark.parametrize("part", ENDLESS.values(), ids=ENDLESS)
def test_text_without_breaks_is_counted_as_whole(part: str, size: int) -> None:
    text = part * (size // len(part))
    assert count_tokens(text) == pytest.approx(len(encode(text)), abs=3)


def test_thousands_of_attachments_can_be_dropped_at_once(tmp_path: Path) -> None:
    many = [{"kind": "note", "path": f"{number}.md", "text": f"text {number}"} for number in range(2_000)]
    first = {"user": "a", "attach": many}
    second = {"user": "b", "drop": [one["path"] for one in many[:1_999]]}
    ran = replay(tmp_path, {"lamella": 1, "window": 10**9, "turns": [first, second, {"user": "c"}]})
    layers = json.loads(ran.out)["turns"][2]["envelope"]["layers"]
    assert [segment["id"] for segment in layers[1]["segments"]] == ["1999.md"]


def test_oversized_turn_is_named_and_earlier_ones_shown(tmp_path: Path) -> None:
    turns = [{"user": "small"}, {"user": "also small"}, {"user": "large " * 20_000}, {"user": "small again"}]
    transcript = {"lamella": 1, "window": 10_000, "turns": turns}
    assert needed(replay(tmp_path, transcript)) > 20_000
    ran = run("replay", saved(tmp_path, transcript))
    assert "error: In turn 3: The request needs 20," in ran.err
    assert "Kept whatever happens: " in ran.err
    assert [line for line in ran.out.splitlines() if line.startswith("turn ")] == [
        "turn 1  small",
        "turn 2  also small",
    ]


def test_oversized_first_turn_shows_nothing(tmp_path: Path) -> None:
    file = saved(tmp_path, {"lamella": 1, "window": 5_000, **one_turn(user="large " * 20_000)})
    for option in ("--messages", "--check"):
        ran = run("replay", file, option)
        assert (ran.exit, ran.out) == (1, "")
