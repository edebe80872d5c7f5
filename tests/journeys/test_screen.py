"""The screen of a terminal: it shows the whole answer, each word once, for any answer and width."""

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import spawn
from tests.journeys.terminal import CTRL_C, ENTER, Terminal

WORD = re.compile(r"q\d+z")
READ = re.compile(r"tokens in[^:\n]*: (\d+)%")


def at_terminal(home: Mapping[str, str], *words: str, columns: int = 80, kind: str = "xterm") -> Terminal:
    # What a variable says of another terminal is not believed.
    stale = {**home, "COLUMNS": "132", "LINES": "50"}
    return Terminal(["chat", "talk", *words], stale, columns=columns, kind=kind)


class Author:
    """Writes answers in which every word is unique."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = 0

    def write(self) -> str:
        return "\n\n".join(self._block() for _ in range(self._random.randint(1, 6)))

    def _block(self) -> str:
        kinds = (self._prose, self._list, self._code, self._table, self._tags, self._heading, self._wide, self._numbers)
        return self._random.choice(kinds)()

    def _take(self, least: int = 1, most: int = 60) -> list[str]:
        number = self._random.randint(least, most)
        self._words += number
        return [f"q{word}z" for word in range(self._words - number, self._words)]

    def _prose(self) -> str:
        marks = ("{}", "{}", "{}", "**{}**", "_{}_", "`{}`", "~~{}~~", "[{}](http://b)", "<http://{}>", "![{}](c.png)")
        return " ".join(self._random.choice(marks).format(word) for word in self._take(most=200))

    def _list(self) -> str:
        return "\n".join(f"{self._random.choice(('', '  '))}- {word} of {word}x" for word in self._take(most=30))

    def _numbers(self) -> str:
        return "\n".join(f"{number}. {word}" for number, word in enumerate(self._take(most=12), start=3))

    def _code(self) -> str:
        return "```\n" + "\n".join(f"    <div>{word}</div>\n" for word in self._take(most=60)) + "```"

    def _table(self) -> str:
        rows = "\n".join(f"| {word} | List<{word}a> |" for word in self._take(most=8))
        return f"| a | b |\n|---|---|\n{rows}"

    def _tags(self) -> str:
        return "\n".join(f"<div class='{word}'>&amp;" for word in self._take(most=9))

    def _heading(self) -> str:
        return f"## {self._take(1, 1)[0]}\n[a{self._words}]: http://c/{self._take(1, 1)[0]}"

    def _wide(self) -> str:
        marks = ("漢字", "❤️", "👩‍👩‍👧", "é̂", "नमस्ते", "🇩🇪", "…")
        return " ".join(f"{word}{self._random.choice(marks)}" for word in self._take(most=80))


def ask(terminal: Terminal, answers: int) -> Iterator[None]:
    terminal.wait_for("tokens used")
    for _ in range(answers):
        terminal.press("Go on", ENTER)
        yield
        terminal.wait_for("tokens used")
    assert terminal.end_chat() == 0


@pytest.mark.parametrize("number", [6, pytest.param(24, marks=pytest.mark.long)])
@pytest.mark.parametrize("columns", [60, 80, 100])
def test_each_word_of_answer_is_shown_once(
    home: Mapping[str, str], script: Callable[..., str], columns: int, number: int
) -> None:
    author = Author(columns)
    answers = [author.write() for _ in range(number)]
    model = script(*({"text": text, "chunk": 60, "delay": 0.02} for text in answers))
    with at_terminal(home, "--model", model, columns=columns) as terminal:
        for _ in ask(terminal, number):
            pass
    said = WORD.findall("\n".join(answers))
    # A terminal that gives an emoji more room than we do wraps within a word.
    shown = WORD.findall("".join(terminal.screen))
    assert sorted(shown) == sorted(said)


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_stopped_answer_is_shown_once_as_far_as_received(
    home: Mapping[str, str], script: Callable[..., str], columns: int
) -> None:
    # Words of three letters and a blank end a line in its last column, where what a terminal echoes would wrap.
    text = " ".join(f"q{word}z" for word in range(10, 100)) + " " + " ".join(f"q{word}z" for word in range(100, 3_000))
    model = script(*[{"text": text, "chunk": 5, "delay": 0.01}] * 4)
    with at_terminal(home, "--model", model, columns=columns) as terminal:
        for number, _ in enumerate(ask(terminal, 4)):
            terminal.wait_for(f"q{10 + number * 7}z")
            time.sleep(number / 7)
            terminal.press_now(CTRL_C)
            terminal.wait_for("Stopped. The partial answer is saved")
    kept = spawn("chats", "show", "talk", environment=home).out
    answers = [WORD.findall(part) for part in "\n".join(terminal.screen).split("Stopped.")[:4]]
    replies = [WORD.findall(part) for part in kept.split("  reply: ")[1:]]
    for shown, said in zip(answers, replies, strict=True):
        # What came at the very moment of the key is kept, and may not have been drawn.
        assert shown == said[: len(shown)]
        assert len(said) - len(shown) <= 1


@pytest.mark.parametrize("code", ["```\ncode\n```", "```python\ncode()", "    code", "```code", "```code```", "<code>"])
def test_answer_of_code_only_is_shown(home: Mapping[str, str], script: Callable[..., str], code: str) -> None:
    with at_terminal(home, "--model", script(code)) as terminal:
        for _ in ask(terminal, 1):
            pass
    _, answer = "\n".join(terminal.screen).split("> Go on")
    assert sum("code" in line for line in answer.splitlines()) == 1


def test_own_messages_wrap_between_words(home: Mapping[str, str], script: Callable[..., str]) -> None:
    with at_terminal(home, "--model", script("Yes."), columns=60) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("/help", ENTER)
        terminal.wait_for("tokens used")
        terminal.press("/ledger what", ENTER)
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0
    shown = " ".join(" ".join(terminal.screen).split())
    assert "/help lists all commands." in shown
    assert "Enter sends. Alt-Enter, or a backslash before Enter, starts a new line." in shown


@pytest.mark.parametrize(("columns", "under"), [(60, 4), (80, 4), (100, 52)])
def test_long_turn_line_continues_indented(home: Mapping[str, str], columns: int, under: int) -> None:
    with Terminal(["replay", "examples/long.json"], home, columns=columns) as terminal:
        assert terminal.wait_for_end() == 0
    last = terminal.screen[max(place for place, line in enumerate(terminal.screen) if line.startswith("turn 16")) :]
    more = next(line for line in last if "fea88963a5c3" in line)
    assert len(more) - len(more.lstrip()) == under
    layers = last[next(place for place, line in enumerate(last) if "L1_SYSTEM" in line) : last.index("", 1)]
    assert all(line.startswith("  ") for line in layers)


def test_dumb_terminal_shows_input_without_completion(
    home: Mapping[str, str], script: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plan.md").write_text("# Plan\n", encoding="utf-8")
    words = ("--model", script("Two."), "--vault", str(tmp_path / "notes"))
    with at_terminal(home, *words, kind="dumb") as terminal:
        terminal.wait_for("> ")
        terminal.press("Read @pla\tn.md\\", ENTER, "now", ENTER)
        terminal.wait_for("Two.")
        terminal.wait_for("tokens used")
        terminal.wait_for("\n> ")
        terminal.press_now(CTRL_C)
        terminal.wait_for("Press Ctrl-D or type /quit to leave.")
        terminal.press("/quit", ENTER)
        assert terminal.wait_for_end() == 0
    assert "\x1b" not in terminal.raw
    assert "user: Read @pla\tn.md\nnow\n" in spawn("chats", "show", "talk", environment=home).out


def test_ctrl_c_stops_demo_model_while_it_reads_prompt(home: Mapping[str, str], tmp_path: Path) -> None:
    long = tmp_path / "long.md"
    long.write_text("\n".join(f"Bed {bed} has {bed * 3} tomato plants." for bed in range(300)), encoding="utf-8")
    with at_terminal(home, "--max-tokens", "8") as terminal:
        terminal.wait_for("tokens used")
        terminal.press(f"Sum up @{long} ", ENTER)
        terminal.wait_for("tokens in")
        terminal.press_now(CTRL_C)
        terminal.wait_for("Stopped before the answer started. The question is saved")
        terminal.wait_for("no answer yet")
        assert terminal.end_chat() == 0
    shares = [int(share) for share in READ.findall(terminal.shown)]
    assert shares
    assert max(shares) < 100, "it was read to the end all the same"
