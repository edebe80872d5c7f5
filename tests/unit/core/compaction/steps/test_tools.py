"""Old tool results shrink to the call that recalls them, and stay with their question."""

import json

from tests.unit.core.compaction.stories import NOW, Story, attaching, make_rules, names, removed, result

from lamella.core.compaction.draft import apply_step_to_draft
from lamella.core.compaction.rules import CompactionConfig
from lamella.core.compaction.steps import stub_tool_results
from lamella.core.log.receipts import CompactionStep, CompactionStepName
from lamella.core.log.turn import ArtifactForm, LayoutMode, TurnSettings
from lamella.core.messages import ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

OUTPUT = "found it here " * 300
ONLY = CompactionConfig(steps=(CompactionStepName.TOOL_RESULTS,))


def searched(*queries: str, chain: CompactionConfig = ONLY, layout: LayoutMode = LayoutMode.IN_PLACE) -> Story:
    """A turn with a tool result for each query, and one turn after them."""
    story = Story(make_rules(chain), TurnSettings(layout=layout))
    for query in queries:
        story.say(f"Find {query}.", "Found.", attaching(result(query, f"{query}: {OUTPUT}")))
    return story.say("Thanks?", "Yes.")


def test_tool_stub_keeps_call_with_arguments_and_id() -> None:
    story = searched("alpha")
    receipt = story.compact()
    (name,) = removed(receipt, "tool_results")
    sent = story.sent()
    assert OUTPUT not in sent
    assert f"<tool_result>search({json.dumps({'q': 'alpha'}, separators=(',', ':'))})\n" in sent
    assert f"Make the call again, or recall {name}.</left_out>" in sent


def test_tool_stub_is_in_message_of_its_question() -> None:
    story = searched("alpha")
    story.compact()
    message = next(message for message in story.ask().messages if "<tool_result>" in message.text)
    assert message.text.endswith("Find alpha.")
    (segment,) = [s for s in story.ask().layer(LayerId.L4).segments if s.kind == "tool"]
    assert segment.form is ArtifactForm.HANDLE


def test_oldest_result_is_cut_first_and_only_as_needed() -> None:
    story = searched("alpha", "beta")
    first = removed(story.plan(goal=story.tokens() - 100).receipt, "tool_results")
    both = removed(story.plan(goal=0).receipt, "tool_results")
    assert len(first) == 1
    assert first == both[:1]
    assert len(both) == 2


def test_results_of_the_last_exchange_stay_whole() -> None:
    story = Story(make_rules(ONLY))
    story.say("Find alpha.", "Found.", attaching(result("alpha", OUTPUT)))
    assert story.plan().receipt is None


def test_results_of_current_question_stay_whole() -> None:
    story = searched("alpha")
    turn = attaching(result("alpha", f"alpha: {OUTPUT}"))
    assert not removed(story.plan(turn=turn).receipt, "tool_results")


def test_reattached_result_is_restored_and_in_l4_once() -> None:
    story = searched("alpha")
    story.compact()
    again = attaching(result("alpha", f"alpha: {OUTPUT}"))
    assert OUTPUT in story.sent(again)
    story.say("Once more.", "Found.", again).say("Thanks?", "Yes.")
    assert story.sent().count(OUTPUT) == 1
    (segment,) = [s for s in story.ask().layer(LayerId.L4).segments if s.kind == "tool"]
    assert segment.form is ArtifactForm.FULL
    story.compact()
    (segment,) = [s for s in story.ask().layer(LayerId.L4).segments if s.kind == "tool"]
    assert segment.form is ArtifactForm.HANDLE


def test_result_removed_with_turn_is_not_referenced() -> None:
    story = searched("alpha", chain=CompactionConfig(steps=(CompactionStepName.EXPENDABLE,)))
    story.say("More?", "Yes.")
    story.compact()
    assert "<tool_result>" not in story.sent()
    again = attaching(result("alpha", f"alpha: {OUTPUT}"))
    assert OUTPUT in story.sent(again)
    assert [s.form for s in story.ask(again).layer(LayerId.L3).segments] == [ArtifactForm.FULL]


def test_result_of_removed_turn_is_sent_whole_if_attached() -> None:
    story = searched("alpha")
    again = attaching(result("alpha", f"alpha: {OUTPUT}"))
    before = story.draft(turn=again)
    after = apply_step_to_draft(
        before, CompactionStep(name=CompactionStepName.EXPENDABLE, removed=tuple(story.path[:2]))
    )
    story.state = after.state
    envelope = story.ask(again)
    assert [s.form for s in envelope.layer(LayerId.L3).segments] == [ArtifactForm.FULL]
    assert after.tokens == envelope.tokens.total


def test_cut_result_leaves_with_its_turn() -> None:
    story = searched(
        "alpha", "beta", chain=CompactionConfig(steps=(CompactionStepName.TOOL_RESULTS, CompactionStepName.EXPENDABLE))
    )
    receipt = story.compact()
    assert names(receipt) == ["tool_results", "expendable"]
    assert "<tool_result>" not in story.sent()


def test_library_layout_has_no_results_to_cut() -> None:
    assert searched("alpha", layout=LayoutMode.LIBRARY).plan().receipt is None


def test_kept_results_keep_their_position() -> None:
    story = searched("alpha", "beta")
    before = [message.text for message in story.ask().messages]
    story.compact(goal=story.tokens() - 100)
    after = [message.text for message in story.ask().messages]
    assert before[1:] == after[1:]
    assert before[0] != after[0]


def called(*outputs: str) -> Story:
    """A turn with a round of tools for each output, and one turn after them."""
    story = Story(make_rules(ONLY))
    for number, output in enumerate(outputs):
        call = ToolCall(id=f"c{number}", name="search", arguments="{}")
        done = ToolRound(text="", calls=(call,), outputs=(ToolOutput(call=call.id, output=output),))
        story.say(f"Find {number}.", "Found.", replace(NOW, rounds=(done,)))
    return story.say("Thanks?", "Yes.")


def test_results_of_calls_shrink_as_well_and_their_messages_stay_with_their_calls() -> None:
    story = called(OUTPUT, OUTPUT)
    whole = story.ask()
    receipt = story.compact(goal=story.tokens() - 100)
    (name,) = removed(receipt, "tool_results")
    sent = story.ask()
    assert [message.role for message in sent.messages] == [message.role for message in whole.messages]
    assert [message.call_id for message in sent.messages] == [message.call_id for message in whole.messages]
    stubbed = [segment for segment in sent.layer(LayerId.L4).segments if segment.form is ArtifactForm.HANDLE]
    assert [segment.id for segment in stubbed] == [name]
    assert f"recall it by its id {name}" in sent.messages[2].text
    assert sent.messages[6].text == OUTPUT


def test_oldest_results_are_listed_first_whether_called_or_given() -> None:
    story = called(OUTPUT).say("Find more.", "Found.", attaching(result("more", OUTPUT))).say("Thanks?", "Yes.")
    step = stub_tool_results(story.draft(goal=0))
    assert step is not None
    first, second = step.removed
    ids = [segment.id for segment in story.ask().layer(LayerId.L4).segments if segment.kind == "tool"]
    assert [first, second] == ids
    assert stub_tool_results(Story(make_rules(ONLY)).draft()) is None


def test_result_of_a_call_is_stubbed_once() -> None:
    story = called(OUTPUT)
    story.compact()
    assert stub_tool_results(story.draft(goal=0)) is None


def test_running_turn_keeps_last_two_rounds() -> None:
    def under_way(rounds: int) -> list[str]:
        calls = [ToolCall(id=f"c{number}", name="search", arguments="{}") for number in range(rounds)]
        made = [ToolRound(text="", calls=(one,), outputs=(ToolOutput(call=one.id, output=OUTPUT),)) for one in calls]
        turn = replace(NOW, rounds=tuple(made))
        step = stub_tool_results(Story(make_rules(ONLY)).draft(turn=turn))
        results = [s.id for s in Story().ask(turn).layer(LayerId.L3).segments if s.kind == "tool"]
        assert len(results) == rounds
        assert step is None or list(step.removed) == results[: len(step.removed)]
        return [] if step is None else list(step.removed)

    assert [len(under_way(rounds)) for rounds in (1, 2, 3, 5)] == [0, 0, 1, 3]
