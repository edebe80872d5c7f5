"""Law: L4 holds typed text, replies and, in_place, earlier tool results; nothing else."""

from hypothesis import given, settings
from tests.invariants.forging import broken_laws, segments_of, turns, with_segments
from tests.invariants.playing import play
from tests.invariants.strategies import Plan, plans

from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")


@TRIED
@given(plan=plans())
def test_the_strip_is_what_was_typed_and_replied_in_order(plan: Plan) -> None:
    for seen in play(plan):
        strip = segments_of(seen.envelope, LayerId.L4)
        talk = [part for said in seen.expected.earlier for part in (said.typed, said.reply)]
        assert [s.text for s in strip if s.kind in ("user", "reply")] == talk
        assert seen.envelope.layers[3].text == "\n\n".join(s.text for s in strip)


@TRIED
@given(plan=plans())
def test_beside_talk_the_strip_holds_only_tool_results_of_the_epoch(plan: Plan) -> None:
    for seen in play(plan):
        start = seen.expected.epoch_start if plan.layout == "in_place" else len(seen.expected.earlier)
        of_epoch = dict.fromkeys(tool.id for said in seen.expected.earlier[start:] for tool in said.tools)
        others = [s for s in segments_of(seen.envelope, LayerId.L4) if s.kind not in ("user", "reply")]
        assert [s.id for s in others] == list(of_epoch)
        assert {s.kind for s in others} <= {"tool"}


@TRIED
@given(plan=plans())
def test_messages_from_before_the_epoch_are_plain_talk(plan: Plan) -> None:
    for seen in play(plan):
        first = int(seen.turn.messages[0].role == "system")
        for index, said in enumerate(seen.expected.earlier):
            asked, answered = seen.turn.messages[first + 2 * index : first + 2 * index + 2]
            assert answered.text == said.reply
            assert asked.text.endswith(said.typed)
            if index < seen.expected.epoch_start:
                assert asked.text == said.typed
                assert asked.images == ()


def test_a_note_in_the_strip_breaks_it() -> None:
    _, second = turns("in_place")
    strip = segments_of(second.envelope, LayerId.L4)
    new = next(s for s in segments_of(second.envelope, LayerId.L3) if s.id == "b.md")
    stray = replace(new, id="c.md")
    assert broken_laws(with_segments(second.envelope, LayerId.L4, [*strip, stray])) == ["strip_content"]


def test_a_tool_result_in_the_strip_breaks_it_in_layout_library() -> None:
    _, second = turns("in_place")
    assert [s.kind for s in segments_of(second.envelope, LayerId.L4)] == ["tool", "user", "reply"]
    _, shelved = turns("library")
    moved = with_segments(shelved.envelope, LayerId.L4, segments_of(second.envelope, LayerId.L4))
    assert broken_laws(moved) == ["strip_content"]
