"""The comparison for costs: the naive request, which repeats its attachments every turn."""

from tests.unit.core.compaction.stories import QUARTERS, Story, attaching, note

from lamella.core.artifacts.blocks import render_block, render_image_as_text
from lamella.core.artifacts.kinds import make_image_artifact, make_image_data
from lamella.core.ledger.entry import build_naive_messages
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.messages import QUERY_LABEL, Role
from lamella.core.values import replace

NOTE = note("a.md", "text " * 40)
PICTURE = make_image_artifact(make_image_data(b"x", media_type="image/png", width=4, height=5), title="plan")


def talked() -> Story:
    turn = replace(attaching(NOTE, PICTURE), system=SystemParts(base="Be brief."))
    return Story().say("one", "yes, indeed", turn)


def test_naive_request_has_history_and_current_attachments_in_full() -> None:
    prompt = talked().prompt(replace(attaching(NOTE, PICTURE), text="two"))
    system, asked, replied, question = build_naive_messages(prompt)
    assert (system.role, system.text, system.tokens) == (Role.SYSTEM, "Be brief.", QUARTERS.count("Be brief."))
    assert [(one.role, one.text, one.images) for one in (asked, replied)] == [
        (Role.USER, "one", ()),
        (Role.ASSISTANT, "yes, indeed", ()),
    ]
    assert question.pieces == (render_block(NOTE), QUERY_LABEL, "two")
    assert question.images == PICTURE.images


def test_naive_request_describes_image_for_text_only_model() -> None:
    story = talked()
    story.rules = replace(story.rules, tokenizer=replace(QUARTERS, supports_images=False))
    question = build_naive_messages(story.prompt(replace(attaching(NOTE, PICTURE), text="two")))[-1]
    assert question.pieces == (render_block(NOTE), render_image_as_text(PICTURE), QUERY_LABEL, "two")
    assert question.images == ()


def test_naive_first_turn_equals_actual_one() -> None:
    first = Story().prompt(replace(attaching(NOTE, PICTURE), text="one"))
    assert build_naive_messages(first) == first.messages
    assert build_naive_messages(first)[-1] is first.question_message
    bare = talked().prompt(Turn(text="two"))
    assert build_naive_messages(bare)[-1] is bare.question.message
    pictured = talked().prompt(replace(attaching(PICTURE), text="two"))
    assert build_naive_messages(pictured)[-1].images == PICTURE.images
