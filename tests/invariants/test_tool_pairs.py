"""Invariant: a tool call and its result are in the message of their turn."""

import json

from hypothesis import given, settings
from tests.invariants.blocks import Block, find_blocks
from tests.invariants.broken_prompts import broken_invariants, segments_of, turns, with_segments
from tests.invariants.expected_history import Fact
from tests.invariants.playing import Seen, play
from tests.invariants.strategies import Plan, plans
from tests.invariants.texts import readable

from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")


@TRIED
@given(plan=plans())
def test_tool_result_is_with_its_call_in_its_turn(plan: Plan) -> None:
    for seen in play(plan):
        blocks = find_blocks(seen.turn.messages)
        stated = {name for name, found in blocks.items() if found[0].tag == "tool_result"}
        expected: dict[str, tuple[int, Fact]] = {}
        first = int(seen.turn.messages[0].role == "system")
        for index, tool in _results(seen):
            expected.setdefault(tool.id, (first + 2 * index, tool))
        assert stated == set(expected)
        for name, (message, tool) in expected.items():
            assert len(blocks[name]) == 1
            assert_whole(blocks[name][0], tool)
            assert blocks[name][0].message == message


def _results(seen: Seen) -> list[tuple[int, Fact]]:
    """Each tool result of the epoch with the number of its turn, this turn's last."""
    start = seen.expected.epoch_start
    earlier = [(start + n, tool) for n, message in enumerate(seen.expected.earlier[start:]) for tool in message.tools]
    now = [fact for fact in seen.expected.attached.values() if fact.kind == "tool"]
    return [*earlier, *((len(seen.expected.earlier), tool) for tool in now)]


def assert_whole(block: Block, tool: Fact) -> None:
    assert block.fields["name"] == "search"
    assert json.loads(block.fields["arguments"])["q"] == tool.name
    assert readable(block.body) == readable(tool.text)


@TRIED
@given(plan=plans())
def test_tool_result_is_never_in_library(plan: Plan) -> None:
    for seen in play(plan):
        assert "tool" not in [segment.kind for segment in segments_of(seen.envelope, LayerId.L2)]


def test_result_outside_its_turn_violates_tool_pairs() -> None:
    first, second = turns("in_place")
    strip = segments_of(second.envelope, LayerId.L4)
    moved = [replace(s, place="message:2") if s.kind == "tool" else s for s in strip]
    assert broken_invariants(with_segments(second.envelope, LayerId.L4, moved)) == ["tool_pairs"]
    apart = [replace(s, place="system") if s.kind == "tool" else s for s in segments_of(first.envelope, LayerId.L3)]
    assert broken_invariants(with_segments(first.envelope, LayerId.L3, apart)) == ["tool_pairs"]


def test_result_in_library_violates_tool_pairs() -> None:
    first, second = turns("library")
    tool = next(s for s in segments_of(first.envelope, LayerId.L3) if s.kind == "tool")
    shelf = [*segments_of(second.envelope, LayerId.L2), tool]
    assert broken_invariants(with_segments(second.envelope, LayerId.L2, shelf)) == ["tool_pairs"]
