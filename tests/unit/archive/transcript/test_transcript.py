"""Transcripts: what is not of the known shape is refused, with the place and what to do."""

import json
from pathlib import Path

import pytest

from lamella.archive.transcript import (
    Transcript,
    build_tool_rounds,
    build_turn_request,
    load_transcript,
    parse_transcript,
)
from lamella.errors import ArtifactError, TranscriptError


def parse(**fields: object) -> Transcript:
    return parse_transcript(json.dumps({"lamella": 1, "turns": [], **fields}).encode(), name="t.json")


def refused(data: bytes | str) -> TranscriptError:
    with pytest.raises(TranscriptError) as caught:
        parse_transcript(data if isinstance(data, bytes) else data.encode(), name="t.json")
    assert caught.value.code == "bad_transcript"
    assert caught.value.hint
    return caught.value


def test_transcript_requires_only_lamella_turns_and_user() -> None:
    transcript = parse(turns=[{"user": "hi"}])
    assert transcript.conversation == "chat"
    assert transcript.settings() == {}
    assert transcript.turns[0].reply == ""


def test_settings_may_be_given_by_their_names() -> None:
    given = {
        "model": "openai:gpt-5",
        "window": 1_000,
        "reserve": 10,
        "layout": "in_place",
        "carry_forward": "preview",
        "history": "full",
        "warn": 0.1,
        "target": 0.2,
        "trigger": 0.3,
        "hard": 1,
        "image_notes": "handle",
    }
    assert parse(**given).settings() == given


def test_old_boolean_image_notes_is_read_as_choice() -> None:
    assert [parse(image_notes=value).settings()["image_notes"] for value in (True, False)] == ["text", "handle"]


def test_byte_order_mark_is_accepted() -> None:
    assert parse_transcript(b'\xef\xbb\xbf{"lamella": 1, "turns": []}', name="t").turns == []


@pytest.mark.parametrize(
    "data", ["", "{", "[1, 2", '{"lamella": 1, "turns": [}', "nonsense", b"\xff\xfe", '{"a": "\\ud800"}']
)
def test_invalid_json_is_reported_with_position(data: bytes | str) -> None:
    error = refused(data)
    assert "t.json is not JSON" in error.message


@pytest.mark.parametrize(
    ("data", "place", "what"),
    [
        ("[]", "the top level", "object"),
        ('{"turns": []}', "lamella", "this field is missing"),
        ('{"lamella": 1}', "turns", "this field is missing"),
        ('{"lamella": "1", "turns": []}', "lamella", "integer"),
        ('{"lamella": true, "turns": []}', "lamella", "integer"),
        ('{"lamella": 1, "turns": {}}', "turns", "array"),
        ('{"lamella": 1, "turns": [{}]}', "turns[0].user", "this field is missing"),
        ('{"lamella": 1, "turns": [{"user": 5}]}', "turns[0].user", "string"),
        ('{"lamella": 1, "turns": [{"user": null}]}', "turns[0].user", "string"),
        ('{"lamella": 1, "turns": [{"user": "a"}, {"user": "b", "fold": 1}]}', "turns[1].fold", "boolean"),
        ('{"lamella": 1, "turns": [{"user": "a", "at": "2026-11-15T10:00:00"}]}', "turns[0].at", "timezone"),
        ('{"lamella": 1, "turns": [{"user": "a", "at": "noon"}]}', "turns[0].at", "datetime"),
        ('{"lamella": 1, "turns": [{"user": "a", "attach": [{}]}]}', "turns[0].attach[0].kind", "missing"),
        (
            '{"lamella": 1, "turns": [{"user": "a", "attach": [{"kind": "note", "lines": [1]}]}]}',
            "turns[0].attach[0].lines[1]",
            "missing",
        ),
        (
            '{"lamella": 1, "turns": [{"user": "a", "tools": [{"name": "t"}]}]}',
            "turns[0].tools[0].output",
            "this field is missing",
        ),
        ('{"lamella": 1, "turns": [], "window": "big"}', "window", "integer"),
        ('{"lamella": 1, "turns": [], "window": 1.5}', "window", "integer"),
    ],
)
def test_value_of_wrong_type_is_reported_with_path(data: str, place: str, what: str) -> None:
    error = refused(data)
    assert f"t.json: {place}: " in error.message
    assert what in error.message


@pytest.mark.parametrize(
    ("data", "place", "known"),
    [
        ('{"lamella": 1, "turns": [], "layuot": "x"}', "layuot", "layout"),
        ('{"lamella": 1, "turns": [{"user": "a", "atach": []}]}', "turns[0].atach", "attach"),
        (
            '{"lamella": 1, "turns": [{"user": "a", "attach": [{"kind": "note", "pth": "x"}]}]}',
            "turns[0].attach[0].pth",
            "path",
        ),
        ('{"lamella": 1, "turns": [], "system": {"bse": ""}}', "system.bse", "base"),
        (
            '{"lamella": 1, "turns": [{"user": "a", "tools": [{"name": "t", "output": "", "result": ""}]}]}',
            "turns[0].tools[0].result",
            "output",
        ),
    ],
)
def test_unknown_field_is_refused_with_known_ones(data: str, place: str, known: str) -> None:
    error = refused(data)
    assert f"{place}: no such field" in error.message
    assert known in error.hint


def test_unknown_kind_is_refused_with_known_ones() -> None:
    error = refused('{"lamella": 1, "turns": [{"user": "a", "attach": [{"kind": "novel"}]}]}')
    assert "turns[0].attach[0].kind" in error.message
    assert "'note'" in error.message


def test_several_mistakes_are_counted() -> None:
    assert "(2 more places)" in refused('{"lamella": 1, "turns": [{}, {}, {}]}').message


def test_other_format_is_refused_with_supported_one() -> None:
    error = refused('{"lamella": 2, "turns": []}')
    assert "format 2; this version reads format 1" in error.message


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_unreadable_file_is_reported(tmp_path: Path, name: str) -> None:
    with pytest.raises(TranscriptError, match="cannot be read"):
        load_transcript(tmp_path / name)


def test_file_is_read_as_utf8_whatever_the_locale(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_bytes('{"lamella": 1, "turns": [{"user": "ü 🙂"}]}'.encode())
    assert load_transcript(file).turns[0].user == "ü 🙂"


def test_turn_is_read_with_all_its_fields() -> None:
    turn = parse(
        system={"base": "B."},
        turns=[
            {
                "user": "hi",
                "attach": [{"kind": "note", "path": "a.md", "text": "A", "policy": "pin"}],
                "tools": [{"name": "t", "arguments": {"q": 1}, "output": "T"}],
                "system": {"memory": "M."},
                "tool_definitions": [{"name": "t", "parameters": {"x": 1}}],
                "model": "m",
                "drop": ["b.md"],
                "fold": True,
            }
        ],
    )
    turn_request = build_turn_request(turn.turns[0], 1, system=turn.system)
    assert turn_request.system == {"base": "B.", "memory": "M."}
    assert turn_request.tools is not None
    assert [tool.name for tool in turn_request.tools] == ["t"]
    assert (turn_request.text, turn_request.model, turn_request.drop, turn_request.fold) == ("hi", "m", ("b.md",), True)
    assert [result.text for result in turn_request.results] == ["T"]


def test_missing_tool_definitions_mean_unchanged_and_empty_list_means_none() -> None:
    kept, emptied = parse(turns=[{"user": "a"}, {"user": "b", "tool_definitions": []}]).turns
    assert build_turn_request(kept, 1, system=None).tools is None
    assert build_turn_request(emptied, 2, system=None).tools == ()


def test_mistake_in_an_attachment_names_the_turn() -> None:
    turn = parse(turns=[{"user": "a", "attach": [{"kind": "url", "path": "a.md", "text": ""}]}]).turns[0]
    with pytest.raises(ArtifactError, match="In turn 7: A url attachment takes no path"):
        build_turn_request(turn, 7, system=None)


CALL = {"id": "c1", "name": "look", "arguments": {"b": 1, "a": "ü"}}
RESULT = {"call": "c1", "output": "Page one."}


def test_rounds_have_canonical_arguments_and_results_in_call_order() -> None:
    calls, results = [CALL, {"id": "c2", "name": "list"}], [{"call": "c2", "output": "", "failed": True}, RESULT]
    transcript = parse(turns=[{"user": "q", "rounds": [{"text": "Let me.", "calls": calls, "results": results}]}])
    (one,) = build_tool_rounds(transcript.turns[0], 1)
    assert [(call.id, call.name, call.arguments) for call in one.calls] == [
        ("c1", "look", '{"a":"ü","b":1}'),
        ("c2", "list", "{}"),
    ]
    assert [(output.call, output.output, output.failed) for output in one.outputs] == [
        ("c1", "Page one.", False),
        ("c2", "", True),
    ]
    assert one.text == "Let me."


@pytest.mark.parametrize(
    ("calls", "results", "told"),
    [
        ([CALL], [], "In turn 3, round 1: the call c1 has no result."),
        ([CALL], [RESULT, {"call": "c2", "output": ""}], "In turn 3, round 1: there is a result for c2"),
        ([CALL, CALL], [RESULT], "In turn 3, round 1: two calls have the id c1."),
        ([CALL], [RESULT, RESULT], "In turn 3, round 1: two results are given for the call c1."),
    ],
)
def test_round_with_unpaired_calls_and_results_is_refused(calls: object, results: object, told: str) -> None:
    transcript = parse(turns=[{"user": "q", "rounds": [{"calls": calls, "results": results}]}])
    with pytest.raises(TranscriptError, match=told) as caught:
        build_tool_rounds(transcript.turns[0], 3)
    assert "one result" in caught.value.hint


def test_arguments_contradicting_written_form_are_refused() -> None:
    def read(**call: object) -> str:
        round_ = {"calls": [{"id": "c1", "name": "look", **call}], "results": [RESULT]}
        (one,) = build_tool_rounds(parse(turns=[{"user": "q", "rounds": [round_]}]).turns[0], 3)
        return one.calls[0].arguments

    assert read(written='{ "a": 1 }') == read(written='{ "a": 1 }', arguments={"a": 1}) == '{ "a": 1 }'
    assert read() == "{}"
    with pytest.raises(TranscriptError) as caught:
        read(written='{ "a": 1 }', arguments={"a": 2})
    assert caught.value.message.startswith("In turn 3, round 1: the call c1 has other `arguments`")
    assert "Remove it" in caught.value.hint


def test_result_id_is_unique_and_well_formed() -> None:
    def duplicate_of(*names: str) -> str:
        rounds = [{"calls": [CALL], "results": [{**RESULT, "id": name}]} for name in names]
        return json.dumps({"lamella": 1, "turns": [{"user": "q", "rounds": [one]} for one in rounds]})

    name = "tool:look:0123456789ab"
    (one,) = build_tool_rounds(parse_transcript(duplicate_of(name).encode(), name="t").turns[0], 1)
    assert one.outputs[0].id == name
    assert refused(duplicate_of(name, name)).message.endswith(f"two results have the id {name}.")
    assert "turns[0].rounds[0].results[0].id" in refused(duplicate_of("a.md")).message


def test_round_without_calls_is_refused() -> None:
    error = refused(json.dumps({"lamella": 1, "turns": [{"user": "q", "rounds": [{"calls": [], "results": []}]}]}))
    assert "turns[0].rounds[0].calls: this field is empty" in error.message


def test_every_part_of_the_system_prompt_may_be_given() -> None:
    parts = {name: name for name in ("base", "guidelines", "instructions", "project", "workflow", "memory")}
    transcript = parse(system=parts, turns=[{"user": "q"}])
    assert build_turn_request(transcript.turns[0], 1, system=transcript.system).system == parts
