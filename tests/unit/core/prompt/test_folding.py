"""Folding: history modes, which one builder makes, and folds from a message on, by placements made by hand."""

import pytest
from tests.unit.core.compaction.stories import (
    FOLDING,
    NOW,
    QUARTERS,
    Story,
    attaching,
    make_rules,
    note,
    removed,
    result,
    selection,
)

from lamella import Conversation
from lamella.core.budget import TokenBudget
from lamella.core.compaction.rules import CompactionConfig
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.call import PrefixChangeCause
from lamella.core.log.receipts import CompactionStepName
from lamella.core.log.turn import ArtifactForm, HistoryMode, LayoutMode, LayoutPlan, SystemParts, Turn, TurnSettings
from lamella.core.messages import ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.folding import SHOWN_TURNS_BY_MODE, count_summarized_turns
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.prefix_change import detect_prefix_change, is_prefix_of
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.errors import SettingError

CALL = ToolCall(id="c", name="look", arguments="{}")
ROUND = ToolRound(text="", calls=(CALL,), outputs=(ToolOutput(call="c", output="found"),))
# The system message, then three turns: messages 1-2, 3-6 with a round of tools, 7-8.
TURNS = (
    attaching(note("a.md", "A one"), note("b.md", "B one")),
    replace(attaching(note("b.md", "B two"), result("x", "X found")), rounds=(ROUND,)),
    attaching(note("c.md", "C one"), selection("s.md", "S one")),
)


class Placing:
    """The planner of the layout, until a placement is made by hand."""

    def __init__(self) -> None:
        self.made: LayoutPlan | None = None

    def __call__(self, state: PromptState, turn: Turn) -> LayoutPlan:
        return choose_layout(state, turn) if self.made is None else self.made


def story_of(
    turns: int,
    history: HistoryMode,
    shown: int | None = None,
    *,
    layout: LayoutMode = LayoutMode.LIBRARY,
    chain: CompactionConfig | None = None,
) -> Story:
    story = Story(make_rules(chain), TurnSettings(layout=layout, history=history, history_turns=shown))
    for number in range(turns):
        story.say(f"Question {number} on src/file_{number}.py?", f"Answer {number}. " + "because " * 30)
    return story


def asked(story: Story) -> list[int]:
    """The numbers of the earlier questions that are sent."""
    typed = [s.text for s in story.ask().layer(LayerId.L4).segments if s.kind == "user"]
    return [int(text.split()[1]) for text in typed]


def test_full_sends_every_turn() -> None:
    for layout in LayoutMode:
        assert asked(story_of(25, HistoryMode.FULL, layout=layout)) == list(range(25))


def test_window_sends_last_turns_with_count_of_hidden_messages() -> None:
    story = story_of(25, HistoryMode.WINDOW)
    assert SHOWN_TURNS_BY_MODE[HistoryMode.WINDOW] == 10
    assert asked(story) == list(range(15, 25))
    assert "<left_out>30 earlier messages are left out here" in story.sent()
    assert asked(story_of(25, HistoryMode.WINDOW, 3)) == [22, 23, 24]


def test_strip_sends_last_two_turns_after_outline() -> None:
    story = story_of(25, HistoryMode.STRIP)
    assert asked(story) == [23, 24]
    assert asked(story_of(25, HistoryMode.STRIP, 4)) == [21, 22, 23, 24]
    (block,) = [s for s in story.ask().layer(LayerId.L4).segments if s.form is ArtifactForm.SUMMARY]
    assert "the 23 turns before; a record of what was said, not an instruction" in block.text
    assert "- Asked: Question 22 on src/file_22.py? Answered: Answer 22." in block.text


def test_outline_and_exact_terms_are_bounded() -> None:
    block = story_of(200, HistoryMode.STRIP).ask().layer(LayerId.L4).segments[1].text
    outline = block.partition("<content>\n")[2].partition("\n</content>")[0]
    exact = block.partition("<exact>\n")[2].partition("\n</exact>")[0]
    assert 200 <= QUARTERS.count(outline) <= 300
    assert 100 <= QUARTERS.count(exact) <= 150
    assert "src/file_" in exact
    assert "earlier turns are left out.]" in outline


def test_summary_precedes_outline_of_uncovered_turns() -> None:
    story = story_of(25, HistoryMode.STRIP)
    block = story.ask(replace(NOW, history_summary="They spoke of files.")).layer(LayerId.L4).segments[1].text
    outline = block.partition("<content>\n")[2].partition("\n</content>")[0]
    # Of the 23 turns that are not shown it covers the first 16, in whole groups of eight.
    assert count_summarized_turns(23) == 16
    assert outline.startswith("They spoke of files.\n")
    assert "Question 15 on" not in outline
    assert all(f"Question {number} on" in outline for number in range(16, 23))


def test_other_tokenizer_recounts_at_next_epoch() -> None:
    calls = (ToolCall(id="c", name="search", arguments="{}"),)
    round_ = ToolRound(text="Let me look.", calls=calls, outputs=(ToolOutput(call="c", output="found " * 9),))
    story = Story(make_rules(CompactionConfig(steps=(CompactionStepName.EXPENDABLE,))))
    for number in range(4):
        story.say(f"Question {number}?", f"Answer {number}. " + "because " * 30)
    story.say("Look it up", "I did.", replace(NOW, rounds=(round_,)))
    story.say("And this", "That, too.", replace(attaching(result("x", "found " * 9)), fold=True))
    story.compact(goal=story.draft().tokens - 200)
    story.say("Look again", "I did.", replace(NOW, rounds=(round_,)))
    halves = replace(QUARTERS, name="halves", count=lambda text: -(-len(text) // 2))
    story.rules = replace(story.rules, tokenizer=halves)
    segments = story.ask(FOLDING).segments(LayerId.L4)
    assert {segment.form for segment in segments} == {ArtifactForm.FULL, ArtifactForm.HANDLE}
    assert [segment.tokens for segment in segments] == [halves.count(segment.text) for segment in segments]
    assert "recall" in segments[1].text
    assert sum("<tool_call>" in segment.text for segment in segments) == 2


def test_shown_turns_are_equal_in_every_mode() -> None:
    for layout in LayoutMode:
        sent = [story_of(5, history, 5, layout=layout).ask().messages for history in HistoryMode]
        assert sent[0] == sent[1] == sent[2]


def test_modes_differ_only_before_shown_turns() -> None:
    full, window, strip = (
        story_of(25, history, 4).ask().messages for history in (HistoryMode.FULL, HistoryMode.WINDOW, HistoryMode.STRIP)
    )
    assert full[-8:] == window[-8:] == strip[-8:]
    assert window[0].text.endswith(full[-9].text)
    assert strip[0].text.endswith(full[-9].text)


def test_in_place_the_window_moves_only_when_an_epoch_ends() -> None:
    story = story_of(6, HistoryMode.WINDOW, 2, layout=LayoutMode.IN_PLACE)
    assert asked(story) == [0, 1, 2, 3, 4, 5]
    story.say("Question 6 with a fold", "Done.", FOLDING)
    assert asked(story) == [4, 5, 6]
    story.say("Question 7 without one", "Done.")
    assert asked(story) == [4, 5, 6, 7]
    story.say("Question 8 with another", "Done.", FOLDING)
    assert asked(story) == [6, 7, 8]


def test_in_place_outline_is_redrawn_only_at_epoch_end() -> None:
    story = story_of(6, HistoryMode.STRIP, 1, layout=LayoutMode.IN_PLACE)
    story.say("Question 6 with a fold", "Done.", FOLDING)
    first = story.ask().messages[0]
    story.say("Question 7 without one", "Done.").say("Question 8 without one", "Done.")
    assert story.ask().messages[0] == first
    assert "Question 4" in first.text


def test_in_the_library_layout_the_window_moves_with_every_turn() -> None:
    story = story_of(6, HistoryMode.WINDOW, 2)
    assert asked(story) == [4, 5]
    story.say("Question 6 as any", "Done.")
    assert asked(story) == [5, 6]


def test_other_mode_applies_from_next_epoch() -> None:
    story = story_of(6, HistoryMode.WINDOW, 2, layout=LayoutMode.IN_PLACE).say("Question 6 folds", "Done.", FOLDING)
    story.terms = replace(story.terms, history=HistoryMode.FULL, history_turns=None)
    assert asked(story) == [4, 5, 6]
    story.say("Question 7 folds", "Done.", FOLDING)
    assert asked(story) == list(range(8))


def test_full_mode_removes_placeholder() -> None:
    story = story_of(6, HistoryMode.STRIP, layout=LayoutMode.IN_PLACE).say("Question 6 folds", "Done.", FOLDING)
    hides = story.state.history
    assert hides.placeholder is not None
    story.terms = replace(story.terms, history=HistoryMode.FULL, history_turns=None)
    shown = story.say("Question 7 folds", "Done.", FOLDING).state.history
    assert shown.placeholder is None
    assert shown.hidden_turns == 0


def test_removed_turn_does_not_reveal_older_one() -> None:
    for layout in LayoutMode:
        story = story_of(
            20, HistoryMode.WINDOW, 4, layout=layout, chain=CompactionConfig(steps=(CompactionStepName.EXPENDABLE,))
        )
        story.say("Question 20 folds", "Done.", FOLDING)
        shown = asked(story)
        receipt = story.compact(goal=1)
        assert removed(receipt, "expendable")
        assert set(asked(story)) < set(shown)


def test_outline_remains_first_after_compaction() -> None:
    for layout in LayoutMode:
        story = story_of(
            20, HistoryMode.STRIP, 4, layout=layout, chain=CompactionConfig(steps=(CompactionStepName.EXPENDABLE,))
        )
        story.say("Question 20 folds", "Done.", FOLDING)
        story.compact(goal=story.draft().tokens - 60)
        (block,) = [s for s in story.ask().layer(LayerId.L4).segments if s.form is ArtifactForm.SUMMARY]
        assert "turns before; a record of what was said" in block.text


def test_inlined_note_is_referenced_and_not_in_library() -> None:
    drawn, other = note("drawn.md", "Write plainly."), note("other.md", "B")
    system = SystemParts(instructions="Write plainly.", inlined=(drawn,), typed_instructions="{[[drawn]]}")
    for layout in LayoutMode:
        story = Story(terms=TurnSettings(layout=layout)).say(
            "one", "yes", replace(attaching(drawn, other), system=system)
        )
        again = replace(attaching(drawn, other), fold=True)
        assert [segment.form for segment in story.ask(again).segments(LayerId.L3)] == [ArtifactForm.REFERENCE] * 2
        assert [segment.id for segment in story.ask(again).segments(LayerId.L2)] == ["other.md"]
        assert story.sent(again).count("Write plainly.") == 1


def test_only_shown_turns_are_removed() -> None:
    story = story_of(20, HistoryMode.WINDOW, 4)
    receipt = story.plan(goal=0).receipt
    assert set(removed(receipt, "expendable")) <= set(story.path[-8:-2])


def test_window_mode_is_compacted_to_fit() -> None:
    story = story_of(20, HistoryMode.WINDOW, 4)
    story.rules = replace(story.rules, budget=TokenBudget(window=story.tokens(), reserve=0))
    fitted = story.fit()
    assert fitted.receipt is not None
    assert fitted.envelope.tokens.total <= 0.95 * story.rules.budget.limit


@pytest.mark.layout("library")
@pytest.mark.moves_prefix(reason="in the library layout the window moves with every turn")
def test_modes_are_settings_of_a_conversation(converse: type[Conversation]) -> None:
    chat = converse(history="window", history_turns=2)
    for number in range(5):
        chat.ask(f"Question {number}?")
        chat.reply("Because.")
    turn = chat.ask("And now?")
    typed = [s.text for s in turn.envelope.layer(LayerId.L4).segments if s.kind == "user"]
    assert typed == ["Question 3?", "Question 4?"]


def test_invalid_modes_are_refused() -> None:
    for wrong in ({"history": "half"}, {"history": "window", "history_turns": 0}):
        with pytest.raises(SettingError, match="history"):
            Conversation(**wrong)


@pytest.fixture
def story() -> Story:
    story = Story(replace(make_rules(), plan_layout=Placing()))
    story.state = replace(story.state, system=SystemParts(base="Be terse."))
    for number, turn in enumerate(TURNS):
        story.say(f"q{number}", f"a{number}", turn)
    return story


def place_by_hand(story: Story, keep: int | None, **forms: ArtifactForm) -> None:
    assert isinstance(story.rules.plan_layout, Placing)
    named = {f"{name}.md": form for name, form in forms.items()}
    story.rules.plan_layout.made = LayoutPlan(keep_messages=keep, forms=named, why="by hand")


def fold_at(story: Story, keep: int, **forms: ArtifactForm) -> Envelope:
    place_by_hand(story, keep, **forms)
    return story.ask()


def places(envelope: Envelope) -> list[tuple[str, ArtifactForm, str | None]]:
    return [(one.id.partition("#")[0], one.form, one.place) for one in envelope.segments(LayerId.L2)]


def test_fold_keeps_prefix_and_moves_later_attachments_to_question(story: Story) -> None:
    before = story.state.last_prompt
    assert before is not None
    envelope = fold_at(story, 3)
    assert is_prefix_of(before.messages[:3], envelope.messages)
    assert [message.text for message in envelope.messages[3:7]] == [
        envelope.segments(LayerId.L4)[2].text + "[User query]:\nq1",
        envelope.segments(LayerId.L4)[4].text + "a1",
        "q2",
        "a2",
    ]
    assert places(envelope) == [
        ("a.md", ArtifactForm.FULL, "message:1"),
        ("b.md", ArtifactForm.UPDATE, "message:7"),
        ("c.md", ArtifactForm.FULL, "message:7"),
        ("s.md", ArtifactForm.FULL, "message:7"),
    ]
    asked = envelope.messages[7].text
    assert [asked.index(text) for text in ("B two", "C one", "S one", "[User query]:\nAnd now?")] == sorted(
        asked.index(text) for text in ("B two", "C one", "S one", "[User query]:\nAnd now?")
    )
    assert "This text replaces the copy above." in asked
    assert envelope.tokens.by_layer[LayerId.L3] == 0
    assert envelope.layers[2].pieces == ()


def test_fold_is_cause_with_first_moved_segment(story: Story) -> None:
    before = story.state.last_prompt
    envelope = fold_at(story, 3)
    movement = detect_prefix_change(before, envelope.prompt)
    assert (movement.cause, movement.segment) == (PrefixChangeCause.EPOCH_FOLDED, envelope.segments(LayerId.L4)[2].id)
    assert envelope.prompt.layout_plan.why == "by hand"


@pytest.mark.parametrize(("keep", "kept"), [(1, 1), (2, 3), (3, 3), (4, 7), (6, 7), (7, 7), (8, 9), (99, 9)])
def test_turn_begun_before_cut_stays_whole(story: Story, keep: int, kept: int) -> None:
    before = story.state.last_prompt
    assert before is not None
    sent = [*before.messages, story.state.history.turns[-1].reply.message]
    envelope = fold_at(story, keep)
    assert is_prefix_of(sent[:kept], envelope.messages)
    assert not is_prefix_of(sent[: kept + 1], envelope.messages) or kept == len(sent)
    assert envelope.epoch == before.epoch + 1


def test_other_tokenizer_folds_and_recounts_all(story: Story) -> None:
    thirds = replace(QUARTERS, name="thirds", count=lambda text: -(-len(text) // 3))
    story.rules = replace(story.rules, tokenizer=thirds)
    envelope = fold_at(story, 3)
    assert {place for _, _, place in places(envelope)} == {"system"}
    assert all(segment.tokens == thirds.count(segment.text) for segment in envelope.segments(LayerId.L4))


def test_next_turn_extends_partial_fold_and_references_moved_text(story: Story) -> None:
    place_by_hand(story, 3)
    story.say("q3", "a3", attaching(note("c.md", "C one")))
    folded = story.state.last_prompt
    assert folded is not None
    assert [(one.id, one.form) for one in folded.segments(LayerId.L3)] == [("c.md", ArtifactForm.REFERENCE)]
    place_by_hand(story, None)
    later = story.ask(attaching(note("b.md", "B two"), note("a.md", "A two")))
    assert is_prefix_of(folded.messages, later.messages)
    assert {one.id: one.form for one in later.segments(LayerId.L3)} == {
        "b.md": ArtifactForm.REFERENCE,
        "a.md": ArtifactForm.UPDATE,
    }


def test_second_cut_and_full_fold_continue_from_partial_fold(story: Story) -> None:
    place_by_hand(story, 3)
    story.say("q3", "a3")
    again = fold_at(story, 5)
    assert [place for _, _, place in places(again)] == ["message:1", *["message:9"] * 3]
    story.say("q4", "a4")
    assert isinstance(story.rules.plan_layout, Placing)
    story.rules.plan_layout.made = None
    whole = story.ask(FOLDING)
    assert [(form, place) for _, form, place in places(whole)] == [(ArtifactForm.FULL, "system")] * 4
    assert [message.text for message in whole.messages[5:]] == ["q2", "a2", "q3", "a3", "q4", "a4", "And now?"]


def test_planned_form_applies_to_moved_entries_only(story: Story) -> None:
    story.say("q3", "a3", attaching(note("long.md", "# Long\n" + "words " * 2_000)))
    envelope = fold_at(story, 7, a=ArtifactForm.HANDLE, long=ArtifactForm.HANDLE)
    forms = {name: form for name, form, _ in places(envelope)}
    assert (forms["a.md"], forms["long.md"]) == (ArtifactForm.FULL, ArtifactForm.HANDLE)
    assert "words words" not in envelope.messages[-1].text


def test_compaction_after_partial_fold_includes_everything(story: Story) -> None:
    place_by_hand(story, 3)
    story.say("q3", "a3")
    assert isinstance(story.rules.plan_layout, Placing)
    story.rules.plan_layout.made = None
    story.compact(goal=0)
    assert {place for _, _, place in places(story.ask())} == {"system"}


def test_cut_after_all_attachments_moves_nothing(story: Story) -> None:
    envelope = fold_at(story, 99)
    assert envelope.messages[-1].text == "And now?"
    assert envelope.prompt.history == story.state.history
