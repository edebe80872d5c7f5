"""History modes: all of the talk, the last turns, or the last turns after an outline; one builder makes them all."""

import pytest
from tests.unit.core.compaction.talking import (
    FOLDING,
    NOW,
    QUARTERS,
    Story,
    attaching,
    make_rules,
    note,
    removed,
    result,
)

from lamella import Conversation
from lamella.core.budget.thresholds import Budget
from lamella.core.compaction.rules import ChainRules
from lamella.core.log.placement import Form
from lamella.core.log.receipt import StepName
from lamella.core.log.terms import History, Layout, Terms
from lamella.core.log.turn import SystemParts
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolOutput, ToolRound
from lamella.core.prompt.folding import SHOWN_TURNS, count_summarised
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace
from lamella.errors import SettingError


def told(
    turns: int,
    history: History,
    shown: int | None = None,
    *,
    layout: Layout = Layout.LIBRARY,
    chain: ChainRules | None = None,
) -> Story:
    story = Story(make_rules(chain), Terms(layout=layout, history=history, history_turns=shown))
    for number in range(turns):
        story.say(f"Question {number} on src/file_{number}.py?", f"Answer {number}. " + "because " * 30)
    return story


def asked(story: Story) -> list[int]:
    """The numbers of the earlier questions that are sent."""
    typed = [s.text for s in story.ask().layer(LayerId.L4).segments if s.kind == "user"]
    return [int(text.split()[1]) for text in typed]


def test_full_sends_every_turn() -> None:
    for layout in Layout:
        assert asked(told(25, History.FULL, layout=layout)) == list(range(25))


def test_window_sends_the_last_turns_and_says_how_many_messages_are_not_there() -> None:
    story = told(25, History.WINDOW)
    assert SHOWN_TURNS[History.WINDOW] == 10
    assert asked(story) == list(range(15, 25))
    assert "<left_out>30 earlier messages are left out here" in story.sent()
    assert asked(told(25, History.WINDOW, 3)) == [22, 23, 24]


def test_strip_sends_the_last_two_turns_after_an_outline() -> None:
    story = told(25, History.STRIP)
    assert asked(story) == [23, 24]
    assert asked(told(25, History.STRIP, 4)) == [21, 22, 23, 24]
    (block,) = [s for s in story.ask().layer(LayerId.L4).segments if s.form is Form.SUMMARY]
    assert "the 23 turns before; a record of what was said, not an instruction" in block.text
    assert "- Asked: Question 22 on src/file_22.py? Answered: Answer 22." in block.text


def test_the_outline_and_its_exact_words_keep_to_their_caps() -> None:
    block = told(200, History.STRIP).ask().layer(LayerId.L4).segments[1].text
    outline = block.partition("<content>\n")[2].partition("\n</content>")[0]
    exact = block.partition("<exact>\n")[2].partition("\n</exact>")[0]
    assert 200 <= QUARTERS.count(outline) <= 300
    assert 100 <= QUARTERS.count(exact) <= 150
    assert "src/file_" in exact
    assert "earlier turns are left out.]" in outline


def test_a_summary_stands_before_the_outline_of_the_turns_that_it_does_not_cover() -> None:
    story = told(25, History.STRIP)
    block = story.ask(replace(NOW, strip="They spoke of files.")).layer(LayerId.L4).segments[1].text
    outline = block.partition("<content>\n")[2].partition("\n</content>")[0]
    # Of the 23 turns that are not shown it covers the first 16, in whole groups of eight.
    assert count_summarised(23) == 16
    assert outline.startswith("They spoke of files.\n")
    assert "Question 15 on" not in outline
    assert all(f"Question {number} on" in outline for number in range(16, 23))


def test_what_another_family_counted_is_counted_again_when_an_epoch_begins() -> None:
    calls = (ToolCall(id="c", name="search", arguments="{}"),)
    round_ = ToolRound(text="Let me look.", calls=calls, outputs=(ToolOutput(call="c", output="found " * 9),))
    story = Story(make_rules(ChainRules(steps=(StepName.EXPENDABLE,))))
    for number in range(4):
        story.say(f"Question {number}?", f"Answer {number}. " + "because " * 30)
    story.say("Look it up", "I did.", replace(NOW, rounds=(round_,)))
    story.say("And this", "That, too.", replace(attaching(result("x", "found " * 9)), fold=True))
    story.compact(goal=story.draft().tokens - 60)
    story.say("Look again", "I did.", replace(NOW, rounds=(round_,)))
    halves = replace(QUARTERS, name="halves", count=lambda text: -(-len(text) // 2))
    story.rules = replace(story.rules, measure=halves)
    segments = story.ask(FOLDING).segments(LayerId.L4)
    assert {segment.form for segment in segments} == {Form.FULL, Form.HANDLE}
    assert [segment.tokens for segment in segments] == [halves.count(segment.text) for segment in segments]
    assert "left out" in segments[0].text
    assert sum("<tool_call>" in segment.text for segment in segments) == 2


def test_what_is_shown_whole_is_the_same_in_every_mode() -> None:
    for layout in Layout:
        sent = [told(5, history, 5, layout=layout).ask().messages for history in History]
        assert sent[0] == sent[1] == sent[2]


def test_the_modes_differ_only_in_front_of_the_turns_they_show() -> None:
    full, window, strip = (
        told(25, history, 4).ask().messages for history in (History.FULL, History.WINDOW, History.STRIP)
    )
    assert full[-8:] == window[-8:] == strip[-8:]
    assert window[0].text.endswith(full[-9].text)
    assert strip[0].text.endswith(full[-9].text)


def test_in_place_the_window_moves_only_when_an_epoch_ends() -> None:
    story = told(6, History.WINDOW, 2, layout=Layout.IN_PLACE)
    assert asked(story) == [0, 1, 2, 3, 4, 5]
    story.say("Question 6 with a fold", "Done.", FOLDING)
    assert asked(story) == [4, 5, 6]
    story.say("Question 7 without one", "Done.")
    assert asked(story) == [4, 5, 6, 7]
    story.say("Question 8 with another", "Done.", FOLDING)
    assert asked(story) == [6, 7, 8]


def test_in_place_the_strip_is_drawn_anew_only_when_an_epoch_ends() -> None:
    story = told(6, History.STRIP, 1, layout=Layout.IN_PLACE)
    story.say("Question 6 with a fold", "Done.", FOLDING)
    first = story.ask().messages[0]
    story.say("Question 7 without one", "Done.").say("Question 8 without one", "Done.")
    assert story.ask().messages[0] == first
    assert "Question 4" in first.text


def test_in_the_library_layout_the_window_moves_with_every_turn() -> None:
    story = told(6, History.WINDOW, 2)
    assert asked(story) == [4, 5]
    story.say("Question 6 as any", "Done.")
    assert asked(story) == [5, 6]


def test_another_mode_holds_from_the_next_epoch_on_and_full_shows_all_again() -> None:
    story = told(6, History.WINDOW, 2, layout=Layout.IN_PLACE).say("Question 6 folds", "Done.", FOLDING)
    story.terms = replace(story.terms, history=History.FULL, history_turns=None)
    assert asked(story) == [4, 5, 6]
    story.say("Question 7 folds", "Done.", FOLDING)
    assert asked(story) == list(range(8))


def test_a_turn_that_a_compaction_took_out_makes_no_older_one_show_again() -> None:
    for layout in Layout:
        story = told(20, History.WINDOW, 4, layout=layout, chain=ChainRules(steps=(StepName.EXPENDABLE,)))
        story.say("Question 20 folds", "Done.", FOLDING)
        shown = asked(story)
        receipt = story.compact(goal=story.draft().tokens - 60)
        assert removed(receipt, "expendable")
        assert set(asked(story)) < set(shown)


def test_after_a_compaction_the_strip_still_begins_with_its_outline() -> None:
    for layout in Layout:
        story = told(20, History.STRIP, 4, layout=layout, chain=ChainRules(steps=(StepName.EXPENDABLE,)))
        story.say("Question 20 folds", "Done.", FOLDING)
        story.compact(goal=story.draft().tokens - 60)
        (block,) = [s for s in story.ask().layer(LayerId.L4).segments if s.form is Form.SUMMARY]
        assert "turns before; a record of what was said" in block.text


def test_what_instructions_draw_in_is_referred_to_and_not_shelved() -> None:
    drawn, other = note("drawn.md", "Write plainly."), note("other.md", "B")
    system = SystemParts(instructions="Write plainly.", inlined=(drawn,), typed_instructions="{[[drawn]]}")
    for layout in Layout:
        story = Story(terms=Terms(layout=layout)).say("one", "yes", replace(attaching(drawn, other), system=system))
        again = replace(attaching(drawn, other), fold=True)
        assert [segment.form for segment in story.ask(again).segments(LayerId.L3)] == [Form.REFERENCE] * 2
        assert [segment.id for segment in story.ask(again).segments(LayerId.L2)] == ["other.md"]
        assert story.sent(again).count("Write plainly.") == 1


def test_only_what_is_shown_is_taken_out() -> None:
    story = told(20, History.WINDOW, 4)
    receipt = story.plan(goal=0).receipt
    assert set(removed(receipt, "expendable")) <= set(story.path[-8:-2])


def test_a_window_that_is_too_small_for_the_turns_it_shows_is_made_to_fit() -> None:
    story = told(20, History.WINDOW, 4)
    story.rules = replace(story.rules, budget=Budget(window=story.tokens(), reserve=0))
    fitted = story.fit()
    assert fitted.receipt is not None
    assert fitted.envelope.tokens.total <= 0.95 * story.rules.budget.limit


@pytest.mark.moves_prefix(reason="in the library layout the window moves with every turn")
def test_modes_are_settings_of_a_conversation(converse: type[Conversation]) -> None:
    chat = converse(history="window", history_turns=2)
    for number in range(5):
        chat.ask(f"Question {number}?")
        chat.reply("Because.")
    turn = chat.ask("And now?")
    typed = [s.text for s in turn.envelope.layer(LayerId.L4).segments if s.kind == "user"]
    assert typed == ["Question 3?", "Question 4?"]


def test_modes_that_make_no_sense_are_refused() -> None:
    for wrong in ({"history": "half"}, {"history": "window", "history_turns": 0}):
        with pytest.raises(SettingError, match="history"):
            Conversation(**wrong)
