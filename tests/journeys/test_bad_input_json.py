"""Bytes that are not the JSON of a transcript are refused with the position."""

import json
import os
from pathlib import Path

import pytest
from tests.journeys.running import one_turn, refusal, replay, run

from lamella.files import MAX_FILE_BYTES

GOOD = json.dumps(one_turn()).encode()
CALL = '{"lamella": 1, "turns": [{"user": "a", "tools": [{"name": "t", "output": "o", "arguments": %s}]}]}'
HALF = "\ud83d"

BROKEN = {
    "nothing": (b"", "it is empty"),
    "white space": (b" \n\t\n", "it is empty"),
    "zeros": (b"\0" * 64, "UTF-16"),
    "random bytes": (b"\x93\x8f\x1e\xff\x00" * 400, "not UTF-8"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + b"\0" * 64, "byte 1 is 0x89"),
    "UTF-16 with a mark": (GOOD.decode().encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": (GOOD.decode().encode("utf-16-le"), "UTF-16"),
    "UTF-32": (GOOD.decode().encode("utf-32"), "UTF-32"),
    "Latin-1": ('{"lamella": 1, "turns": [{"user": "café"}]}'.encode("latin-1"), "byte 39 is 0xe9"),
    "two byte order marks": (b"\xef\xbb\xbf" * 2 + GOOD, "line 1 column 1"),
    "half of it": (GOOD[:-4], "EOF"),
    "something after it": (GOOD + b"{}", "trailing characters"),
    "a comma too many": (b'{"lamella": 1, "turns": [],}', "trailing comma"),
    "a comment": (b'{"lamella": 1, /* none */ "turns": []}', "column 16"),
    "single quotes": (b"{'lamella': 1}", "column 2"),
    "a line break in a text": (b'{"lamella": 1, "turns": [{"user": "a\nb"}]}', "control character"),
    "a list without end": (b"[" * 200_000, "recursion limit"),
    "an object without end": (b'{"a":' * 200_000, "recursion limit"),
    "arguments without end": ((CALL % ('{"a":' * 5_000 + "1" + "}" * 5_000)).encode(), "recursion limit"),
    "a number without end": ((CALL % ('{"a":' + "9" * 5_000 + "}")).encode(), "number out of range"),
    "NaN": ((CALL % '{"a": NaN}').encode(), "NaN is not a number"),
    "Infinity": ((CALL % '{"a": [Infinity]}').encode(), "Infinity is not a number"),
    "a number past all numbers": ((CALL % '{"a": -1e999}').encode(), "-1e999 is not a number"),
    "NaN for a threshold": (b'{"lamella": 1, "turns": [], "warn": NaN}', "NaN is not a number"),
    "turns twice": (b'{"lamella": 1, "turns": [{"user": "a"}], "turns": []}', '"turns" stands twice'),
    "user twice": (b'{"lamella": 1, "turns": [{"user": "a", "user": "b"}]}', '"user" stands twice'),
    "an argument twice": ((CALL % '{"q": 1, "q": 1}').encode(), '"q" stands twice'),
}


@pytest.mark.parametrize(("data", "what"), BROKEN.values(), ids=BROKEN)
def test_invalid_json_is_refused_with_reason(tmp_path: Path, data: bytes, what: str) -> None:
    message = refusal(replay(tmp_path, data), code="bad_transcript")
    assert "transcript.json is not JSON: " in message
    assert what in message


@pytest.mark.parametrize("data", ["null", "true", "1", '"text"', "[]", "[{}]"])
def test_json_that_is_not_object_is_refused(tmp_path: Path, data: str) -> None:
    message = refusal(replay(tmp_path, data.encode()), code="bad_transcript")
    assert "the top level: input should be an object" in message


def test_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    assert replay(tmp_path, b"\xef\xbb\xbf" + GOOD).out == replay(tmp_path, GOOD).out


def test_arguments_that_are_nested_deep_are_read_whole(tmp_path: Path) -> None:
    ran = replay(tmp_path, (CALL % ('{"a":' + "[" * 150 + "]" * 150 + "}")).encode())
    assert "[" * 150 + "]" * 150 in json.loads(ran.out)["turns"][0]["messages"][-1]["content"]


FIELDS: dict[str, dict[str, object]] = {
    "what the user typed": one_turn(user=HALF),
    "a reply": one_turn(reply=HALF),
    "a conversation's id": {**one_turn(), "conversation": HALF},
    "a model": {**one_turn(), "model": HALF},
    "a turn's model": one_turn(model=HALF),
    "a layout": {**one_turn(), "layout": HALF},
    "a vault": {**one_turn(), "vault": HALF},
    "the system prompt": {**one_turn(), "system": {"base": HALF}},
    "a turn's system prompt": one_turn(system={"memory": HALF}),
    "a title": one_turn(attach=[{"kind": "note", "path": "a", "text": "", "title": HALF}]),
    "a path": one_turn(attach=[{"kind": "note", "path": HALF, "text": ""}]),
    "a path to be read": one_turn(attach=[{"kind": "note", "path": HALF}]),
    "a note's text": one_turn(attach=[{"kind": "note", "path": "a", "text": HALF}]),
    "a URL": one_turn(attach=[{"kind": "url", "url": HALF, "text": ""}]),
    "a tag": one_turn(attach=[{"kind": "tag", "tag": HALF}]),
    "a query": one_turn(attach=[{"kind": "dataview", "path": "a", "query": HALF, "text": ""}]),
    "a kind": one_turn(attach=[{"kind": HALF}]),
    "a policy": one_turn(attach=[{"kind": "note", "path": "a", "text": "", "policy": HALF}]),
    "a media type": one_turn(attach=[{"kind": "image", "data": "", "media_type": HALF}]),
    "a tool's name": one_turn(tools=[{"name": HALF, "output": ""}]),
    "a tool's output": one_turn(tools=[{"name": "t", "output": HALF}]),
    "a tool's argument": one_turn(tools=[{"name": "t", "output": "", "arguments": {"a": HALF}}]),
    "an argument's name": one_turn(tools=[{"name": "t", "output": "", "arguments": {HALF: 1}}]),
    "a tool definition": one_turn(tool_definitions=[{"name": HALF}]),
    "a tool's schema": one_turn(tool_definitions=[{"name": "t", "parameters": {"a": [HALF]}}]),
    "what is dropped": one_turn(drop=[HALF]),
    "a time": one_turn(at=HALF),
    "a field that does not exist": one_turn(**{HALF: 1}),
}


@pytest.mark.parametrize("transcript", FIELDS.values(), ids=FIELDS)
def test_lone_surrogate_is_refused_in_any_field(tmp_path: Path, transcript: dict[str, object]) -> None:
    escaped = replay(tmp_path, transcript)
    assert "hex escape" in refusal(escaped, code="bad_transcript")
    assert "surrogate pair" in escaped.err
    raw = json.dumps(transcript, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert "is 0xed, which is not UTF-8" in refusal(replay(tmp_path, raw), code="bad_transcript")


def test_whole_pair_is_one_character(tmp_path: Path) -> None:
    ran = replay(tmp_path, rb'{"lamella": 1, "turns": [{"user": "\ud83d\ude42"}]}')
    assert json.loads(ran.out)["turns"][0]["messages"][-1]["content"] == "🙂"


def test_transcript_size_is_limited(tmp_path: Path) -> None:
    endless = tmp_path / "endless.json"
    with endless.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    message = refusal(run("replay", str(endless), "--json"), code="source_too_large")
    assert f"{MAX_FILE_BYTES:,} bytes" in message


def test_missing_file_is_named_on_one_line(tmp_path: Path) -> None:
    for name in ("missing.json", "a\nb.json", "x" * 5_000, "transcript.json/below", "\x1b[31mred", ""):
        message = refusal(run("replay", str(tmp_path / name), "--json"), code="bad_transcript")
        assert "cannot be read" in message
        assert len(message) < 3_000
        assert message.isprintable()


def test_missing_file_with_non_utf8_name_is_named(tmp_path: Path) -> None:
    message = refusal(run("replay", os.fsdecode(b"caf\xe9.json"), "--json"), code="bad_transcript")
    assert message == r"caf\udce9.json cannot be read: No such file or directory."
