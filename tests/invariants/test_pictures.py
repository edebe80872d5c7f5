"""Pictures: in every layout, below and above a cache minimum, each is in the request or named in it."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.items import png

from lamella import Conversation, Image, Note, Turn
from lamella.attach import Attachment

TRIED = settings.get_profile("invariants")
START = datetime(2026, 11, 17, tzinfo=UTC)
BELOW_MINIMUM, ABOVE_MINIMUM = "Be terse.", "Be terse, please. " * 800
MODELS = ("anthropic:claude-sonnet-5", "openai:gpt-5", "local:blind")


class Step(NamedTuple):
    """One turn: the pictures and notes that it attaches and detaches, by number, and the pause before it."""

    pictures: tuple[int, ...]
    notes: tuple[int, ...]
    detached: tuple[int, ...]
    fold: bool
    minutes: int


NUMBERS = st.lists(st.integers(0, 2), max_size=2, unique=True).map(tuple)
STEPS = st.lists(
    st.builds(
        Step,
        pictures=st.just(()) | NUMBERS,
        notes=st.just(()) | NUMBERS,
        detached=st.just(()) | NUMBERS,
        fold=st.sampled_from((False, False, False, True)),
        minutes=st.sampled_from((1, 1, 1, 9)),
    ),
    min_size=2,
    max_size=7,
)


def picture_name(number: int) -> str:
    return f"picture-{number}.png"


def play(steps: list[Step], *, layout: str, attachments: str, system: str, model: str) -> list[tuple[Turn, set[int]]]:
    """Return the turns, each with the pictures that were attached until then."""
    chat = Conversation(model=model, layout=layout, attachments=attachments, system=system)
    at, known, played = START, set[int](), list[tuple[Turn, set[int]]]()
    ids: dict[int, str] = {}
    for step in steps:
        at += timedelta(minutes=step.minutes)
        given: list[Attachment] = [Note(path=f"{one}.md", text=f"Note {one}. " * 90) for one in step.notes]
        given += [Image(data=png(one, one), title=picture_name(one)) for one in step.pictures]
        detached = [ids[one] for one in step.detached if one in ids and one not in step.pictures]
        turn = chat.ask("And now?", attach=given, detach=detached, fold=step.fold, at=at)
        chat.reply("Yes.", at=at)
        ids |= {
            one: artifact.id
            for one in step.pictures
            for artifact in turn.envelope.prompt.attached
            if artifact.title == picture_name(one)
        }
        known |= set(step.pictures)
        played.append((turn, set(known)))
    return played


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
@TRIED
@given(
    STEPS, st.sampled_from(("turn", "sticky")), st.sampled_from((BELOW_MINIMUM, ABOVE_MINIMUM)), st.sampled_from(MODELS)
)
def test_every_image_is_sent_or_named(
    layout: str, steps: list[Step], attachments: str, system: str, model: str
) -> None:
    for turn, pictures in play(steps, layout=layout, attachments=attachments, system=system, model=model):
        sent = {image.data for message in turn.messages for image in message.images}
        text = "\n".join(message.text for message in turn.messages)
        lost = [one for one in pictures if png(one, one) not in sent and picture_name(one) not in text]
        assert not lost


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
@TRIED
@given(
    STEPS, st.sampled_from(("turn", "sticky")), st.sampled_from((BELOW_MINIMUM, ABOVE_MINIMUM)), st.sampled_from(MODELS)
)
def test_no_prefix_change_of_images_is_unexplained(
    layout: str, steps: list[Step], attachments: str, system: str, model: str
) -> None:
    for turn, _ in play(steps, layout=layout, attachments=attachments, system=system, model=model):
        assert turn.prefix_change.triggered, turn.prefix_change
