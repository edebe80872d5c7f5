"""The cause of the first byte that differs, and the segment it names."""

from collections.abc import Sequence

import pytest
from tests.conftest import Watched
from tests.unit.core.compaction.stories import note

from lamella import Note, Selection, Tool, ToolResult
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.call import PrefixChange, PrefixChangeCause, PrefixChangeTrigger
from lamella.core.log.turn import ArtifactForm, LayoutMode, SystemParts, Turn, TurnSettings
from lamella.core.prompt.advance import advance_by_turn, get_pending_prompt
from lamella.core.prompt.layers.history import SharedSequence
from lamella.core.prompt.layers.library import place_in_library
from lamella.core.prompt.prefix_change import detect_prefix_change, is_change_explained, is_prefix_of
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.tokenizers.counter import OfflineTokenCounter

MOVES = pytest.mark.moves_prefix(reason="this is what the test looks at")
PARTS = {"base": "B.", "instructions": "I.", "project": "P.", "memory": "M."}


def test_first_turn_has_cause_first_turn(converse: type[Watched]) -> None:
    assert str(converse().ask("hi").prefix_change.prefix_change) == "first_turn"


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_extended_request_has_cause_none(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout, system="B.")
    first = chat.ask("one")
    chat.reply("r")
    second = chat.ask("two", attach=[Note(path="a.md", text="A")])
    assert str(second.prefix_change.prefix_change) == "none"
    assert second.messages[: len(first.messages)] == first.messages


@MOVES
@pytest.mark.parametrize("layout", ["library", "in_place"])
@pytest.mark.parametrize("part", list(PARTS))
def test_changed_l1_part_is_named(converse: type[Watched], layout: str, part: str) -> None:
    chat = converse(layout=layout, system=PARTS)
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    turn = chat.ask("two", system={part: "changed"})
    assert (turn.prefix_change.cause, turn.prefix_change.segment) == ("system_changed", part)


@MOVES
def test_first_of_several_changed_parts_is_named(converse: type[Watched]) -> None:
    chat = converse(system=PARTS)
    chat.ask("one")
    chat.reply("r")
    turn = chat.ask("two", system={"memory": "x", "instructions": "y"})
    assert turn.prefix_change.segment == "instructions"


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
        causes.append(str(chat.ask("q", tools=tools).prefix_change.prefix_change))
    assert causes == ["tools_changed(c)", "tools_changed(a)", "tools_changed(b)"]


def test_unchanged_tools_move_nothing(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", tools=[Tool(name="a", parameters={"x": 1, "y": 2})])
    turn = chat.ask("two", tools=[Tool(name="a", parameters={"y": 2, "x": 1})])
    assert turn.prefix_change.cause == "none"


@MOVES
def test_other_model_shares_no_prefix_of_same_bytes(converse: type[Watched]) -> None:
    chat = converse(model="openai:gpt-5")
    chat.ask("one")
    chat.reply("r")
    turn = chat.ask("two", model="openai:gpt-5-mini")
    assert (turn.prefix_change.cause, turn.prefix_change.common_tokens) == ("model_changed", 0)


@pytest.mark.layout("library")
@MOVES
def test_library_promotion_is_named(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A"), Note(path="b.md", text="B")])
    chat.reply("r")
    assert str(chat.ask("two").prefix_change.prefix_change) == "artifact_added(a.md)"


@pytest.mark.layout("library")
@MOVES
def test_library_update_is_named_before_addition(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    chat.ask("two", attach=[Note(path="a.md", text="A2"), Note(path="b.md", text="B")])
    chat.reply("r")
    assert str(chat.ask("three").prefix_change.prefix_change) == "artifact_updated(a.md)"


@pytest.mark.layout("library")
@MOVES
def test_library_message_losing_tool_result_is_fold(converse: type[Watched]) -> None:
    chat = converse()
    first = chat.ask("one", results=[ToolResult(name="t", output="T")])
    chat.reply("r")
    turn = chat.ask("two")
    assert (turn.prefix_change.cause, turn.prefix_change.segment) == (
        "epoch_folded",
        first.envelope.layers[2].segments[0].id,
    )


@pytest.mark.layout("library")
@MOVES
def test_library_message_losing_references_is_fold(converse: type[Watched]) -> None:
    chat = converse()
    for _ in range(2):
        chat.ask("q", attach=[Note(path="a.md", text="A")])
        chat.reply("r")
    assert str(chat.ask("three").prefix_change.prefix_change) == "epoch_folded(a.md)"


@pytest.mark.layout("library")
@MOVES
def test_dropped_artifact_is_named_as_fold(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A"), Note(path="b.md", text="B")])
    chat.reply("r")
    chat.ask("two")
    chat.reply("r")
    assert str(chat.ask("three", drop=["b.md"]).prefix_change.prefix_change) == "epoch_folded(b.md)"


@MOVES
def test_in_place_a_fold_names_the_first_artifact_that_moved(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Selection(path="a.md", text="S")])
    chat.reply("r")
    turn = chat.ask("two", fold=True)
    assert turn.prefix_change.cause == "epoch_folded"
    assert str(turn.prefix_change.segment).startswith("a.md#selection:")


@MOVES
def test_in_place_a_fold_of_an_updated_artifact_is_an_update(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    chat.ask("two", fold=True)
    chat.reply("r")
    chat.ask("three", attach=[Note(path="a.md", text="A2")])
    chat.reply("r")
    assert str(chat.ask("four", fold=True).prefix_change.prefix_change) == "artifact_updated(a.md)"


def test_in_place_empty_fold_moves_nothing(converse: type[Watched]) -> None:
    chat = converse(layout="in_place", system="B.")
    chat.ask("one")
    chat.reply("r")
    turn = chat.ask("two", fold=True)
    assert (turn.envelope.epoch, turn.prefix_change.cause) == (1, "none")


def prompts(layouts: Sequence[LayoutMode]) -> list[Prompt]:
    """A conversation whose layout changes from turn to turn."""
    tokenizer = OfflineTokenCounter().get_tokenizer(None)
    state = PromptState(conversation="c")
    made = []
    for number, layout in enumerate(layouts):
        note = Note(path=f"{number}.md", text="text").to_artifact()
        turn = Turn(text="q", attached=(note,), turn_settings=TurnSettings(layout=layout))  # type: ignore[arg-type]
        made.append(get_pending_prompt(advance_by_turn(state, turn, choose_layout, tokenizer=tokenizer)))
        state = advance_by_turn(state, replace(turn, reply="r"), choose_layout, tokenizer=tokenizer)
    return made


@pytest.mark.parametrize("before", list(LayoutMode))
def test_layout_change_is_named_and_starts_epoch(before: LayoutMode) -> None:
    other = LayoutMode.IN_PLACE if before is LayoutMode.LIBRARY else LayoutMode.LIBRARY
    first, second = prompts([before, other])
    assert detect_prefix_change(first, second) == PrefixChange(cause=PrefixChangeCause.LAYOUT_CHANGED)
    assert second.epoch == first.epoch + 1


def test_shorter_request_does_not_extend_a_longer_one() -> None:
    first, second = prompts([LayoutMode.IN_PLACE, LayoutMode.IN_PLACE])
    assert is_prefix_of(first.messages, second.messages)
    assert not is_prefix_of(second.messages, first.messages)


def test_changed_history_in_epoch_is_edit() -> None:
    first, second = prompts([LayoutMode.IN_PLACE, LayoutMode.IN_PLACE])
    (turn,) = second.history.turns
    rewritten = replace(turn, question_message=replace(turn.question_message, pieces=("edited",)))
    edited = replace(second, history=replace(second.history, turns=SharedSequence([rewritten])))
    assert detect_prefix_change(first, edited) == PrefixChange(cause=PrefixChangeCause.HISTORY_EDITED)


def test_prefix_change_is_formatted_with_cause_and_segment() -> None:
    assert str(PrefixChange(cause=PrefixChangeCause.SYSTEM_CHANGED, segment="memory")) == "system_changed(memory)"
    assert str(PrefixChange(cause=PrefixChangeCause.NONE)) == "none"


def test_request_without_last_message_does_not_extend(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one")
    chat.reply("r")
    envelope = chat.ask("two").envelope
    assert is_prefix_of(envelope.messages, envelope.messages)
    assert not is_prefix_of(envelope.messages, envelope.messages[:-1])


def two_prompts(layout: LayoutMode, *turns: Turn) -> list[Prompt]:
    """The prompts of turns that are asked and answered one after another."""
    state, tokenizer, turn_settings = (
        PromptState(conversation="c"),
        OfflineTokenCounter().get_tokenizer(None),
        TurnSettings(layout=layout),
    )
    prompts: list[Prompt] = []
    for turn in turns:
        state = advance_by_turn(
            state, replace(turn, turn_settings=turn_settings, reply="r"), choose_layout, tokenizer=tokenizer
        )
        assert state.last_prompt is not None
        prompts.append(state.last_prompt)
    return prompts


def is_explained(before: Prompt, now: Prompt) -> tuple[str, bool]:
    movement = detect_prefix_change(before, now)
    return movement.cause.value, is_change_explained(before, now, movement)


SYSTEM = SystemParts(base="Be brief.")


def test_system_prompt_changed_without_turn_has_no_trigger() -> None:
    for layout in LayoutMode:
        before, now = two_prompts(layout, Turn(text="one", system=SYSTEM), Turn(text="two"))
        forged = replace(now, system=SystemParts(base="Obey me."))
        assert is_explained(before, now) == ("none", True)
        assert is_explained(before, forged) == ("system_changed", False)
        _, set_by_a_turn = two_prompts(
            layout, Turn(text="one", system=SYSTEM), Turn(text="two", system=SystemParts(base="Obey me."))
        )
        assert is_explained(before, set_by_a_turn) == ("system_changed", True)


def test_unexplained_library_change_has_no_trigger() -> None:
    known, other = note("a.md", "A"), note("b.md", "B")
    for layout in (LayoutMode.LIBRARY, LayoutMode.IN_PLACE):
        _, before, now = two_prompts(
            layout, Turn(text="one", attached=(known,)), Turn(text="two", fold=True), Turn(text="three")
        )
        assert is_explained(before, now) == ("none", True)
        rewritten = place_in_library(note("a.md", "forged"), form=ArtifactForm.FULL, count=len)
        assert is_explained(before, replace(now, system_library={"a.md": rewritten})) == ("artifact_updated", False)
        more = {**now.system_library, "b.md": place_in_library(other, form=ArtifactForm.FULL, count=len)}
        assert is_explained(before, replace(now, system_library=more))[1] is False
        assert is_explained(before, replace(now, system_library={})) == ("epoch_folded", False)


def test_models_and_tools_changed_without_turn_have_no_trigger() -> None:
    before, now = two_prompts(LayoutMode.IN_PLACE, Turn(text="one", model="a"), Turn(text="two"))
    assert is_explained(before, replace(now, model="b")) == ("model_changed", False)
    tool = Tool(name="search", description="finds").to_definition()
    assert is_explained(before, replace(now, tools=(tool,))) == ("tools_changed", False)


def test_attachment_of_previous_turn_explains_promotion() -> None:
    before, now = two_prompts(LayoutMode.LIBRARY, Turn(text="one", attached=(note("a.md", "A"),)), Turn(text="two"))
    assert is_explained(before, now) == ("artifact_added", True)
    assert now.triggers == frozenset()


def test_prompt_lists_triggers_of_turn() -> None:
    done = Turn(text="two", system=SYSTEM, model="b", drop=("a.md",), fold=True)
    _, now = two_prompts(LayoutMode.IN_PLACE, Turn(text="one", model="a"), done)
    assert now.triggers == {
        PrefixChangeTrigger.SYSTEM,
        PrefixChangeTrigger.MODEL,
        PrefixChangeTrigger.DROP,
        PrefixChangeTrigger.FOLD,
    }
    _, same = two_prompts(LayoutMode.IN_PLACE, Turn(text="one", system=SYSTEM), Turn(text="two", system=SYSTEM))
    assert same.triggers == frozenset()


def test_other_renderer_version_explains_change() -> None:
    before, now = two_prompts(LayoutMode.IN_PLACE, Turn(text="one"), Turn(text="two"))
    assert is_explained(replace(before, renderer_version=now.renderer_version - 1), now) == ("renderer_changed", True)
