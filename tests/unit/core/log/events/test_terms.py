"""Terms in events: given, left to the settings, or missing; all of it follows from the fields of the terms."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields
from tests.unit.core.log.events.told import AT
from tests.unit.raw import parse_body

from lamella.core.log.events.codec import make_record, read_event, write_event
from lamella.core.log.events.kinds import EventKind
from lamella.core.log.events.message import MessageEvent, make_message, make_open_message
from lamella.core.log.events.terms import settle_terms
from lamella.core.log.records import Record
from lamella.core.log.terms import Attachments, CacheMarks, CarryForward, Effort, History, ImageNotes, Layout, Terms
from lamella.core.log.turn import Turn
from lamella.core.text.content import canonical_json
from lamella.core.values import replace

NAMES = {field.name for field in fields(Terms)}
OTHER = Terms(
    layout=Layout.IN_PLACE,
    carry_forward=CarryForward.PREVIEW,
    history=History.WINDOW,
    history_turns=7,
    image_notes=ImageNotes.TEXT,
    attachments=Attachments.STICKY,
    linger=5,
    temperature=0.5,
    reasoning_effort=Effort.LOW,
    cache_marks=CacheMarks.AUTOMATIC,
    runner="agent",
    tool_output=9_000,
    cues=("roger",),
)
every_terms = st.builds(
    Terms,
    layout=st.sampled_from(Layout),
    carry_forward=st.sampled_from(CarryForward),
    history=st.sampled_from(History),
    history_turns=st.none() | st.integers(1, 9),
    image_notes=st.sampled_from(ImageNotes),
    attachments=st.sampled_from(Attachments),
    linger=st.integers(0, 9),
    temperature=st.none() | st.floats(0, 2),
    reasoning_effort=st.sampled_from(Effort),
    cache_marks=st.sampled_from(CacheMarks),
    runner=st.sampled_from(["chat", "agent"]),
)


def read(**body: object) -> MessageEvent:
    """A message of any version."""
    asked = canonical_json({"id": "m", "parent": "", "text": "x", **body})
    event = read_event(Record(kind=EventKind.MESSAGE, at=AT, body=asked))
    assert isinstance(event, MessageEvent)
    return event


@given(every_terms, every_terms)
def test_terms_are_read_as_they_were_given_whatever_is_usual(terms: Terms, usual: Terms) -> None:
    event = make_message(Turn(text="x", terms=terms), message_id="m", parent="")
    (record,) = write_event(event, at=AT).records
    again = read_event(record)
    assert again == event
    assert isinstance(again, MessageEvent)
    assert settle_terms(again, usual) == terms


@given(every_terms)
def test_what_is_left_open_is_as_usual(usual: Terms) -> None:
    event = make_open_message(Turn(text="x", terms=OTHER))
    body = parse_body(make_record(event, at=AT))
    assert {name: body[name] for name in NAMES & set(body)} == {"history": None, "image_notes": None}
    assert settle_terms(read(**body), usual) == usual


def test_the_first_events_gave_no_terms_and_what_came_later_is_as_it_was_before() -> None:
    found = settle_terms(read(), OTHER)
    assert found == replace(Terms(), layout=OTHER.layout, carry_forward=OTHER.carry_forward)
    assert settle_terms(read(layout="library"), OTHER).layout is Layout.LIBRARY


def test_what_was_a_switch_is_read_as_the_choice_that_it_was() -> None:
    assert settle_terms(read(image_notes=True), Terms()).image_notes is ImageNotes.TEXT
    assert settle_terms(read(image_notes=False), OTHER).image_notes is ImageNotes.HANDLE
    assert settle_terms(read(image_notes="text"), Terms()).image_notes is ImageNotes.TEXT


def test_terms_as_they_are_by_default_are_not_written_but_for_those_that_always_are() -> None:
    plain = parse_body(make_record(make_message(Turn(text="x"), message_id="m", parent=""), at=AT))
    assert NAMES & set(plain) == {"layout", "carry_forward"}
    full = parse_body(make_record(make_message(Turn(text="x", terms=OTHER), message_id="m", parent=""), at=AT))
    assert set(full) >= NAMES
