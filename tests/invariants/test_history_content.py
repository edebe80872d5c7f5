"""Invariant: L4 has typed text, replies and earlier tool results, in full or as their calls, and nothing else."""

import pytest
from hypothesis import given, settings
from tests.invariants.broken_prompts import broken_invariants, segments_of, turns, with_segments
from tests.invariants.playing import play
from tests.invariants.strategies import Plan, plans
from tests.invariants.texts import list_stubs, without_stubs

from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")


@TRIED
@given(plan=plans())
def test_history_has_typed_text_and_replies_in_order(plan: Plan) -> None:
    for seen in play(plan):
        strip = segments_of(seen.envelope, LayerId.L4)
        talk = [part for message in seen.expected.earlier for part in (message.typed, message.reply)]
        assert [s.text for s in strip if s.kind in ("user", "reply")] == talk
        assert seen.envelope.layers[3].text == "\n\n".join(s.text for s in strip)


@TRIED
@given(plan=plans())
def test_history_has_each_tool_result_once_and_later_its_call(
    plan: Plan,
) -> None:
    for seen in play(plan):
        newest: dict[str, str] = {}
        for index, message in enumerate(seen.expected.earlier):
            for tool in message.given:
                newest.pop(tool.id, None)
                newest[tool.id] = "full" if index >= seen.expected.epoch_start else "handle"
        others = [s for s in segments_of(seen.envelope, LayerId.L4) if s.kind not in ("user", "reply")]
        assert [(s.id, s.form) for s in others] == list(newest.items())
        assert {s.kind for s in others} <= {"tool"}


@TRIED
@given(plan=plans())
def test_messages_before_epoch_are_text_after_tool_calls(plan: Plan) -> None:
    for seen in play(plan):
        first = int(seen.turn.messages[0].role == "system")
        for index, message in enumerate(seen.expected.earlier):
            asked, answered = seen.turn.messages[first + 2 * index : first + 2 * index + 2]
            assert answered.text == message.reply
            assert asked.text.endswith(message.typed)
            if index < seen.expected.epoch_start:
                before = asked.text.removesuffix(message.typed) if message.typed else asked.text
                assert list_stubs(before) == [tool.id for tool in message.given]
                rest = without_stubs(before, list_stubs(before))
                pictures = "".join(line for line in rest.splitlines(keepends=True) if line.startswith("[Picture: "))
                assert rest == pictures + ("[User query]:\n" if message.given or pictures else "")
                assert asked.images == ()


def test_note_in_history_violates_invariant() -> None:
    _, second = turns("in_place")
    strip = segments_of(second.envelope, LayerId.L4)
    new = next(s for s in segments_of(second.envelope, LayerId.L3) if s.id == "b.md")
    stray = replace(new, id="c.md")
    assert broken_invariants(with_segments(second.envelope, LayerId.L4, [*strip, stray])) == ["strip_content"]


@pytest.mark.parametrize(("layout", "form"), [("in_place", "full"), ("library", "handle")])
def test_tool_result_precedes_its_question_in_every_layout(layout: str, form: str) -> None:
    _, second = turns(layout)
    strip = segments_of(second.envelope, LayerId.L4)
    assert [s.kind for s in strip] == ["tool", "user", "reply"]
    assert (strip[0].form, strip[0].place) == (form, strip[1].place)
    assert broken_invariants(second.envelope) == []
