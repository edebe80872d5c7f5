"""Replay: each turn as it would have been sent, built only when it is asked for."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamella.conversation.turn import BuiltTurn
from lamella.errors import SettingError, SourceNotFoundError
from lamella.wiring import parse_transcript, replay_transcript


def replay(beside: Path = Path(), overrides: dict[str, object] | None = None, **fields: object) -> Iterator[BuiltTurn]:
    data = json.dumps({"lamella": 1, **fields}).encode()
    return replay_transcript(parse_transcript(data, name="t"), overrides=overrides or {}, base_folder=beside)


def test_replies_and_settings_of_the_file_are_used() -> None:
    turns = list(replay(conversation="c", window=5_000, turns=[{"user": "a", "reply": "b"}, {"user": "c"}]))
    assert [message.text for message in turns[1].messages] == ["a", "b", "c"]
    assert turns[0].tokens.limit == 904
    assert turns[0].envelope.conversation_id == "c"


def test_overrides_win_over_the_file() -> None:
    (turn,) = replay(overrides={"layout": "in_place", "window": None}, layout="library", turns=[{"user": "a"}])
    assert turn.envelope.layout == "in_place"


def test_vault_is_relative_to_the_transcript(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("A text", encoding="utf-8")
    turns = [{"user": "q", "attach": [{"kind": "note", "path": "a.md"}]}]
    (turn,) = replay(tmp_path, vault="notes", turns=turns)
    assert "A text" in turn.messages[-1].text


def test_missing_vault_fails_before_first_turn(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="no vault folder"):
        replay(tmp_path, vault="nowhere", turns=[])


@pytest.mark.parametrize("settings", [{"layout": "sideways"}, {"carry_forward": "half"}, {"history": "none"}])
def test_unknown_choice_lists_valid_ones(settings: dict[str, object]) -> None:
    with pytest.raises(SettingError, match="There is no") as caught:
        replay(overrides=settings, turns=[])
    assert "Choose one of" in caught.value.hint


def test_turns_are_built_one_at_a_time() -> None:
    turns = replay(turns=[{"user": "good"}, {"user": "bad", "attach": [{"kind": "note", "path": "x.md"}]}])
    assert next(turns).number == 1
    with pytest.raises(SourceNotFoundError):
        next(turns)


def test_first_turns_system_may_add_to_the_files() -> None:
    first, second = replay(
        system={"base": "B."},
        turns=[{"user": "a", "system": {"memory": "M."}}, {"user": "b", "system": {"memory": ""}}],
    )
    assert first.messages[0].text == "B.\n\nM."
    assert second.messages[0].text == "B."
