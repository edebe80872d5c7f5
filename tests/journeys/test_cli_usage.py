"""The command with words it does not know, options that do not go together, and an environment full of nonsense."""

import json
from pathlib import Path

import pytest
from tests.journeys.running import refusal, run

from lamella import __version__

MOVES = {
    "lamella": 1,
    "turns": [{"user": "a", "attach": [{"kind": "note", "path": "n.md", "text": "N"}]}, {"user": "b"}, {"user": "c"}],
}


@pytest.fixture
def good(tmp_path: Path) -> str:
    file = tmp_path / "good.json"
    file.write_text(json.dumps(MOVES), encoding="utf-8")
    return str(file)


WORDS = {
    "a command nobody knows": (["nonsense"], "No such command 'nonsense'."),
    "a file instead of a command": (["good.json"], "No such command 'good.json'."),
    "an option nobody knows": (["--bogus"], "No such option: --bogus"),
    "no file": (["replay"], "Missing argument"),
    "two files": (["replay", "FILE", "FILE"], "unexpected extra argument"),
    "an option of replay that nobody knows": (["replay", "FILE", "--bogus"], "No such option: --bogus"),
    "an option misspelt": (["replay", "FILE", "--jsno"], "--json"),
    "a window in words": (["replay", "FILE", "--window", "wide"], "Invalid value for '--window'"),
    "an option for a window": (["replay", "FILE", "--window"], "Invalid value for '--window'"),
    "a layout of nothing": (["replay", "FILE", "--json", "--layout"], "requires an argument"),
    "a window with a point": (["replay", "FILE", "--window", "1.5"], "Invalid value for '--window'"),
    "breaks below nothing": (["replay", "FILE", "--check", "--max-prefix-breaks", "-1"], "--max-prefix-breaks"),
    "breaks without a check": (["replay", "FILE", "--max-prefix-breaks", "1"], "--max-prefix-breaks needs --check."),
    "two ways to print": (["replay", "FILE", "--messages"], "Use either --json or --messages, not both."),
}


@pytest.mark.parametrize(("words", "what"), WORDS.values(), ids=WORDS)
def test_invalid_arguments_are_refused(good: str, words: list[str], what: str) -> None:
    given = [good if word == "FILE" else word for word in words]
    ran = run(*given) if "--json" in words else run(*given, "--json")
    assert what in refusal(ran, code="bad_usage")


def test_choices_are_listed_on_one_line() -> None:
    message = refusal(run("completion", "--json"), code="bad_usage")
    assert message == "Missing argument 'shell'. Choose from: bash, zsh, fish, powershell"


OVERRIDES = {
    "no such layout": (["--layout", "sideways"], "bad_setting", "There is no layout 'sideways'."),
    "no layout at all": (["--layout", ""], "bad_setting", "There is no layout ''."),
    "no window": (["--window", "0"], "bad_setting", "A window of 0 tokens"),
    "a window below nothing": (["--window=-5"], "bad_setting", "A window of -5 tokens"),
    "a window past all numbers": (["--window", "9" * 400], "bad_setting", "less than or equal to"),
}


@pytest.mark.parametrize(("options", "code", "what"), OVERRIDES.values(), ids=OVERRIDES)
def test_invalid_option_is_refused_like_in_transcript(good: str, options: list[str], code: str, what: str) -> None:
    assert what in refusal(run("replay", good, "--json", *options), code=code)


ENVIRONMENT = {
    "LAMELLA_WINDOW": {"wide": "bad_setting", "": "bad_setting", "1e5": "bad_setting", "-1": "bad_setting"},
    "LAMELLA_RESERVE": {"none": "bad_setting", "999999": "bad_setting", "9" * 5_000: "bad_setting"},
    "LAMELLA_LAYOUT": {"sideways": "bad_setting", "": "bad_setting", "Auto": "bad_setting"},
    "LAMELLA_HISTORY": {"none": "bad_setting", "Full": "bad_setting"},
    "LAMELLA_HISTORY_TURNS": {"0": "bad_setting", "few": "bad_setting"},
    "LAMELLA_PROFILE": {"fast": "bad_setting"},
    "LAMELLA_COMPACTION": {'{"steps": ["shred"]}': "bad_setting", '{"step": []}': "bad_setting"},
    "LAMELLA_CARRY_FORWARD": {"none": "bad_setting"},
    "LAMELLA_WARN": {"nan": "bad_setting", "inf": "bad_setting", "0.99": "bad_setting", "much": "bad_setting"},
    "LAMELLA_HARD": {"-1": "bad_setting", "2": "bad_setting", "": "bad_setting"},
    "LAMELLA_IMAGE_NOTES": {"maybe": "bad_setting", "2": "bad_setting"},
}


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_invalid_environment_is_refused(good: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for value, code in ENVIRONMENT[name].items():
        monkeypatch.setenv(name, value)
        assert len(refusal(run("replay", good, "--json"), code=code)) < 3_000


def test_transcript_and_an_option_win_over_the_environment(good: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run("replay", good, "--json", "--layout", "in_place")
    monkeypatch.setenv("LAMELLA_LAYOUT", "sideways")
    assert run("replay", good, "--json", "--layout", "in_place") == plain


def test_no_arguments_print_help_and_version_prints_version() -> None:
    assert run() == run("--debug")
    assert "lamella chat garden --vault examples/vault" in run().out
    assert run("--version").out == f"lamella {__version__}\n"


@pytest.mark.parametrize("words", [("--debug", "replay", "FILE", "--json"), ("replay", "FILE", "--json", "--debug")])
def test_debug_shows_the_traceback_of_an_error_and_then_the_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = run(*(str(tmp_path / "gone.json") if word == "FILE" else word for word in words))
    trace, error, hint = ran.err.rpartition("\nerror: ")[0], *ran.err.splitlines()[-2:]
    assert trace.startswith("Traceback (most recent call last):")
    assert "TranscriptError" in trace
    assert error.endswith("gone.json cannot be read: No such file or directory.")
    assert hint.startswith("hint: ")
    assert (ran.exit, json.loads(ran.out)["error"]["code"]) == (2, "bad_transcript")


def test_debug_changes_nothing_without_error(good: str) -> None:
    told, plain = run("replay", good, "--json", "--debug"), run("replay", good, "--json")
    assert (told.exit, told.out, plain.err) == (plain.exit, plain.out, "")
    assert "Traceback" not in told.err


@pytest.mark.layout("library")
@pytest.mark.parametrize(("allowed", "code"), [("0", 1), ("1", 0), ("2", 0)])
def test_check_fails_if_prefix_changes_too_often(good: str, allowed: str, code: int) -> None:
    ran = run("replay", good, "--check", "--max-prefix-breaks", allowed)
    assert ran.exit == code
    verdict = f"check {'passed' if code == 0 else 'failed'}: 3 turns satisfy every invariant; the prefix changed 1 time"
    assert verdict in (ran.err if code else ran.out)
    assert "Traceback" not in ran.err


@pytest.mark.layout("library")
def test_check_in_json_keeps_stdout_to_the_object(good: str) -> None:
    ran = run("replay", good, "--json", "--check", "--max-prefix-breaks", "0")
    assert ran.exit == 1
    assert json.loads(ran.out)["totals"]["prefix_breaks"] == 1
    assert ran.err.startswith("check failed: ")


def test_check_of_no_turns_passes(tmp_path: Path) -> None:
    file = tmp_path / "none.json"
    file.write_text('{"lamella": 1, "turns": []}', encoding="utf-8")
    ran = run("replay", str(file), "--check", "--max-prefix-breaks", "0")
    assert ran.exit == 0
    assert "check passed: 0 turns" in ran.out


@pytest.mark.parametrize("model", ["", ":", ":::", "nobody:nothing", "openai:", "x" * 10_000, "openai:((", "\0"])
def test_unknown_model_has_token_count_and_no_price(good: str, model: str) -> None:
    ran = run("replay", good, "--json", "--model", model)
    assert (ran.exit, ran.err) == (0, "")
    assert [turn["cost"] for turn in json.loads(ran.out)["turns"]] == [None] * 3


def test_broken_file_prints_nothing_to_stdout(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"lamella": 1, "turns": [{"user": "a"}, {"usr": "b"}]}), encoding="utf-8")
    ran = run("replay", str(file))
    assert (ran.exit, ran.out) == (2, "")
    assert "turns[1].user: this field is missing (1 more place)" in ran.err


@pytest.mark.parametrize("words", [("memory",), ("memory", "gone")])
def test_incomplete_or_unknown_subcommand_lists_choices(words: tuple[str, ...]) -> None:
    ran = run(*words)
    assert ran.exit == 2
    told = "Choose one of: add, edit, keep, list, remove. See: lamella memory --help"
    assert ran.err.splitlines()[-1] == f"hint: {told}"


def test_unknown_command_points_to_help() -> None:
    assert run("gone").err.splitlines()[-1] == "hint: See: lamella --help"
