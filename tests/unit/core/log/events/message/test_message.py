"""Message events: a turn is written without its contents and read back exactly; damage is reported with its position."""

import json
import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from tests.unit.core.log.events.samples import AT, CONDENSED, PICTURE, PICTURED, TURNS, note
from tests.unit.core.prompt.inputs import artifacts, turns
from tests.unit.hypothesis_profile import steady
from tests.unit.raw_events import parse_body

from lamella.core.artifacts.kinds import make_image_artifact, make_tool_result
from lamella.core.artifacts.model import Artifact, ArtifactKind
from lamella.core.log.events.artifact import ContentsByHash, read_artifact, to_stored_artifact
from lamella.core.log.events.codec import build_question_batch, decode_event
from lamella.core.log.events.kinds import (
    EventBatch,
    EventKind,
    EventRecord,
    artifact_content_hashes,
    referenced_content_hashes,
    summary_content_hashes,
)
from lamella.core.log.events.message import (
    NO_OVERRIDES,
    EditEvent,
    QuestionEvent,
    TurnOverrides,
    decode_overrides,
    make_question_event,
    turn_from_event,
    with_position,
)
from lamella.core.log.turn import RuleChanges, SystemParts, Turn, TurnSettings
from lamella.core.text.content import canonical_json, hash_bytes, hash_text
from lamella.core.values import replace

NEEDLE = "zebra crossing"


def written(turn: Turn) -> EventBatch:
    return build_question_batch(turn, message_id="m", parent="", timestamp=AT)


def event(turn: Turn) -> QuestionEvent:
    return make_question_event(turn, message_id="m", parent="")


def read(record: EventRecord, contents: ContentsByHash) -> Turn:
    asked = decode_event(record)
    assert isinstance(asked, QuestionEvent)
    return turn_from_event(asked, contents, defaults=TurnSettings())


@steady
@given(turns)
def test_every_turn_round_trips(turn: Turn) -> None:
    made = written(turn)
    (record,) = made.records
    assert read(record, made.contents) == replace(turn, id="m")


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_every_field_of_turn_round_trips(turn: Turn) -> None:
    made = written(turn)
    assert read(made.records[0], made.contents) == replace(turn, id="m")


@steady
@given(turns)
def test_record_is_canonical_json_and_names_its_contents(turn: Turn) -> None:
    made = written(turn)
    (record,) = made.records
    assert record.body == canonical_json(json.loads(record.body))
    assert record.contents == tuple(made.contents)
    assert set(referenced_content_hashes(decode_event(record))) == set(made.contents)
    assert all(hash_bytes(data) == name for name, data in made.contents.items())


@steady
@given(artifacts())
def test_every_artifact_round_trips(artifact: Artifact) -> None:
    contents = written(Turn(text="", attached=(artifact,))).contents
    stored = to_stored_artifact(artifact)
    assert read_artifact(stored, contents) == artifact
    assert set(stored.iter_content_hashes()) == set(contents)
    assert artifact.kind is ArtifactKind.IMAGE or read_artifact(stored, {}) is None


def test_body_has_no_content() -> None:
    drawn = note("drawn.md", f"drawn {NEEDLE}")
    system = SystemParts(instructions=f"Use {NEEDLE}.", inlined=(drawn,), typed_instructions="Use {[[drawn]]}.")
    turn = Turn(
        text="What now?",
        attached=(note("a.md", f"attached {NEEDLE}"),),
        tool_results=(make_tool_result("search", arguments={}, output=f"found {NEEDLE}"),),
        system=system,
        history_summary=f"told of {NEEDLE}",
    )
    made = written(turn)
    assert NEEDLE not in made.records[0].body
    assert sum(NEEDLE.encode() in data for data in made.contents.values()) == 5
    assert summary_content_hashes(event(turn)) == (hash_text(f"told of {NEEDLE}"),)


@pytest.mark.parametrize(
    "more",
    [
        {"attached": (note("a.md", "A"),)},
        {"tool_results": (make_tool_result("search", arguments={}, output="found"),)},
        {"system": SystemParts(base="B.")},
        {"history_summary": "They spoke."},
    ],
)
def test_message_has_no_contents_flag_is_exact(more: dict[str, object]) -> None:
    plain = Turn(text="x", model="m", tools=())
    assert event(plain).has_no_contents
    assert not event(replace(plain, **more)).has_no_contents  # type: ignore[arg-type]


def test_empty_tools_differ_from_unchanged_tools() -> None:
    assert "tools" not in parse_body(written(Turn(text="")).records[0])
    assert parse_body(written(Turn(text="", tools=())).records[0])["tools"] == []


def test_edit_event_names_target_and_is_otherwise_message() -> None:
    turn = Turn(text="Another", attached=(note("a.md", "A"),))
    asked, edited = (
        written(turn),
        build_question_batch(turn, message_id="m", parent="", timestamp=AT, edited_message="old"),
    )
    assert edited.records[0].kind is EventKind.EDIT
    assert parse_body(edited.records[0]) == {**parse_body(asked.records[0]), "target": "old"}
    assert edited.contents == asked.contents


def test_question_can_be_given_another_place_as_either_kind() -> None:
    edited = make_question_event(Turn(text="x", model="m"), message_id="a", parent="p", edited_message="old")
    assert isinstance(edited, EditEvent)
    asked = with_position(edited, message_id="b", parent="q")
    assert (type(asked), asked.id, asked.parent, asked.model) == (QuestionEvent, "b", "q", "m")
    assert with_position(asked, message_id="a", parent="p", edited_message="old") == edited


def test_erased_artifact_is_omitted_with_warning() -> None:
    turn = Turn(text="", attached=(note("a.md", "A"), note("b.md", "B")), warnings=("before",))
    made = written(turn)
    left = {name: data for name, data in made.contents.items() if name != hash_text("A")}
    found = read(made.records[0], left)
    assert [artifact.id for artifact in found.attached] == ["b.md"]
    assert found.warnings == ("before", "a.md was erased and is left out.")


def test_note_with_erased_image_keeps_text() -> None:
    made = written(Turn(text="", attached=(PICTURED, make_image_artifact(PICTURE))))
    left = {name: data for name, data in made.contents.items() if name != PICTURE.hash}
    found = read(made.records[0], left)
    assert [(one.id, one.text, one.images) for one in found.attached] == [("p.md", "![[p.png]]", ())]
    assert found.warnings == (
        "A picture of p.md was erased and is left out.",
        f"{PICTURE.hash} was erased and is left out.",
    )


def test_instructions_with_erased_note_show_typed_text() -> None:
    system = SystemParts(
        base="B.", instructions="Use A.", inlined=(note("a.md", "A"),), typed_instructions="Use {[[a]]}."
    )
    turn = Turn(text="", system=system)
    gone = set(artifact_content_hashes(event(turn), "a.md"))
    assert gone == {hash_text("A"), hash_text("Use A.")}
    made = written(turn)
    left = {name: data for name, data in made.contents.items() if name not in gone}
    expected = SystemParts(base="B.", instructions="Use {[[a]]}.", typed_instructions="Use {[[a]]}.")
    assert read(made.records[0], left).system == expected


def test_overrides_are_decoded_without_contents() -> None:
    system = SystemParts(instructions="Use A.", inlined=(note("a.md", "A"),), typed_instructions="Use {[[a]]}.")
    lasting = event(Turn(text="", system=system, tools=(), model="m")).overrides
    expected = SystemParts(instructions="Use {[[a]]}.", typed_instructions="Use {[[a]]}.")
    assert decode_overrides(lasting) == (expected, (), "m")
    assert decode_overrides(TurnOverrides(model="new").merged_over(lasting)) == (expected, (), "new")
    assert decode_overrides(NO_OVERRIDES.merged_over(NO_OVERRIDES)) == (None, None, None)


def test_unset_overrides_keep_earlier_values() -> None:
    before = TurnOverrides(tools=(), model="m", pinned=("m1",), rules=RuleChanges(added=((1, "Be brief."),)))
    assert NO_OVERRIDES.merged_over(before) == before
    assert before.merged_over(TurnOverrides(model="old", pinned=(), rules=RuleChanges())) == before


def test_content_hashes_of_artifact_are_found_in_any_event() -> None:
    asked = event(Turn(text="", attached=(PICTURED, CONDENSED, note("b.md", "B"))))
    assert artifact_content_hashes(asked, "p.md") == (PICTURED.hash, PICTURE.hash)
    assert artifact_content_hashes(asked, PICTURE.hash) == (PICTURE.hash,)
    assert artifact_content_hashes(asked, "long.md") == (CONDENSED.hash, hash_text("It is long."))
    assert artifact_content_hashes(asked, "b.md") == (hash_text("B"),)
    assert artifact_content_hashes(asked, "c.md") == ()


REF = {"id": "a.md", "kind": "note", "title": "a", "hash": hash_text("A"), "source": {"path": "a.md"}}
ASKED = {"id": "m", "parent": "", "text": "hi"}


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        ({"attached": 1}, "$.attached"),
        ({"attached": ["a.md"]}, "$.attached[0]"),
        ({"attached": [{**REF, "kind": "nonsense"}]}, "$.attached[0].kind"),
        ({"attached": [{name: value for name, value in REF.items() if name != "source"}]}, "`source`"),
        ({"attached": [{**REF, "source": {"path": "a.md", "lines": [1]}}]}, "source.lines"),
        ({"attached": [{**REF, "images": [["sha256:x"]]}]}, "images"),
        ({"attached": [{**REF, "policy": "never"}]}, "policy"),
        ({"results": [None]}, "$.results[0]"),
        ({"system": "terse"}, "$.system"),
        ({"system": {"persona": "x"}}, "`persona`"),
        ({"system": {"drawn": 1}}, "$.system.drawn"),
        ({"tools": [["search"]]}, "$.tools[0]"),
        ({"drop": "a.md"}, "$.drop"),
        ({"layout": "sideways"}, "sideways"),
        ({"carry_forward": []}, "$.carry_forward"),
        ({"image_notes": "maybe"}, "$.image_notes"),
        ({"history_turns": 1.5}, "$.history_turns"),
        ({"rewritten": "twice"}, "twice"),
        ({"warnings": [1]}, "$.warnings[0]"),
        ({"typed": 1}, "$.typed"),
        ({"model": {}}, "$.model"),
        ({"fold": "yes"}, "$.fold"),
        ({"strip": 3}, "$.strip"),
    ],
)
def test_invalid_field_is_named(damage: Mapping[str, object], place: str) -> None:
    with pytest.raises(ValueError, match=re.escape(place)):
        decode_event(EventRecord(kind=EventKind.MESSAGE, at=AT, body=canonical_json({**ASKED, **damage})))
