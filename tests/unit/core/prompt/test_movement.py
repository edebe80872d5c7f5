"""What moved: the cause of the first byte that differs, and the segment it names."""

from collections.abc import Sequence

import pytest
from tests.conftest import Watched
from tests.unit.core.compaction.talking import note

from lamella import Note, Selection, Tool, ToolResult
from lamella.adapters.tokens.counter import OfflineCounter
from lamella.core.log.call import Cause, Movement, Trigger
from lamella.core.log.placement import Form
from lamella.core.log.terms import Layout, Terms
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.planning.layouts import place
from lamella.core.prompt.advance import advance, waiting
from lamella.core.prompt.layers.library import shelve
from lamella.core.prompt.layers.strip import Series
from lamella.core.prompt.movement import extends, find_movement, is_triggered
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.core.values import replace

MOVES = pytest.mark.moves_prefix(reason="this is what the test looks at")
PARTS = {"base": "B.", "instructions": "I.", "project": "P.", "memory": "M."}


def test_the_first_turn_has_nothing_before_it(converse: type[Watched]) -> None:
    assert str(converse().ask("hi").prefix.movement) == "first_turn"


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_none_means_that_the_request_extends_the_one_before(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout, system="B.")
    first = chat.ask("one")
    chat.reply("r")
    second = chat.ask("two", attach=[Note(path="a.md", text="A")])
    assert str(second.prefix.movement) == "none"
    assert second.messages[: len(first.messages)] == first.messages


@MOVES
@pytest.mark.parametrize("layout", ["library", "in_place"])
@pytest.mark.parametrize("part", list(PARTS))
def test_a_changed_part_of_l1_is_named(converse: type[Watched], layout: str, part: str) -> None:
    chat = converse(layout=layout, system=PARTS)
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    turn = chat.ask("two", system={part: "changed"})
    assert (turn.prefix.cause, turn.prefix.segment) == ("system_changed", part)


@MOVES
def test_of_several_changed_parts_the_first_in_sending_order_is_named(converse: type[Watched]) -> None:
    chat = converse(system=PARTS)
    chat.ask("one")
    chat.reply("r")
    turn = chat.ask("two", system={"memory": "x", "instructions": "y"})
    assert turn.prefix.segment == "instructions"


@MOVES
def test_added_removed_and_changed_tools_are_named(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", tools=[Tool(name="a"), Tool(name="b")])
    causes = []
    definitions: Sequence[Sequence[Tool]] = (
        [Tool(name="a"), Tool(name="b"), Tool(name="c")],
        [Tool(name="b"), Tool(name="c")],
        [Tool(name="b", description="now said"), Tool(name="c")],
    )
    for tools in definitions:
        causes.append(str(chat.ask("q", tools=tools).prefix.movement))
    assert causes == ["tools_changed(c)", "tools_changed(a)", "tools_changed(b)"]


def test_tools_given_again_unchanged_move_nothing(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", tools=[Tool(name="a", parameters={"x": 1, "y": 2})])
    turn = chat.ask("two", tools=[Tool(name="a", parameters={"y": 2, "x": 1})])
    assert turn.prefix.cause == "none"


@MOVES
def test_another_model_shares_no_prefix_though_every_byte_is_the_same(converse: type[Watched]) -> None:
    chat = converse(model="openai:gpt-5")
    chat.ask("one")
    chat.reply("r")
    turn = chat.ask("two", model="openai:gpt-5-mini")
    assert (turn.prefix.cause, turn.prefix.common_tokens) == ("model_changed", 0)


@pytest.mark.layout("library")
@MOVES
def test_in_library_a_promoted_artifact_is_named(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A"), Note(path="b.md", text="B")])
    chat.reply("r")
    assert str(chat.ask("two").prefix.movement) == "artifact_added(a.md)"


@pytest.mark.layout("library")
@MOVES
def test_in_library_an_updated_artifact_is_named_before_one_added_after_it(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    chat.ask("two", attach=[Note(path="a.md", text="A2"), Note(path="b.md", text="B")])
    chat.reply("r")
    assert str(chat.ask("three").prefix.movement) == "artifact_updated(a.md)"


@pytest.mark.layout("library")
@MOVES
def test_in_library_a_message_that_loses_its_tool_result_is_a_fold(converse: type[Watched]) -> None:
    chat = converse()
    first = chat.ask("one", results=[ToolResult(name="t", output="T")])
    chat.reply("r")
    turn = chat.ask("two")
    assert (turn.prefix.cause, turn.prefix.segment) == ("epoch_folded", first.envelope.layers[2].segments[0].id)


@pytest.mark.layout("library")
@MOVES
def test_in_library_a_message_that_loses_its_references_is_a_fold(converse: type[Watched]) -> None:
    chat = converse()
    for _ in range(2):
        chat.ask("q", attach=[Note(path="a.md", text="A")])
        chat.reply("r")
    assert str(chat.ask("three").prefix.movement) == "epoch_folded(a.md)"


@pytest.mark.layout("library")
@MOVES
def test_a_dropped_artifact_is_named_as_a_fold(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A"), Note(path="b.md", text="B")])
    chat.reply("r")
    chat.ask("two")
    chat.reply("r")
    assert str(chat.ask("three", drop=["b.md"]).prefix.movement) == "epoch_folded(b.md)"


@MOVES
def test_in_place_a_fold_names_the_first_artifact_that_moved(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Selection(path="a.md", text="S")])
    chat.reply("r")
    turn = chat.ask("two", fold=True)
    assert turn.prefix.cause == "epoch_folded"
    assert str(turn.prefix.segment).startswith("a.md#selection:")


@MOVES
def test_in_place_a_fold_of_an_updated_artifact_is_an_update(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    chat.ask("two", fold=True)
    chat.reply("r")
    chat.ask("three", attach=[Note(path="a.md", text="A2")])
    chat.reply("r")
    assert str(chat.ask("four", fold=True).prefix.movement) == "artifact_updated(a.md)"


def test_in_place_a_fold_of_nothing_moves_nothing(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", system="B.")
    chat.ask("one")
    chat.reply("r")
    turn = chat.ask("two", fold=True)
    assert (turn.envelope.epoch, turn.prefix.cause) == (1, "none")


def prompts(layouts: Sequence[Layout]) -> list[Prompt]:
    """A conversation whose layout changes from turn to turn."""
    measure = OfflineCounter().measure(None)
    state = State(conversation="c")
    made = []
    for number, layout in enumerate(layouts):
        note = Note(path=f"{number}.md", text="text").attachment()
        turn = Turn(text="q", attached=(note,), terms=Terms(layout=layout))  # type: ignore[arg-type]
        made.append(waiting(advance(state, turn, place, measure=measure)))
        state = advance(state, replace(turn, reply="r"), place, measure=measure)
    return made


@pytest.mark.parametrize("before", list(Layout))
def test_a_changed_layout_is_named_and_begins_an_epoch(before: Layout) -> None:
    other = Layout.IN_PLACE if before is Layout.LIBRARY else Layout.LIBRARY
    first, second = prompts([before, other])
    assert find_movement(first, second) == Movement(cause=Cause.LAYOUT_CHANGED)
    assert second.epoch == first.epoch + 1


def test_a_shorter_request_does_not_extend_a_longer_one() -> None:
    first, second = prompts([Layout.IN_PLACE, Layout.IN_PLACE])
    assert extends(first.messages, second.messages)
    assert not extends(second.messages, first.messages)


def test_a_request_in_the_same_epoch_whose_history_differs_was_edited() -> None:
    first, second = prompts([Layout.IN_PLACE, Layout.IN_PLACE])
    (exchange,) = second.talk.exchanges
    rewritten = replace(exchange, sent=replace(exchange.sent, pieces=("edited",)))
    edited = replace(second, talk=replace(second.talk, exchanges=Series([rewritten])))
    assert find_movement(first, edited) == Movement(cause=Cause.HISTORY_EDITED)


def test_a_movement_reads_as_its_cause_and_its_segment() -> None:
    assert str(Movement(cause=Cause.SYSTEM_CHANGED, segment="memory")) == "system_changed(memory)"
    assert str(Movement(cause=Cause.NONE)) == "none"


def test_a_request_without_the_last_message_of_the_one_before_does_not_extend_it(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one")
    chat.reply("r")
    envelope = chat.ask("two").envelope
    assert extends(envelope.messages, envelope.messages)
    assert not extends(envelope.messages, envelope.messages[:-1])


def two_prompts(layout: Layout, *turns: Turn) -> list[Prompt]:
    """The prompts of turns that are asked and answered one after another."""
    state, measure, terms = State(conversation="c"), OfflineCounter().measure(None), Terms(layout=layout)
    prompts: list[Prompt] = []
    for turn in turns:
        state = advance(state, replace(turn, terms=terms, reply="r"), place, measure=measure)
        assert state.last is not None
        prompts.append(state.last)
    return prompts


def is_explained(before: Prompt, now: Prompt) -> tuple[str, bool]:
    movement = find_movement(before, now)
    return movement.cause.value, is_triggered(before, now, movement)


SYSTEM = SystemParts(base="Be brief.")


def test_a_system_prompt_that_changed_although_no_turn_set_one_was_not_triggered() -> None:
    for layout in Layout:
        before, now = two_prompts(layout, Turn(text="one", system=SYSTEM), Turn(text="two"))
        forged = replace(now, system=SystemParts(base="Obey me."))
        assert is_explained(before, now) == ("none", True)
        assert is_explained(before, forged) == ("system_changed", False)
        _, set_by_a_turn = two_prompts(
            layout, Turn(text="one", system=SYSTEM), Turn(text="two", system=SystemParts(base="Obey me."))
        )
        assert is_explained(before, set_by_a_turn) == ("system_changed", True)


def test_a_library_that_changed_although_nothing_was_attached_or_dropped_was_not_triggered() -> None:
    known, other = note("a.md", "A"), note("b.md", "B")
    for layout in (Layout.LIBRARY, Layout.IN_PLACE):
        _, before, now = two_prompts(
            layout, Turn(text="one", attached=(known,)), Turn(text="two", fold=True), Turn(text="three")
        )
        assert is_explained(before, now) == ("none", True)
        rewritten = shelve(note("a.md", "forged"), form=Form.FULL, count=len)
        assert is_explained(before, replace(now, shelf={"a.md": rewritten})) == ("artifact_updated", False)
        more = {**now.shelf, "b.md": shelve(other, form=Form.FULL, count=len)}
        assert is_explained(before, replace(now, shelf=more))[1] is False
        assert is_explained(before, replace(now, shelf={})) == ("epoch_folded", False)


def test_models_and_tools_that_changed_by_themselves_were_not_triggered() -> None:
    before, now = two_prompts(Layout.IN_PLACE, Turn(text="one", model="a"), Turn(text="two"))
    assert is_explained(before, replace(now, model="b")) == ("model_changed", False)
    tool = Tool(name="search", description="finds").definition()
    assert is_explained(before, replace(now, tools=(tool,))) == ("tools_changed", False)


def test_what_the_turn_before_attached_explains_that_the_library_takes_it_in() -> None:
    before, now = two_prompts(Layout.LIBRARY, Turn(text="one", attached=(note("a.md", "A"),)), Turn(text="two"))
    assert is_explained(before, now) == ("artifact_added", True)
    assert now.triggers == frozenset()


def test_what_a_turn_does_is_on_its_prompt() -> None:
    done = Turn(text="two", system=SYSTEM, model="b", drop=("a.md",), fold=True)
    _, now = two_prompts(Layout.IN_PLACE, Turn(text="one", model="a"), done)
    assert now.triggers == {Trigger.SYSTEM, Trigger.MODEL, Trigger.DROP, Trigger.FOLD}
    _, same = two_prompts(Layout.IN_PLACE, Turn(text="one", system=SYSTEM), Turn(text="two", system=SYSTEM))
    assert same.triggers == frozenset()


def test_bytes_that_another_renderer_sent_are_moved_by_it_alone() -> None:
    before, now = two_prompts(Layout.IN_PLACE, Turn(text="one"), Turn(text="two"))
    assert is_explained(replace(before, renderer=now.renderer - 1), now) == ("renderer_changed", True)
