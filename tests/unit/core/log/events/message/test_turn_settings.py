"""Terms in events: given, left to the settings, or missing; all of it follows from the fields of the terms."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields
from tests.unit.core.log.events.samples import AT
from tests.unit.raw_events import parse_body

from lamella.core.log.events.codec import build_event_batch, decode_event, encode_event
from lamella.core.log.events.kinds import EventKind, EventRecord
from lamella.core.log.events.message import (
    QuestionEvent,
    make_question_event,
    make_unplaced_question_event,
    resolve_turn_settings,
)
from lamella.core.log.turn import (
    AttachmentMode,
    BreakpointMode,
    CarryForwardMode,
    HistoryMode,
    ImageNoteMode,
    LayoutMode,
    ReasoningEffort,
    Turn,
    TurnSettings,
)
from lamella.core.text.content import canonical_json
from lamella.core.values import replace

NAMES = {field.name for field in fields(TurnSettings)}
OTHER = TurnSettings(
    layout=LayoutMode.IN_PLACE,
    carry_forward=CarryForwardMode.PREVIEW,
    history=HistoryMode.WINDOW,
    history_turns=7,
    image_notes=ImageNoteMode.TEXT,
    attachments=AttachmentMode.STICKY,
    linger=5,
    temperature=0.5,
    reasoning_effort=ReasoningEffort.LOW,
    cache_marks=BreakpointMode.AUTOMATIC,
    runner="agent",
    tool_output=9_000,
    cues=("roger",),
    hidden_rules=False,
    hidden_excerpts=False,
    names_recall=False,
)
every_terms = st.builds(
    TurnSettings,
    layout=st.sampled_from(LayoutMode),
    carry_forward=st.sampled_from(CarryForwardMode),
    history=st.sampled_from(HistoryMode),
    history_turns=st.none() | st.integers(1, 9),
    image_notes=st.sampled_from(ImageNoteMode),
    attachments=st.sampled_from(AttachmentMode),
    linger=st.integers(0, 9),
    temperature=st.none() | st.floats(0, 2),
    reasoning_effort=st.sampled_from(ReasoningEffort),
    cache_marks=st.sampled_from(BreakpointMode),
    runner=st.sampled_from(["chat", "agent"]),
)


def read(**body: object) -> QuestionEvent:
    """A message of any version."""
    asked = canonical_json({"id": "m", "parent": "", "text": "x", **body})
    event = decode_event(EventRecord(kind=EventKind.MESSAGE, at=AT, body=asked))
    assert isinstance(event, QuestionEvent)
    return event


@given(every_terms, every_terms)
def test_turn_settings_are_read_as_given(terms: TurnSettings, usual: TurnSettings) -> None:
    event = make_question_event(Turn(text="x", turn_settings=terms), message_id="m", parent="")
    (record,) = build_event_batch(event, timestamp=AT).records
    again = decode_event(record)
    assert again == event
    assert isinstance(again, QuestionEvent)
    assert resolve_turn_settings(again, usual) == terms


@given(every_terms)
def test_open_settings_use_defaults(usual: TurnSettings) -> None:
    event = make_unplaced_question_event(Turn(text="x", turn_settings=OTHER))
    body = parse_body(encode_event(event, timestamp=AT))
    assert {name: body[name] for name in NAMES & set(body)} == {"history": None, "image_notes": None}
    assert resolve_turn_settings(read(**body), usual) == usual


def test_oldest_events_without_settings_use_original_defaults() -> None:
    found = resolve_turn_settings(read(), OTHER)
    assert found == replace(TurnSettings(), layout=OTHER.layout, carry_forward=OTHER.carry_forward)
    assert resolve_turn_settings(read(layout="library"), OTHER).layout is LayoutMode.LIBRARY


def test_old_boolean_image_notes_is_read_as_choice() -> None:
    assert resolve_turn_settings(read(image_notes=True), TurnSettings()).image_notes is ImageNoteMode.TEXT
    assert resolve_turn_settings(read(image_notes=False), OTHER).image_notes is ImageNoteMode.HANDLE
    assert resolve_turn_settings(read(image_notes="text"), TurnSettings()).image_notes is ImageNoteMode.TEXT


def test_default_turn_settings_are_not_stored() -> None:
    plain = parse_body(encode_event(make_question_event(Turn(text="x"), message_id="m", parent=""), timestamp=AT))
    assert NAMES & set(plain) == {"layout", "carry_forward"}
    full = parse_body(
        encode_event(make_question_event(Turn(text="x", turn_settings=OTHER), message_id="m", parent=""), timestamp=AT)
    )
    assert set(full) >= NAMES
