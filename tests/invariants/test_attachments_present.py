"""No attachment is ever absent: it is in full, an outline, or a copy with updates, until it is dropped."""

import re

import pytest
from hypothesis import given, settings
from tests.invariants.blocks import Block, block_text, find_blocks, unescaped
from tests.invariants.expected_history import Fact
from tests.invariants.playing import Seen, play
from tests.invariants.strategies import Attach, Edit, Plan, Step, Thing, plans
from tests.invariants.texts import LONG, Words, readable

TRIED = settings.get_profile("invariants")
WAY_BACK = re.compile(r"\[This is a preview\. Attach (.*) again for the whole text\.\]")


@TRIED
@given(plan=plans())
def test_current_attachment_is_readable_in_full(plan: Plan) -> None:
    for seen in play(plan):
        blocks = find_blocks(seen.turn.messages)
        for fact in seen.expected.attached.values():
            if not fact.picture:
                assert block_text(blocks[fact.id]) == readable(fact.text)


@TRIED
@given(plan=plans())
def test_earlier_attachment_is_readable_in_newest_text_or_outline(plan: Plan) -> None:
    for seen in play(plan):
        blocks = find_blocks(seen.turn.messages)
        for fact in seen.expected.known.values():
            if fact.id in seen.expected.attached or fact.handled:
                continue
            drawn_in = seen.expected.inlined.get(fact.id)
            if drawn_in is not None and drawn_in.hash != fact.hash:
                assert readable(drawn_in.text) in [readable(block.body) for block in blocks[fact.id]]
            elif blocks[fact.id][-1].part == "preview":
                assert_outline(plan, fact, blocks[fact.id][-1])
            else:
                assert block_text(blocks[fact.id]) == readable(fact.text)


def assert_outline(plan: Plan, fact: Fact, block: Block) -> None:
    """Only a long text that can be fetched again and is not pinned may shrink, and it says how to get the whole."""
    assert plan.carry_forward == "preview"
    assert fact.fetched_again
    assert fact.policy != "pin"
    assert len(fact.text) > LONG
    assert fact.head in block.body
    assert fact.tail not in block.body
    again = WAY_BACK.fullmatch(block.body.rsplit("\n", 1)[-1])
    assert again is not None
    assert unescaped(again[1]) == fact.id


@TRIED
@given(plan=plans())
def test_carry_forward_full_shrinks_nothing(plan: Plan) -> None:
    for seen in play(plan):
        if plan.carry_forward == "full":
            assert "preview" not in {block.part for _, block in _all(seen)}


def _all(seen: Seen) -> list[tuple[str, Block]]:
    return [(name, block) for name, found in find_blocks(seen.turn.messages).items() for block in found]


@TRIED
@given(plan=plans())
def test_dropped_artifact_leaves_request_at_once(plan: Plan) -> None:
    known: dict[str, Fact] = {}
    for seen in play(plan):
        for name in seen.expected.dropped - seen.expected.attached.keys() - seen.expected.inlined.keys():
            assert known[name].head not in seen.text
            assert known[name].tail not in seen.text
        known = {**seen.expected.known, **seen.expected.attached}


@TRIED
@given(plan=plans())
def test_request_has_only_attached_blocks(plan: Plan) -> None:
    attached: set[str] = set()
    for seen in play(plan):
        attached |= seen.expected.attached.keys() | seen.expected.inlined.keys()
        assert {name for name, _ in _all(seen)} <= attached


@TRIED
@given(plan=plans())
def test_pinned_artifact_is_never_dropped_or_shrunk(plan: Plan) -> None:
    pinned: dict[str, Fact] = {}
    for seen in play(plan):
        blocks = find_blocks(seen.turn.messages)
        for name in pinned:
            assert name in blocks
            if name not in seen.expected.inlined:
                assert block_text(blocks[name]) is not None
        after = {**seen.expected.known, **seen.expected.attached}
        pinned = {name: fact for name, fact in after.items() if fact.policy == "pin" and fact.shelved}


@pytest.mark.parametrize("name", ["a.md", "b & c.md", "a<b>.md", "x&lt;y.md", "two\nlines.md", "a\x00b.md"])
def test_outline_names_its_note(name: str) -> None:
    note = Thing(key=0, kind="note", name=name, words=Words(length=120))
    plan = Plan(things=(note,), steps=(Step(attach=(Attach(thing=0),)), Step(fold=True)), carry_forward="preview")
    seen = play(plan)[-1]
    (fact,) = seen.expected.known.values()
    (block,) = find_blocks(seen.turn.messages)[fact.id]
    assert_outline(plan, fact, block)


LONG_NOTE = Thing(key=0, kind="note", name="a.md", words=Words(length=120))


@pytest.mark.parametrize("layout", ["library", "in_place"])
@pytest.mark.parametrize(("policy", "part"), [("pin", "content"), ("follow", "preview"), (None, "preview")])
def test_fold_shrinks_long_note_unless_pinned(layout: str, policy: str | None, part: str) -> None:
    steps = (Step(attach=(Attach(thing=0, policy=policy),)), Step(fold=True))
    seen = play(Plan(things=(LONG_NOTE,), steps=steps, layout=layout, carry_forward="preview"))[-1]
    assert [block.part for block in find_blocks(seen.turn.messages)["a.md"]] == [part]


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_pinned_note_is_not_dropped_and_one_unpinned_is(layout: str) -> None:
    pinned, unpinned = Attach(thing=0, policy="pin"), Attach(thing=0, policy="follow")
    steps = (Step(attach=(pinned,)), Step(attach=(Attach(thing=0),)), Step(drop=(0,)))
    turns = play(Plan(things=(LONG_NOTE,), steps=(*steps, Step(attach=(unpinned,)), Step(drop=(0,))), layout=layout))
    stands = ["a.md" in find_blocks(seen.turn.messages) for seen in turns]
    assert stands == [True, True, True, True, False]
    assert any("pinned" in warning for warning in turns[2].envelope.warnings)


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_snapshot_keeps_text_until_it_follows_again(layout: str) -> None:
    policies = ("snapshot", None, "snapshot", "follow", None)
    steps = tuple(Step(attach=(Attach(thing=0, edit=Edit.LARGE, policy=policy),)) for policy in policies)
    turns = play(Plan(things=(LONG_NOTE,), steps=steps, layout=layout))
    texts = [block_text(find_blocks(seen.turn.messages)["a.md"]) for seen in turns]
    assert texts[0] == texts[1] == texts[2]
    assert len({texts[0], texts[3], texts[4]}) == 3


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_reattached_outline_is_restored_to_full_text(layout: str) -> None:
    steps = (Step(attach=(Attach(thing=0),)), Step(fold=True), Step(attach=(Attach(thing=0),)), Step())
    turns = play(Plan(things=(LONG_NOTE,), steps=steps, layout=layout, carry_forward="preview"))
    parts = [[block.part for block in find_blocks(seen.turn.messages)["a.md"]] for seen in turns]
    # In place, the outline is in the prefix and stays there until the next fold.
    restored = ["content"] if layout == "library" else ["preview", "content"]
    assert parts == [["content"], ["preview"], restored, restored]
