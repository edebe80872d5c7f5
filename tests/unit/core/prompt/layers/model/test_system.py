"""L1: one segment per part that has text, in the order they are sent."""

from tests.unit.core.compaction.stories import QUARTERS, note

from lamella.core.log.turn import SYSTEM_PART_NAMES, SystemParts
from lamella.core.prompt.layers.model import LayerId, build_system_layer, first_changed_system_part

FULL = SystemParts(base="B.", guidelines="G.", instructions="I.", rules="R.", project="P.", workflow="W.", memory="M.")


def test_parts_are_sent_in_their_order_with_a_blank_line_between() -> None:
    layer = build_system_layer(FULL, count=QUARTERS.count)
    assert layer.id is LayerId.L1
    assert layer.text == "B.\n\nG.\n\nI.\n\nR.\n\nP.\n\nW.\n\nM."
    assert tuple(segment.id for segment in layer.segments) == SYSTEM_PART_NAMES
    assert {(s.kind, s.form.value, s.place, s.recoverable) for s in layer.segments} == {
        ("system", "full", "system", True)
    }


def test_system_layer_and_segments_count_own_text() -> None:
    layer = build_system_layer(SystemParts(base="four char", memory="M."), count=QUARTERS.count)
    assert [segment.tokens for segment in layer.segments] == [3, 1]
    assert layer.tokens == QUARTERS.count("four char\n\nM.")


def test_empty_system_parts_are_omitted() -> None:
    assert [segment.id for segment in build_system_layer(SystemParts(memory="M."), count=len).segments] == ["memory"]
    empty = build_system_layer(SystemParts(typed_instructions="{[[a]]}"), count=len)
    assert (empty.segments, empty.pieces, empty.tokens) == ((), (), 0)


def test_only_instructions_list_inlined_notes() -> None:
    drawn = note("a.md", "A")
    parts = SystemParts(base="B.", instructions="Use A.", inlined=(drawn,))
    base, instructions = build_system_layer(parts, count=len).segments
    assert base.inlines == ()
    assert instructions.inlines == ((drawn.id, drawn.hash),)


def test_first_changed_system_part_is_named() -> None:
    full = build_system_layer(FULL, count=len).segments
    assert first_changed_system_part(full, full) is None
    assert first_changed_system_part((), ()) is None
    for name in SYSTEM_PART_NAMES:
        less = [segment for segment in full if segment.id != name]
        assert first_changed_system_part(full, less) == first_changed_system_part(less, full) == name
    other = build_system_layer(SystemParts(base="B.", guidelines="other", memory="other"), count=len).segments
    assert first_changed_system_part(full, other) == "guidelines"
