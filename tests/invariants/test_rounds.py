"""Tool rounds: after any calls, folds and compactions, every invariant is satisfied and nothing is lost."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.compaction.stories import QUARTERS, Story, attaching, note, result

from lamella.conversation.past_turns import BranchHistory
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.turn import ArtifactForm, HistoryMode, LayoutMode, Turn, TurnSettings
from lamella.core.messages import Role, ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.advance import (
    add_reply_to_waiting_turn,
    advance_by_turn,
    get_pending_prompt,
    replace_tool_rounds_of_waiting_turn,
)
from lamella.core.prompt.envelope import make_envelope
from lamella.core.prompt.invariants import check_invariants
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.prefix_change import is_prefix_of
from lamella.core.prompt.replay import replay_turns
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import escape_line
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")
OUTPUTS = st.sampled_from(["", "found", "a long result " * 40, "</tool_call>\n<tool_result>"])
NAMES = st.sampled_from(["search", "clock", "a\nb"])


@st.composite
def rounds(draw: st.DrawFn) -> ToolRound:
    calls = tuple(
        ToolCall(id=f"c{number}", name=draw(NAMES), arguments=draw(st.sampled_from(["{}", '{"q":1}'])))
        for number in range(draw(st.integers(1, 3)))
    )
    outputs = tuple(ToolOutput(call=call.id, output=draw(OUTPUTS), failed=draw(st.booleans())) for call in calls)
    order = draw(st.permutations(outputs))
    return ToolRound(text=draw(st.sampled_from(["", "Let me look."])), calls=calls, outputs=tuple(order))


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    given_now = [note(name, f"text of {name}") for name in draw(st.sets(st.sampled_from(["a.md", "b.md"])))]
    results = [result(name, f"{name} found") for name in draw(st.sets(st.sampled_from(["x", "y"])))]
    return replace(
        attaching(*given_now, *results),
        text=draw(st.sampled_from(["why?", "and now?", ""])),
        rounds=tuple(draw(st.lists(rounds(), max_size=3))),
        fold=draw(st.booleans()),
        reply=draw(st.sampled_from(["yes", "because " * 30, ""])),
    )


terms = st.builds(
    TurnSettings,
    layout=st.sampled_from(LayoutMode),
    history=st.sampled_from(HistoryMode),
    history_turns=st.none() | st.integers(1, 2),
)
talks = st.lists(turns(), min_size=1, max_size=6)


def check(story: Story, opened: PromptState) -> None:
    """The laws, and that segments stand where they say and weigh what they say."""
    envelope = make_envelope(get_pending_prompt(opened), story.rules.budget)
    check_invariants(envelope, before=story.state.last_prompt)
    assert envelope.total == sum(message.tokens for message in envelope.messages)
    for segment in (one for layer in (LayerId.L3, LayerId.L4) for one in envelope.segments(layer)):
        if segment.place is None:
            # Listed and not stated: where prices decide, what is above is not referred to one by one.
            assert (segment.form, segment.text, segment.tokens) == (ArtifactForm.REFERENCE, "", 0)
            assert story.terms.layout is LayoutMode.AUTO
            continue
        message = envelope.messages[int(segment.place.partition(":")[2])]
        assert segment.kind == "call" or segment.text in message.text
        assert segment.kind != "call" or message.calls


@TRIED
@given(terms, talks)
def test_requests_of_tool_rounds_extend_each_other_and_keep_invariants(
    asked_under: TurnSettings, talk: list[Turn]
) -> None:
    story = Story(terms=asked_under)
    for turn in talk:
        opened = story.open(replace(turn, rounds=(), reply=None))
        check(story, opened)
        for count in range(1, len(turn.rounds) + 1):
            further = replace_tool_rounds_of_waiting_turn(opened, turn.rounds[:count])
            assert is_prefix_of(get_pending_prompt(opened).messages, get_pending_prompt(further).messages)
            check(story, further)
            opened = further
        story.state = add_reply_to_waiting_turn(opened, turn.reply or "")


@TRIED
@given(terms, talks)
def test_conversation_with_rounds_replays_to_same_state(asked_under: TurnSettings, talk: list[Turn]) -> None:
    start = Story(terms=asked_under).state
    story = Story(terms=asked_under)
    for turn in talk:
        opened = replace_tool_rounds_of_waiting_turn(story.open(replace(turn, rounds=(), reply=None)), turn.rounds)
        story.state = add_reply_to_waiting_turn(opened, turn.reply or "")
    resumed = BranchHistory([story.bind(turn) for turn in talk]).compute_state(start, choose_layout, tokenizer=QUARTERS)
    assert resumed == story.state
    assert get_pending_prompt(story.open()).messages == _next(resumed, story)


@TRIED
@given(terms, talks, st.integers(0, 400))
def test_calls_and_results_stay_together_after_any_compaction(
    asked_under: TurnSettings, talk: list[Turn], goal: int
) -> None:
    story = Story(terms=asked_under)
    for turn in talk:
        story.state = story.open(turn)
        receipt = story.plan(goal=goal).receipt
        if receipt is not None:
            story.apply(receipt)
            assert story.tokens() == receipt.tokens_after
        check(story, story.open())


@TRIED
@given(terms, talks)
def test_calls_shown_after_epoch_can_be_recalled(asked_under: TurnSettings, talk: list[Turn]) -> None:
    story = Story(terms=asked_under)
    results: list[str] = []
    for turn in talk:
        opened = story.open(replace(turn, reply=None))
        results += [message.id for message in get_pending_prompt(opened).rounds if message.message.role is Role.TOOL]
        story.state = add_reply_to_waiting_turn(opened, turn.reply or "")
    prompt = get_pending_prompt(story.open(Turn(text="now", fold=True)))
    if asked_under.layout is LayoutMode.AUTO:
        # Prices decide over what is attached: rounds stay as they were sent.
        past = [message.id for exchange in prompt.history.turns for message in exchange.rounds]
        assert [name for name in past if name in results] == results
        return
    assert not any(message.calls or message.call_id for message in prompt.messages)
    lines = [segment for exchange in prompt.history.turns for segment in exchange.call_lines]
    assert [line.id for line in lines] == results
    shown = [line for exchange in prompt.history.shown for line in exchange.call_lines]
    sent = "".join(message.text for message in prompt.messages)
    assert all(escape_line(line.id) in line.text and line.text in sent for line in shown)


def _next(state: PromptState, story: Story) -> object:
    other = Story(story.rules, story.terms)
    other.state = state
    return get_pending_prompt(other.open()).messages


quiet = st.builds(
    Turn,
    text=st.sampled_from(["why?", "and now?", ""]),
    reply=st.none() | st.sampled_from(["yes", ""]),
    model=st.sampled_from([None, None, None, "one", "two"]),
)


@given(st.lists(turns() | quiet, min_size=1, max_size=12), terms)
@settings(TRIED)
def test_replaying_turns_together_equals_one_by_one(asked: list[Turn], terms: TurnSettings) -> None:
    given_terms = [replace(turn, turn_settings=terms) for turn in asked]
    state = PromptState(conversation="demo")
    for turn in given_terms:
        state = advance_by_turn(state, turn, choose_layout, tokenizer=QUARTERS)
    together = replay_turns(PromptState(conversation="demo"), given_terms, choose_layout, tokenizer=QUARTERS)
    assert replace(together, last_prompt=None) == replace(state, last_prompt=None)
    assert together.last_prompt is not None
    assert state.last_prompt is not None
    assert together.last_prompt.messages == state.last_prompt.messages
