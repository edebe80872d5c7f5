"""JSON of the wrong shape: every field of every object takes its own type and nothing else, and names its place."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from tests.journeys.running import one_turn, refusal, replay

from lamella.archive.attachments import AttachmentInput, EmbeddedImageInput
from lamella.archive.transcript import (
    AttachedToolResultInput,
    SystemPartsInput,
    ToolDefinitionInput,
    Transcript,
    TurnInput,
)

NOTE = {"kind": "note", "path": "a.md", "text": "A"}
TEXT, NAME, NUMBER, SHARE, SWITCH = "a text", "a text that is not empty", "a number", "a share", "true or false"
LIST, OBJECT, TIME, PAIR, CHOICE = "a list", "an object", "a time", "two numbers", "a choice"
NUMBERS = "a list of numbers"

# What JSON can say, and which of it each type takes. None stands for all that may be left out.
VALUES: dict[str, object] = {
    "null": None,
    "true": True,
    "zero": 0,
    "one and a half": 1.5,
    "nothing": "",
    "a word": "word",
    "digits": "12",
    "an empty list": [],
    "a list of numbers": [1],
    "an empty object": {},
    "an object with a field": {"zzz": 1},
}
TAKES: dict[str, set[str]] = {
    TEXT: {"nothing", "a word", "digits"},
    NAME: {"a word", "digits"},
    NUMBER: {"zero"},
    SHARE: {"zero", "one and a half"},
    SWITCH: {"true"},
    LIST: {"an empty list"},
    NUMBERS: {"an empty list", "a list of numbers"},
    OBJECT: {"an empty object"},
    TIME: set(),
    PAIR: set(),
    CHOICE: set(),
}
FREE = "an object of any fields"
WORD_OR_SWITCH = "a text, or true or false as it was once"
TAKES[WORD_OR_SWITCH] = TAKES[TEXT] | TAKES[SWITCH]
TAKES[FREE] = {"an empty object", "an object with a field"}

Fields = dict[str, tuple[str, bool]]
TOP: Fields = {
    "lamella": (NUMBER, False),
    "conversation": (NAME, False),
    "system": (OBJECT, True),
    "vault": (NAME, True),
    "turns": (LIST, False),
    "model": (NAME, True),
    "profile": (TEXT, True),
    "window": (NUMBER, True),
    "reserve": (NUMBER, True),
    "layout": (TEXT, True),
    "carry_forward": (TEXT, True),
    "history": (TEXT, True),
    "history_turns": (NUMBER, True),
    "warn": (SHARE, True),
    "target": (SHARE, True),
    "trigger": (SHARE, True),
    "hard": (SHARE, True),
    "compaction": (FREE, True),
    "image_notes": (WORD_OR_SWITCH, True),
    "instructions": (TEXT, True),
    "temperature": (SHARE, True),
    "reasoning_effort": (TEXT, True),
    "attachments": (TEXT, True),
    "linger": (NUMBER, True),
    "cache_marks": (TEXT, True),
    "runner": (TEXT, True),
    "tool_output": (NUMBER, True),
    "recall_hint": (TEXT, True),
    "summary_check": (TEXT, True),
    "secrets": (TEXT, True),
    "differing_turns": (NUMBERS, False),
    "learns_retention": (SWITCH, True),
}
TURN: Fields = {
    "user": (TEXT, False),
    "at": (TIME, True),
    "attach": (LIST, False),
    "tools": (LIST, False),
    "system": (OBJECT, True),
    "tool_definitions": (LIST, True),
    "model": (NAME, True),
    "drop": (LIST, False),
    "detach": (LIST, False),
    "pin": (LIST, False),
    "unpin": (LIST, False),
    "rules": (LIST, False),
    "ended_rules": (LIST, False),
    "fold": (SWITCH, False),
    "verbatim": (SWITCH, False),
    "rounds": (LIST, False),
    "reply": (TEXT, False),
}
ATTACHMENT: Fields = {
    "kind": (CHOICE, False),
    "path": (TEXT, True),
    "url": (TEXT, True),
    "tag": (TEXT, True),
    "query": (TEXT, True),
    "place": (TEXT, True),
    "turn_only": (SWITCH, False),
    "lines": (PAIR, True),
    "text": (TEXT, True),
    "title": (TEXT, False),
    "policy": (CHOICE, True),
    "data": (TEXT, True),
    "media_type": (TEXT, True),
    "images": (LIST, False),
    "outline": (SWITCH, False),
    "anew": (SWITCH, False),
}
EMBEDDED: Fields = {"data": (TEXT, False), "media_type": (TEXT, False)}
SYSTEM: Fields = dict.fromkeys(("base", "guidelines", "instructions", "project", "workflow", "memory"), (TEXT, True))
TOOL: Fields = {"name": (TEXT, False), "arguments": (FREE, False), "output": (TEXT, False)}
DEFINITION: Fields = {"name": (NAME, False), "description": (TEXT, False), "parameters": (FREE, False)}


def in_top(**fields: object) -> dict[str, object]:
    return {**one_turn(), **fields}


def in_attachment(**fields: object) -> dict[str, object]:
    return one_turn(attach=[{**NOTE, **fields}])


def in_embedded(**fields: object) -> dict[str, object]:
    return in_attachment(images=[{"data": "", "media_type": "image/png", **fields}])


def in_system(**fields: object) -> dict[str, object]:
    return in_top(system=fields)


def in_turn_system(**fields: object) -> dict[str, object]:
    return one_turn(system=fields)


def in_tool(**fields: object) -> dict[str, object]:
    return one_turn(tools=[{"name": "t", "output": "o", **fields}])


def in_definition(**fields: object) -> dict[str, object]:
    return one_turn(tool_definitions=[{"name": "t", **fields}])


LEVELS = [
    (Transcript, TOP, in_top, ""),
    (TurnInput, TURN, one_turn, "turns[0]."),
    (AttachmentInput, ATTACHMENT, in_attachment, "turns[0].attach[0]."),
    (EmbeddedImageInput, EMBEDDED, in_embedded, "turns[0].attach[0].images[0]."),
    (SystemPartsInput, SYSTEM, in_system, "system."),
    (SystemPartsInput, SYSTEM, in_turn_system, "turns[0].system."),
    (AttachedToolResultInput, TOOL, in_tool, "turns[0].tools[0]."),
    (ToolDefinitionInput, DEFINITION, in_definition, "turns[0].tool_definitions[0]."),
]


def wrong_values() -> Iterator[tuple[str, dict[str, dict[str, object]]]]:
    """Each field by its place, with each value that is not of its type."""
    for _, known, inside, place in LEVELS:
        for name, (kind, may_be_null) in known.items():
            wrong = {said: value for said, value in VALUES.items() if said not in TAKES[kind]}
            if may_be_null:
                del wrong["null"]
            yield place + name, {said: inside(**{name: value}) for said, value in wrong.items()}


WRONG = dict(wrong_values())


@pytest.mark.parametrize(("model", "known"), [(model, known) for model, known, _, _ in LEVELS])
def test_every_field_is_covered_here(model: type[BaseModel], known: Fields) -> None:
    assert set(model.model_fields) == set(known)


@pytest.mark.parametrize("place", WRONG)
def test_value_of_wrong_type_is_refused_with_its_path(tmp_path: Path, place: str) -> None:
    for said, transcript in WRONG[place].items():
        message = refusal(replay(tmp_path, transcript), code="bad_transcript")
        assert f"transcript.json: {place}" in message, said


@pytest.mark.parametrize("name", ["zzz", "User", " user", "user\n", "🙂", "", "\u202eresu", "x" * 3_000])
def test_unknown_field_is_refused_with_known_fields(tmp_path: Path, name: str) -> None:
    for _, known, inside, place in LEVELS:
        ran = replay(tmp_path, inside(**{name: 1}))
        message = refusal(ran, code="bad_transcript")
        assert message.endswith(": no such field.")
        assert place.rstrip(".") in message
        assert ", ".join(known) in ran.err


def test_missing_field_is_named(tmp_path: Path) -> None:
    for transcript, place in [
        ({}, "lamella: this field is missing (1 more place)"),
        ({"lamella": 1}, "turns: this field is missing"),
        ({"lamella": 1, "turns": [{}]}, "turns[0].user: this field is missing"),
        ({"lamella": 1, "turns": [{"user": "a"}, {"reply": "b"}]}, "turns[1].user: this field is missing"),
        (one_turn(attach=[{"path": "a"}]), "turns[0].attach[0].kind: this field is missing"),
        (one_turn(tools=[{}]), "turns[0].tools[0].name: this field is missing (1 more place)"),
    ]:
        assert place in refusal(replay(tmp_path, transcript), code="bad_transcript")


def test_other_transcript_format_is_refused_by_version(tmp_path: Path) -> None:
    for transcript in (
        {"lamella": 2, "turns": []},
        {"lamella": 2, "acts": [], "turns": 5},
        {"lamella": 0, "turns": []},
    ):
        assert f"format {transcript['lamella']}; this version reads format 1" in refusal(
            replay(tmp_path, transcript), code="bad_transcript"
        )


def test_conversation_of_no_turns_is_shown_as_that(tmp_path: Path) -> None:
    ran = replay(tmp_path, {"lamella": 1, "turns": []})
    assert (ran.exit, ran.err) == (0, "")
    assert '"turns": []' in ran.out


TIMES = {
    "2026-11-15T10:00:00": "timezone",
    "2026-11-15": "timezone",
    "2026-02-30T10:00:00Z": "day value",
    "2026-11-15T10:00:00+99:00": "datetime",
    "1700000000": "such as 2026-11-15T10:00:00Z",
    " -5 ": "such as 2026-11-15T10:00:00Z",
    "yesterday": "datetime",
}


@pytest.mark.parametrize(("at", "what"), TIMES.items(), ids=TIMES)
def test_invalid_time_or_missing_zone_is_refused(tmp_path: Path, at: str, what: str) -> None:
    message = refusal(replay(tmp_path, one_turn(at=at)), code="bad_transcript")
    assert "turns[0].at" in message
    assert what in message


def test_unordered_and_extreme_times_are_accepted(tmp_path: Path) -> None:
    times = ["2026-11-15T10:00:00Z", "2026-11-15T09:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"]
    turns = [{"user": "a", "at": at} for at in times]
    ran = replay(tmp_path, {"lamella": 1, "model": "anthropic:claude-opus-5-5", "turns": turns})
    assert (ran.exit, ran.err) == (0, "")


SETTINGS = {
    "no such layout": ({"layout": "sideways"}, "bad_setting", "There is no layout 'sideways'"),
    "a layout in capitals": ({"layout": "LIBRARY"}, "bad_setting", "There is no layout 'LIBRARY'"),
    "a history that shows no turn": ({"history_turns": 0}, "bad_setting", "Invalid history_turns: 0"),
    "no such profile": ({"profile": "fast"}, "bad_setting", "There is no profile 'fast'"),
    "no such step": ({"compaction": {"steps": ["shred"]}}, "bad_setting", "There is no step 'shred'"),
    "a step twice": ({"compaction": {"steps": ["handle", "handle"]}}, "bad_setting", "A step is named twice"),
    "no such runner": ({"compaction": {"runners": {"x": {}}}}, "bad_setting", "There is no runner 'x'"),
    "no such kind": ({"compaction": {"kinds": {"x": {}}}}, "bad_setting", "There is no kind 'x'"),
    "a preview below nothing": ({"compaction": {"every_kind": {"preview_over": -1}}}, "bad_setting", "preview_over -1"),
    "a summary of nothing": ({"compaction": {"summary": {"writes": 0}}}, "bad_setting", "cannot read"),
    "no such history": ({"history": "none"}, "bad_setting", "There is no history 'none'"),
    "no such carry-forward": ({"carry_forward": "all"}, "bad_setting", "There is no carry_forward 'all'"),
    "thresholds out of order": ({"warn": 0.9}, "bad_setting", "Thresholds are not in order: warn 0.9, target 0.4"),
    "two thresholds alike": ({"warn": 0.85}, "bad_setting", "Thresholds are not in order"),
    "a target where it begins": ({"target": 0.85}, "bad_setting", "Thresholds are not in order: warn 0.6, target 0.85"),
    "a threshold below nothing": ({"warn": -0.1}, "bad_setting", "warn -0.1"),
    "a threshold past everything": ({"hard": 1.01}, "bad_setting", "hard 1.01"),
    "a window of nothing": ({"window": 0}, "bad_setting", "A window of 0 tokens with a reserve of 4,096"),
    "a window below nothing": ({"window": -1}, "bad_setting", "A window of -1 tokens"),
    "a window of the reserve alone": ({"window": 4_096}, "bad_setting", "leaves no room"),
    "a reserve below nothing": ({"reserve": -1}, "bad_setting", "a reserve of -1"),
    "a reserve of the whole window": ({"reserve": 128_000}, "bad_setting", "leaves no room"),
    "a window past all numbers": ({"window": 10**400}, "bad_setting", "less than or equal to 1000000000000000"),
}


@pytest.mark.parametrize(("given", "code", "what"), SETTINGS.values(), ids=SETTINGS)
def test_invalid_setting_is_refused_with_value(tmp_path: Path, given: dict[str, object], code: str, what: str) -> None:
    assert what in refusal(replay(tmp_path, in_top(**given)), code=code)


def test_largest_window_is_accepted(tmp_path: Path) -> None:
    assert replay(tmp_path, in_top(window=10**15)).exit == 0


KINDS = {
    "a kind nobody knows": ({"kind": "novel"}, "bad_transcript", "turns[0].attach[0].kind"),
    "a kind in capitals": ({"kind": "Note"}, "bad_transcript", "turns[0].attach[0].kind"),
    "a tool result among attachments": ({"kind": "tool"}, "bad_artifact", "A tool cannot be attached"),
    "a note with a URL": ({"kind": "note", "url": "u", "text": ""}, "bad_artifact", "A note attachment takes no url"),
    "a URL with a path": ({"kind": "url", "path": "p", "text": ""}, "bad_artifact", "A url attachment takes no path"),
    "a field that is there and null": ({**NOTE, "tag": None}, "bad_artifact", "A note attachment takes no tag"),
    "a note without a path": ({"kind": "note", "text": "A"}, "bad_artifact", "no path"),
    "a note whose path is empty": ({**NOTE, "path": ""}, "bad_artifact", "no path"),
    "a note whose path is only dots": ({**NOTE, "path": "./."}, "bad_artifact", "names no file"),
    "a URL without a URL": ({"kind": "url", "text": "A"}, "bad_artifact", "no url"),
    "a URL that is none": ({"kind": "url", "url": "u"}, "source_refused", "only http and https"),
    "a page of this machine": ({"kind": "url", "url": "http://127.0.0.1:9/"}, "source_refused", "not a public address"),
    "a page with a password": ({"kind": "url", "url": "http://a:b@e.org/"}, "source_refused", "a name or a password"),
    "a video that is none": ({"kind": "youtube", "url": "https://e.org"}, "source_unreadable", "shows no video"),
    "a selection without text": ({"kind": "selected_text", "path": "a"}, "not_available", "no text"),
    "a selection from nowhere": ({"kind": "selected_text", "text": "A"}, "bad_artifact", "neither path nor url"),
    "lines that end before they start": (
        {"kind": "selected_text", "path": "a", "text": "A", "lines": [9, 2]},
        "bad_artifact",
        "starts at line 9 and ends at line 2",
    ),
    "lines from zero": (
        {"kind": "selected_text", "path": "a", "text": "A", "lines": [0, 2]},
        "bad_transcript",
        "turns[0].attach[0].lines[0]",
    ),
    "three lines": (
        {"kind": "selected_text", "path": "a", "text": "A", "lines": [1, 2, 3]},
        "bad_transcript",
        "turns[0].attach[0].lines",
    ),
    "a query without a query": ({"kind": "dataview", "path": "a", "text": "A"}, "bad_artifact", "no query"),
    "a folder without a path": ({"kind": "folder"}, "bad_artifact", "no path"),
    "a tag without a tag": ({"kind": "tag", "tag": ""}, "bad_artifact", "no tag"),
    "a policy nobody knows": ({**NOTE, "policy": "glue"}, "bad_transcript", "turns[0].attach[0].policy"),
}


@pytest.mark.parametrize(("given", "code", "what"), KINDS.values(), ids=KINDS)
def test_invalid_attachment_is_refused(tmp_path: Path, given: dict[str, object], code: str, what: str) -> None:
    message = refusal(replay(tmp_path, one_turn(attach=[given])), code=code)
    assert what in message
    assert "turns[0]" in message or message.startswith("In turn 1: ")


def test_tool_without_a_name_is_refused(tmp_path: Path) -> None:
    ran = replay(tmp_path, one_turn(tools=[{"name": "", "output": "o"}]))
    assert "no name" in refusal(ran, code="bad_artifact")
