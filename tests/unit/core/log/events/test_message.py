"""Events: a turn is written down without its contents, and read back exactly; what is damaged says where."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from tests.unit.core.prompt.inputs import artifacts, turns
from tests.unit.pictures import png
from tests.unit.steady import steady

from lamella.core.artifacts.make import canonical_json, make_artifact, make_image, make_image_value, make_tool_result
from lamella.core.artifacts.model import Artifact, Kind, Source
from lamella.core.log.branch import path_hashes, read_turns
from lamella.core.log.events import (
    named_hashes,
    parse_body,
    read_artifact,
    read_turn,
    referenced_artifacts,
    write_artifact,
    write_erasure,
    write_event,
    write_message,
    write_turn,
)
from lamella.core.log.log import Log
from lamella.core.log.records import EventKind, Record, Written
from lamella.core.log.terms import History
from lamella.core.log.turn import SystemParts, TurnInput
from lamella.core.text.content import hash_bytes, hash_text
from lamella.core.values import replace
from lamella.errors import StoreDamagedError

AT = "2026-03-01T12:00:00Z"
NEEDLE = "zebra crossing"


def written(turn: TurnInput) -> Written:
    return write_message(turn, message_id="m", parent="", at=AT)


def note(name: str, text: str, kind: Kind = Kind.NOTE) -> Artifact:
    return make_artifact(kind, text=text, source=Source(path=name))


PICTURE = make_image_value(png(2, 3), media_type="image/png", width=2, height=3)
PICTURED = make_artifact(Kind.ACTIVE_NOTE, text="![[p.png]]", source=Source(path="p.md"), images=[PICTURE])


@steady
@given(turns)
def test_every_turn_is_read_back_as_it_was_written(turn: TurnInput) -> None:
    event = written(turn)
    (record,) = event.records
    assert read_turn(parse_body(record), event.contents, message_id="m") == replace(turn, id="m")


@steady
@given(turns)
def test_a_record_is_canonical_json_and_names_exactly_the_contents_it_brings(turn: TurnInput) -> None:
    event = written(turn)
    (record,) = event.records
    assert record.body == canonical_json(json.loads(record.body))
    assert record.contents == tuple(event.contents)
    assert set(named_hashes(parse_body(record))) == set(event.contents)
    assert all(hash_bytes(data) == name for name, data in event.contents.items())


@steady
@given(artifacts())
def test_every_artifact_is_read_back_as_it_was_written(artifact: Artifact) -> None:
    event = written(TurnInput(text="", attached=(artifact,)))
    ref = write_artifact(artifact)
    assert read_artifact(json.loads(canonical_json(ref)), event.contents) == artifact
    assert artifact.kind is Kind.IMAGE or read_artifact(ref, {}) is None


def test_no_content_stands_in_a_body() -> None:
    drawn = note("drawn.md", f"drawn {NEEDLE}")
    system = SystemParts(instructions=f"Use {NEEDLE}.", inlined=(drawn,), typed_instructions="Use {[[drawn]]}.")
    turn = TurnInput(
        text="What now?",
        attached=(note("a.md", f"attached {NEEDLE}"),),
        results=(make_tool_result("search", arguments={}, output=f"found {NEEDLE}"),),
        system=system,
    )
    event = written(turn)
    assert NEEDLE not in event.records[0].body
    assert sum(NEEDLE.encode() in data for data in event.contents.values()) == 4


def test_a_turn_that_only_says_something_says_only_that() -> None:
    plain = TurnInput(text="hi", typed="hi", image_notes=False, history=History.FULL)
    assert write_turn(plain) == {"text": "hi"}
    assert read_turn({"text": "hi"}, {}) == plain


def test_no_tools_and_the_tools_as_they_were_are_told_apart() -> None:
    assert "tools" not in write_turn(TurnInput(text=""))
    assert write_turn(TurnInput(text="", tools=()))["tools"] == []


def test_an_edit_names_what_it_replaces_and_is_a_message_otherwise() -> None:
    turn = TurnInput(text="Another", attached=(note("a.md", "A"),))
    asked, edited = written(turn), write_message(turn, message_id="m", parent="", at=AT, edits="old")
    assert edited.records[0].kind is EventKind.EDIT
    assert parse_body(edited.records[0]) == {**parse_body(asked.records[0]), "target": "old"}
    assert edited.contents == asked.contents


def test_an_artifact_that_was_erased_is_left_out_and_said() -> None:
    turn = TurnInput(text="", attached=(note("a.md", "A"), note("b.md", "B")), warnings=("before",))
    event = written(turn)
    left = {name: data for name, data in event.contents.items() if name != hash_text("A")}
    read = read_turn(parse_body(event.records[0]), left)
    assert [artifact.id for artifact in read.attached] == ["b.md"]
    assert read.warnings == ("before", "a.md was erased and is left out.")


def test_a_note_whose_picture_was_erased_keeps_its_text() -> None:
    event = written(TurnInput(text="", attached=(PICTURED, make_image(PICTURE))))
    left = {name: data for name, data in event.contents.items() if name != PICTURE.hash}
    read = read_turn(parse_body(event.records[0]), left)
    assert [(artifact.id, artifact.text, artifact.images) for artifact in read.attached] == [("p.md", "![[p.png]]", ())]
    assert read.warnings == (
        "A picture of p.md was erased and is left out.",
        f"{PICTURE.hash} was erased and is left out.",
    )


def test_instructions_whose_note_was_erased_stand_as_they_were_typed() -> None:
    system = SystemParts(
        base="B.", instructions="Use A.", inlined=(note("a.md", "A"),), typed_instructions="Use {[[a]]}."
    )
    event = written(TurnInput(text="", system=system))
    body = parse_body(event.records[0])
    gone = set(referenced_artifacts(body, "a.md"))
    assert gone == {hash_text("A"), hash_text("Use A.")}
    left = {name: data for name, data in event.contents.items() if name not in gone}
    expected = SystemParts(base="B.", instructions="Use {[[a]]}.", typed_instructions="Use {[[a]]}.")
    assert read_turn(body, left).system == expected


def test_what_belongs_to_an_artifact_is_found_wherever_a_body_names_it() -> None:
    body = parse_body(written(TurnInput(text="", attached=(PICTURED, note("b.md", "B")))).records[0])
    assert referenced_artifacts(body, "p.md") == (PICTURED.hash, PICTURE.hash)
    assert referenced_artifacts(body, PICTURE.hash) == (PICTURE.hash,)
    assert referenced_artifacts(body, "b.md") == (hash_text("B"),)
    assert referenced_artifacts(body, "c.md") == ()


def test_an_erasure_names_the_artifact_and_the_contents_that_go_with_it() -> None:
    (record,) = write_erasure("a.md", ["sha256:a", "sha256:b"], at=AT).records
    assert record == Record(
        kind=EventKind.ERASURE, at=AT, body='{"artifact":"a.md"}', contents=("sha256:a", "sha256:b")
    )


REF = {"id": "a.md", "kind": "note", "title": "a", "hash": hash_text("A"), "source": {"path": "a.md"}}
ASKED = {"id": "m", "parent": "", "text": "hi"}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (EventKind.MESSAGE, "{"),
        (EventKind.MESSAGE, "[]"),
        (EventKind.MESSAGE, '"m"'),
        (EventKind.MESSAGE, canonical_json({"parent": "", "text": "hi"})),
        (EventKind.MESSAGE, canonical_json({"id": "m", "parent": "", "text": 1})),
        (EventKind.MESSAGE, canonical_json({"id": "m", "parent": "nobody", "text": "hi"})),
        (EventKind.REPLY, canonical_json({"id": "m", "parent": "", "text": "hi"})),
        (EventKind.REPLY, canonical_json({"id": "m", "parent": "nobody", "text": "hi"})),
        (EventKind.FORK, canonical_json({"head": "nobody"})),
        (EventKind.SWITCH, canonical_json({})),
        (EventKind.RENAME, canonical_json({"title": None})),
        (EventKind.DELETE, canonical_json({"target": ["m"]})),
    ],
)
def test_an_event_that_cannot_be_read_is_named_by_its_number(kind: EventKind, body: str) -> None:
    log = Log("chat")
    log.extend(write_event(EventKind.RENAME, AT, title="good").records)
    with pytest.raises(StoreDamagedError, match="Event 2 of chat cannot be read") as caught:
        log.extend([Record(kind=kind, at=AT, body=body)])
    assert "lamella store verify" in caught.value.hint
    assert log.version == 1
    assert log.nodes == {}


@pytest.mark.parametrize(
    "damage",
    [
        {"attached": 1},
        {"attached": ["a.md"]},
        {"attached": [{**REF, "kind": "nonsense"}]},
        {"attached": [{name: value for name, value in REF.items() if name != "source"}]},
        {"attached": [{**REF, "source": {"path": "a.md", "lines": [1]}}]},
        {"attached": [{**REF, "images": [["sha256:x"]]}]},
        {"attached": [{**REF, "policy": "never"}]},
        {"results": [None]},
        {"system": "terse"},
        {"system": {"persona": "x"}},
        {"system": {"drawn": 1}},
        {"tools": [["search"]]},
        {"drop": "a.md"},
        {"layout": "sideways"},
        {"carry_forward": []},
        {"rewritten": "twice"},
        {"warnings": [1]},
        {"typed": 1},
        {"model": {}},
    ],
)
def test_a_message_that_cannot_be_read_is_named_by_its_id(damage: Mapping[str, object]) -> None:
    log = Log("chat")
    log.extend([Record(kind=EventKind.MESSAGE, at=AT, body=canonical_json({**ASKED, **damage}))])
    with pytest.raises(StoreDamagedError, match="The message m cannot be read"):
        read_turns(log.path(), dict.fromkeys(path_hashes(log.path()), b"A"))
