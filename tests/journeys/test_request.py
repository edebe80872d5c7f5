"""``lamella request``: a turn's body for each provider, printed without a key and without a network."""

import json
from pathlib import Path

import pytest
from tests.journeys.requests import GOLDEN, MODELS, TRANSCRIPT, golden_path, printed
from tests.journeys.running import spawn

import lamella


@pytest.mark.layout("library")
@pytest.mark.parametrize(("provider", "model"), MODELS.items())
def test_printed_request_is_the_golden_one(tmp_path: Path, provider: str, model: str) -> None:
    ran = printed(tmp_path, provider, "--turn", "2", "--model", model)
    assert (ran.exit, ran.err) == (0, "")
    assert ran.out == golden_path(provider).read_text(encoding="utf-8")


def test_every_golden_file_has_its_provider() -> None:
    assert set(GOLDEN.glob("request.*.json")) == {golden_path(provider) for provider in MODELS}


@pytest.mark.parametrize(("provider", "model"), MODELS.items())
def test_printed_request_needs_and_shows_no_key(tmp_path: Path, provider: str, model: str) -> None:
    ran = printed(tmp_path, provider, "--model", model)
    body = json.loads(ran.out)
    assert not {"api_key", "key", "authorization", "stream"} & set(body)
    assert "Thanks." in ran.out


def test_json_output_wraps_same_body(tmp_path: Path) -> None:
    plain = json.loads(printed(tmp_path, "openai", "--model", "gpt-6-sol").out)
    told = json.loads(printed(tmp_path, "openai", "--model", "gpt-6-sol", "--json").out)
    assert told == {"lamella": 1, "conversation": told["conversation"], "turn": 3, "provider": "openai", "body": plain}


def test_without_a_turn_the_last_is_printed(tmp_path: Path) -> None:
    last = printed(tmp_path, "openai", "--model", "gpt-6-sol")
    third = printed(tmp_path, "openai", "--model", "gpt-6-sol", "--turn", "3")
    assert last.out == third.out
    assert "Thanks." not in printed(tmp_path, "openai", "--model", "gpt-6-sol", "--turn", "1").out


def test_maximum_answer_length_can_be_set(tmp_path: Path) -> None:
    ran = printed(tmp_path, "anthropic", "--model", "claude-opus-5-5", "--max-tokens", "77")
    assert json.loads(ran.out)["max_tokens"] == 77


def test_transcript_model_is_used(tmp_path: Path) -> None:
    named = {**TRANSCRIPT, "model": "openai:gpt-6-sol"}
    ran = printed(tmp_path, "openai-responses", transcript=named)
    assert json.loads(ran.out)["model"] == "gpt-6-sol"


def test_transcript_is_read_from_stdin() -> None:
    words = ("request", "-", "--provider", "gemini", "--model", "gemini-3.8-flash")
    ran = spawn(*words, stdin=json.dumps(TRANSCRIPT).encode())
    assert ran.exit == 0
    assert json.loads(ran.out)["generationConfig"] == {"maxOutputTokens": 4_096}


def test_named_model_is_accepted_by_any_format(tmp_path: Path) -> None:
    ran = printed(tmp_path, "openai", "--model", "claude-opus-5-5")
    assert json.loads(ran.out)["model"] == "claude-opus-5-5"
    assert "prompt_cache" not in ran.out


CLAUDE = {**TRANSCRIPT, "model": "anthropic:claude-opus-5-5"}
REFUSED = {
    "no model": (TRANSCRIPT, "anthropic", [], "error: The conversation names no model."),
    "another maker's model": (
        CLAUDE,
        "gemini",
        [],
        "error: anthropic:claude-opus-5-5 is not a model of the provider gemini.",
    ),
    "no such provider": (CLAUDE, "acme", [], "error: There is no provider 'acme' to build a request for."),
    "a turn too far": (CLAUDE, "anthropic", ["--turn", "4"], "error: Turn not found: 4 (the conversation has 3)."),
    "no turn at all": ({"lamella": 1, "turns": []}, "anthropic", [], "error: Turn not found: 0"),
    "a turn before the first": (CLAUDE, "anthropic", ["--turn", "0"], "error: Invalid value for '--turn'"),
    "no room for an answer": (CLAUDE, "anthropic", ["--max-tokens", "0"], "error: Invalid value for '--max-tokens'"),
}


@pytest.mark.parametrize(("transcript", "provider", "options", "what"), REFUSED.values(), ids=REFUSED)
def test_impossible_request_is_refused(
    tmp_path: Path, transcript: object, provider: str, options: list[str], what: str
) -> None:
    ran = printed(tmp_path, provider, *options, transcript=transcript)
    assert (ran.exit, ran.out) == (2, "")
    assert ran.err.startswith(what)
    assert "hint: " in ran.err


def test_python_refuses_model_of_other_provider_unless_named() -> None:
    turn = lamella.Conversation(model="anthropic:claude-opus-5-5").ask("Hi.")
    with pytest.raises(lamella.BadInputError, match="claude-opus-5-5 is not a model of the provider openai"):
        turn.request("openai")
    assert turn.request("openai", model="anthropic/claude-opus-5-5")["model"] == "anthropic/claude-opus-5-5"
    assert turn.request("anthropic")["model"] == "claude-opus-5-5"
