"""``lamella chat`` at a terminal: typing, stopping, leaving."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.journeys.running import spawn
from tests.journeys.terminal import ALT_ENTER, CTRL_C, ENTER, Terminal


def at_terminal(home: Mapping[str, str], *words: str) -> Terminal:
    return Terminal(["chat", "talk", *words], home)


def said(home: Mapping[str, str]) -> str:
    return spawn("chats", "show", "talk", environment=home).out


def test_messages_of_several_lines_are_sent_and_answers_drawn_as_markdown(
    home: Mapping[str, str], script: Callable[..., str]
) -> None:
    answer = "# Tides\n\nAt **noon**.\n\n```\nlow\n\nhigh\n```\n\n- one\n- two"
    model = script({"text": answer, "chunk": 4, "delay": 0.01, "usage": {"plain": 5, "read": 15, "output": 9}}, "Six.")
    with at_terminal(home, "--model", model) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("one", ALT_ENTER, "two\\", ENTER, "three", ENTER)
        terminal.wait_for("At noon.")
        terminal.wait_for("• two")
        terminal.wait_for("75% of the last turn cached")
        terminal.press("\x1b[200~pasted\ntwice\x1b[201~", ENTER)
        terminal.wait_for("Six.")
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0
    assert "**noon**" not in terminal.shown
    shown = said(home)
    assert "user: one\ntwo\nthree\n" in shown
    assert "user: pasted\ntwice\n" in shown


def test_ctrl_c_stops_answer_and_keeps_partial_text(home: Mapping[str, str], script: Callable[..., str]) -> None:
    model = script({"text": "word " * 200, "chunk": 5, "delay": 0.1}, "Done.")
    with at_terminal(home, "--model", model) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("Go on", ENTER)
        terminal.wait_for("word word")
        terminal.press_now(CTRL_C)
        terminal.wait_for("Stopped. The partial answer is saved")
        terminal.wait_for("tokens used")
        terminal.press(CTRL_C)
        terminal.wait_for("Press Ctrl-D or type /quit to leave.")
        terminal.wait_for("tokens used")
        terminal.press("And now?", ENTER)
        terminal.wait_for("Done.")
        terminal.wait_for("tokens used")
        terminal.press("/quit", ENTER)
        terminal.wait_for("Saved. Continue with: lamella chat talk")
        assert terminal.wait_for_end() == 0
    assert "reply: word word" in said(home)
    calls = [turn["calls"] for turn in json.loads(spawn("ledger", "talk", "--json", environment=home).out)["turns"]]
    assert [call[0]["stop"] for call in calls] == ["stopped", "end"]


def test_commands_and_paths_are_completed_and_input_history_is_kept(
    home: Mapping[str, str], script: Callable[..., str], tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "plan.md").write_text("# Plan\n", encoding="utf-8")
    with at_terminal(home, "--model", script("Yes."), "--vault", str(notes)) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("/led")
        terminal.wait_for("/ledger")
        terminal.press("\t", ENTER, ENTER)
        terminal.wait_for("0 turns")
        terminal.wait_for("tokens used")
        terminal.press("Read @pla")
        terminal.wait_for("plan.md")
        terminal.press("\t", ENTER, " now", ENTER)
        terminal.wait_for("Yes.")
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0
    assert "user: Read @plan.md now\n" in said(home)
    assert "+ plan.md\n" in said(home)
    history = tmp_path / "state" / "lamella" / "history"
    assert "+Read @plan.md now" in history.read_text(encoding="utf-8")
    assert history.stat().st_mode & 0o077 == 0


# What is typed, and what a menu offers that was not typed.
FURTHER = {
    "/set attachments ": "sticky",
    "/set secrets re": "refuse",
    "/tools ": "refresh",
    "/compact fr": "from",
    "/compact 0.5 from t": "turn:1  When is high",
    "/rules remove ": "Answer in one sentence.",
    "/memory edit ": "1  I keep bees",
    "/stage data ": "goals=",
}


def test_second_word_of_command_is_completed(home: Mapping[str, str], script: Callable[..., str]) -> None:
    with at_terminal(home, "--model", script("Yes.")) as terminal:
        for typed in ("When is high tide?", "/rules add Answer in one sentence.", "/memory add I keep bees"):
            terminal.wait_for("tokens used")
            terminal.press(typed, ENTER)
        terminal.wait_for("tokens used")
        terminal.press("/stage new rfc", ENTER)
        for typed, offered in FURTHER.items():
            terminal.wait_for("tokens used")
            terminal.press(typed)
            terminal.wait_for(offered)
            terminal.press(CTRL_C)
            terminal.wait_for("Press Ctrl-D or type /quit to leave.")
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0


def test_error_is_printed_and_prompt_returns(home: Mapping[str, str], script: Callable[..., str]) -> None:
    with at_terminal(home, "--model", script()) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("Hello?", ENTER)
        terminal.wait_for("error: The script has 0 lines")
        terminal.wait_for("hint: ")
        terminal.wait_for("no answer yet")
        assert terminal.end_chat() == 0


def test_control_sequences_of_model_are_not_sent_to_terminal(
    home: Mapping[str, str], script: Callable[..., str]
) -> None:
    with at_terminal(home, "--model", script("before \x1b]0;owned\x07 after")) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("Hello?", ENTER)
        terminal.wait_for("before \\x1b]0;owned\\x07 after")
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0


def test_attachment_is_preloaded_while_user_types(home: Mapping[str, str], tmp_path: Path) -> None:
    long = tmp_path / "long.md"
    long.write_text("\n".join(f"Bed {bed} has {bed * 3} tomato plants." for bed in range(60)), encoding="utf-8")
    with at_terminal(home, "--max-tokens", "4") as terminal:
        terminal.wait_for("tokens used")
        terminal.press(f"/attach {long}", ENTER)
        terminal.wait_for("is attached to the next message")
        terminal.wait_for("tokens in")
        terminal.press("Sum up", ENTER)
        terminal.wait_for("of the last turn cached")
        assert terminal.end_chat() == 0
    (turn,) = json.loads(spawn("ledger", "talk", "--json", environment=home).out)["turns"]
    (call,) = turn["calls"]
    assert call["verdict"]["outcome"] == "first"
    assert call["reported"]["read"] == call["predicted"]["read"] > 0


def test_demo_model_shows_progress_and_can_be_stopped(home: Mapping[str, str], tmp_path: Path) -> None:
    long = tmp_path / "long.md"
    long.write_text("\n".join(f"Bed {bed} has {bed * 3} tomato plants." for bed in range(120)), encoding="utf-8")
    with at_terminal(home, "--max-tokens", "8") as terminal:
        terminal.wait_for("tokens used")
        terminal.press(f"Sum up @{long} ", ENTER)
        terminal.wait_for("reading ")
        terminal.wait_for("tokens in")
        terminal.press_now(CTRL_C)
        terminal.wait_for("Stopped before the answer started.")
        terminal.wait_for("no answer yet")
        assert terminal.end_chat() == 0
