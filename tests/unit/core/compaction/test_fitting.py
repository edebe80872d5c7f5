"""Fitting a turn: nothing happens up to the trigger, the chain runs above it, and nothing above hard is sent."""

import pytest
from tests.unit.core.compaction.stories import (
    NOW,
    QUARTERS,
    Fit,
    Story,
    attaching,
    chat,
    make_rules,
    names,
    note,
    result,
    selection,
)
from tests.unit.pictures import png

from lamella.core.artifacts.kinds import make_image_artifact, make_image_data, make_tool_definition
from lamella.core.artifacts.model import ArtifactId, ArtifactSource, AttachmentPolicy
from lamella.core.budget import TokenBudget
from lamella.core.compaction.fitting import check_fits, fit_turn
from lamella.core.compaction.summaries import SummaryResult
from lamella.core.log.turn import HistoryMode, SystemParts, Turn, TurnSettings
from lamella.core.messages import ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.advance import advance_by_turn, get_pending_prompt
from lamella.core.prompt.envelope import make_envelope
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace
from lamella.errors import ContextBudgetExceededError


def fit(story: Story, turn: Turn = NOW) -> Fit:
    return story.fit(turn)


def window(story: Story, share: float) -> Story:
    """The same story in a window of which its next request takes about this share."""
    story.rules = replace(story.rules, budget=TokenBudget(window=round(story.tokens() / share), reserve=0))
    return story


def test_request_is_compacted_one_token_above_trigger() -> None:
    story = chat(5, words=10, rules=make_rules(budget=TokenBudget(window=1_000, reserve=0)))
    filler = Turn(text="x" * 4 * (850 - story.tokens(Turn(text=""))))
    at = fit(story, filler)
    assert at.envelope.tokens.total == 850
    assert at.receipt is None
    above = fit(story, replace(filler, text=filler.text + "x"))
    assert above.receipt is not None
    assert above.receipt.tokens_before == 851


def test_over_the_trigger_the_chain_runs_to_the_target() -> None:
    story = window(chat(40), 0.86)
    fitted = fit(story)
    assert fitted.receipt is not None
    assert fitted.receipt.automatic
    limit = story.rules.budget.limit
    assert fitted.receipt.target == int(0.40 * limit)
    assert fitted.envelope.tokens.total == fitted.receipt.tokens_after <= 0.40 * limit
    # No more than needed: one turn fewer and it would be above.
    assert fitted.receipt.tokens_after > 0.40 * limit - 2 * 110


def test_next_compaction_waits_for_freed_tokens_to_refill() -> None:
    story = window(chat(40), 0.86)
    story.rules = replace(story.rules, budget=replace(story.rules.budget, target=0.84, trigger=0.85, warn=0.60))
    story.state = fit(story).state
    runs: list[float] = []
    for number in range(40):
        story.say(f"Question {number}?", "because " * 12)
        fitted = fit(story)
        if fitted.receipt is not None:
            runs.append(fitted.receipt.tokens_before / story.rules.budget.limit)
            story.state = fitted.state
    assert runs
    assert all(share > 0.85 for share in runs)


def test_chain_rests_after_compaction_that_missed_target() -> None:
    # A pinned note keeps the request above the trigger: taking out a turn each time would move the prefix for nothing.
    pinned = note("pinned.md", "kept " * 4_000, policy=AttachmentPolicy.PIN)
    story = Story().say("Read.", "Yes.", attaching(pinned))
    for number in range(4):
        story.say(f"Question {number}?", "because " * 20)
    story = window(story, 0.90)
    first = fit(story)
    assert first.receipt is not None
    assert first.receipt.tokens_after > 0.85 * story.rules.budget.limit
    story.state = first.state
    story.say("One more?", "Yes.")
    assert fit(story).receipt is None


def test_over_the_hard_threshold_the_chain_runs_again_at_once() -> None:
    pinned = note("pinned.md", "kept " * 4_000, policy=AttachmentPolicy.PIN)
    story = Story().say("Read.", "Yes.", attaching(pinned))
    for number in range(4):
        story.say(f"Question {number}?", "because " * 20)
    story = window(story, 0.945)
    story.state = fit(story).state
    for number in range(4):
        story.say(f"More {number}?", "because " * 40)
    assert story.tokens() > 0.95 * story.rules.budget.limit
    fitted = fit(story)
    assert names(fitted.receipt) == ["replies", "digest", "expendable"]
    assert fitted.envelope.tokens.total <= 0.95 * story.rules.budget.limit


def test_request_is_refused_one_token_above_hard_threshold() -> None:
    turn = Turn(text="x" * 4 * 950)
    story = Story(make_rules(budget=TokenBudget(window=1_000, reserve=0)))
    assert fit(story, turn).envelope.tokens.total == 950
    with pytest.raises(ContextBudgetExceededError) as error:
        fit(story, replace(turn, text=turn.text + "x"))
    assert (error.value.needed, error.value.hard, error.value.limit) == (951, 950, 1_000)


def test_refused_request_names_items_with_tokens() -> None:
    story = Story(make_rules(budget=TokenBudget(window=2_000, reserve=0)))
    earlier = replace(
        attaching(note("pinned.md", "kept " * 200, policy=AttachmentPolicy.PIN), selection("cited.md", "cited " * 200)),
        system=SystemParts(base="Be brief. " * 40),
        tools=(make_tool_definition("search", description="finds " * 40, parameters={}),),
    )
    story.say("Read all this.", "I have read it. " * 40, earlier)
    new = note("new.md", "new " * 1_000, policy=AttachmentPolicy.PIN)
    with pytest.raises(ContextBudgetExceededError) as error:
        fit(story, replace(attaching(new, result("x", "found " * 100)), text="now " * 100))
    protected = "\n".join(error.value.protected)
    for name in (
        "the system prompt's base (100 tokens)",
        "tool definitions (",
        "pinned.md (",
        "cited.md#selection:",
        "new.md, attached now (",
        "tool:search:",
        "what was typed now (100 tokens)",
    ):
        assert name in protected
    assert error.value.protected[0].startswith("new.md, attached now (1,0")
    # What was said before never keeps a question from being asked.
    assert "the last exchange (164 tokens)" not in protected
    assert error.value.code == "budget_exceeded"
    assert "Detach, drop or unpin one" in (error.value.hint or "")


def test_error_names_earlier_images_and_message_overhead() -> None:
    picture = make_image_artifact(
        make_image_data(png(40, 20), media_type="image/png", width=40, height=20), title="plan.png"
    )
    story = Story(make_rules(budget=TokenBudget(window=2_000, reserve=0)))
    story.rules = replace(story.rules, tokenizer=replace(QUARTERS, tokens_per_message=3, tokens_per_request=2))
    story.say("What is this?", "A plan.", attaching(picture))
    with pytest.raises(ContextBudgetExceededError) as error:
        check_fits(story.ask(Turn(text="x" * 4 * 1_200)), story.rules.budget)
    assert f"{picture.id}, in an earlier message (800 tokens)" in error.value.protected
    assert "what marks off messages (11 tokens)" in error.value.protected


def test_error_names_placeholders_of_earlier_turns() -> None:
    story = chat(30)
    story.compact(goal=0)
    story.rules = replace(story.rules, budget=TokenBudget(window=1_000, reserve=0))
    with pytest.raises(ContextBudgetExceededError) as error:
        fit(story, Turn(text="x" * 4_000))
    assert any(name.startswith("what stands in for earlier turns (") for name in error.value.protected)
    assert not any(name.startswith("standing wishes") for name in error.value.protected)


def test_refused_turn_leaves_state_unchanged() -> None:
    story = window(chat(6), 0.5)
    before = story.state
    with pytest.raises(ContextBudgetExceededError):
        fit(story, Turn(text="x" * 40_000))
    assert story.state is before
    assert fit(story).receipt is None


def test_fitting_turn_is_open_and_unchanged() -> None:
    story = window(chat(6), 0.5)
    asked = story.bind(NOW)
    turn, opened, needs = fit_turn(story.state, asked, story.rules, message_ids=story.path)
    assert (turn, needs) == (asked, ())
    assert opened == story.open()


def test_compacted_turn_has_receipt_and_is_open_after_it() -> None:
    story = window(chat(40), 0.86)
    turn, opened, needs = fit_turn(story.state, story.bind(NOW), story.rules, message_ids=story.path)
    (receipt,) = turn.receipts
    assert needs == ()
    assert opened == advance_by_turn(story.state, turn, story.rules.plan_layout, tokenizer=story.rules.tokenizer)
    assert get_pending_prompt(opened).total == receipt.tokens_after
    assert opened.last_compacted_total == receipt.tokens_after


def test_oversized_turn_is_fitted_then_refused_on_check() -> None:
    story = Story(make_rules(budget=TokenBudget(window=1_000, reserve=0)))
    _, opened, _ = fit_turn(story.state, story.bind(Turn(text="x" * 4 * 951)), story.rules)
    envelope = make_envelope(get_pending_prompt(opened), story.rules.budget)
    with pytest.raises(ContextBudgetExceededError):
        check_fits(envelope, story.rules.budget)
    check_fits(envelope, TokenBudget(window=1_100, reserve=0))


def test_strip_mode_requests_summary_first_unless_sent() -> None:
    story = Story(terms=TurnSettings(history=HistoryMode.STRIP, history_turns=2))
    for number in range(12):
        story.say(f"Question {number}?", f"Answer {number}. " + "because " * 30)
    assert story.fit().needs == ()
    (request,) = story.fit(summaries={}).needs
    fitted = story.fit(summaries={request.key: SummaryResult(text="They spoke of reasons.")})
    assert fitted.needs == ()
    assert "They spoke of reasons." in fitted.envelope.messages[0].text
    call = ToolCall(id="c", name="search", arguments="{}")
    done = ToolRound(text="", calls=(call,), outputs=(ToolOutput(call="c", output="found"),))
    assert story.fit(replace(NOW, rounds=(done,)), summaries={}).needs == ()


def test_turn_settings_name_the_runner_that_answers() -> None:
    settings = make_rules()
    turn_settings = TurnSettings(linger=7)
    assert settings.turn_settings_for_runner(turn_settings, None) is turn_settings
    assert settings.turn_settings_for_runner(turn_settings, "agent") == replace(turn_settings, runner="agent")


def test_folders_and_tags_are_named_by_size() -> None:
    story = Story(make_rules(budget=TokenBudget(window=1_000, reserve=0)))
    brought = [
        replace(note(name, "words " * words), source=ArtifactSource(path=name, via=via))
        for name, words, via in (
            ("a.md", 100, "tag:a:b"),
            ("b.md", 100, "tag:a:b"),
            ("c.md", 300, "folder:c"),
            ("d.md", 300, "folder:c"),
            ("e.md", 900, "folder:e"),
        )
    ]
    turn = attaching(*brought)
    envelope = make_envelope(story.prompt(turn), story.rules.budget)
    weights = {segment.id: segment.tokens for segment in envelope.segments(LayerId.L3)}
    with pytest.raises(ContextBudgetExceededError) as error:
        check_fits(
            envelope, story.rules.budget, attached=(*turn.attached, replace(brought[0], id=ArtifactId("nowhere.md")))
        )
    assert error.value.expanded == (
        f"folder c (2 notes, {weights['c.md'] + weights['d.md']:,} tokens)",
        f"tag a:b (3 notes, {weights['a.md'] + weights['b.md']:,} tokens)",
    )
