"""Tool rounds: calls and results as messages of their turn, and the line that each call leaves."""

import pytest
from tests.unit.core.compaction.stories import QUARTERS

from lamella.core.log.turn import ArtifactForm
from lamella.core.messages import ProviderReply, Role, ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.layers.model import SegmentKind
from lamella.core.prompt.layers.tool_rounds import (
    TOOL_KIND,
    build_round_messages,
    group_rounds,
    make_call_lines,
    partition_rounds,
    render_call,
    stub_result_message,
)
from lamella.core.text.content import hash_text
from lamella.core.values import replace

SEARCH = ToolCall(id="c1", name="search", arguments='{"q":"tides"}')
CLOCK = ToolCall(id="c2", name="clock", arguments="{}")
CARRIED = ProviderReply(format="anthropic", json="[]")
FIRST = ToolRound(
    text="Let me look.",
    calls=(SEARCH, CLOCK),
    outputs=(ToolOutput(call="c1", output="Two notes."), ToolOutput(call="c2", output="no clock", failed=True)),
    provider_reply=CARRIED,
)
SECOND = ToolRound(text="", calls=(SEARCH,), outputs=(ToolOutput(call="c1", output="Two notes."),))


def test_round_is_reply_with_calls_and_result_messages() -> None:
    asked, found, failed = (message.message for message in build_round_messages("q", (FIRST,), QUARTERS))
    assert (asked.role, asked.text, asked.calls, asked.provider_reply) == (
        Role.ASSISTANT,
        "Let me look.",
        (SEARCH, CLOCK),
        CARRIED,
    )
    assert (found.role, found.call_id, found.text, found.failed) == (Role.TOOL, "c1", "Two notes.", False)
    assert (failed.role, failed.call_id, failed.text, failed.failed) == (Role.TOOL, "c2", "no clock", True)


def test_rounds_are_consecutive_messages() -> None:
    said = build_round_messages("q", (FIRST, SECOND), QUARTERS)
    assert [one.message.role.value for one in said] == ["assistant", "tool", "tool", "assistant", "tool"]
    assert said[:3] == build_round_messages("q", (FIRST,), QUARTERS)
    assert build_round_messages("q", (), QUARTERS) == ()


def test_call_is_counted_and_shown() -> None:
    asked = build_round_messages("q", (FIRST,), QUARTERS)[0]
    shown = 'Let me look.\nsearch({"q":"tides"})\nclock({})\n'
    assert asked.segment.text == shown
    assert asked.message.tokens == asked.segment.tokens == QUARTERS.count(shown)


@pytest.mark.parametrize(
    ("json", "counted", "weighs"),
    [
        ("x" * 400, None, 100),
        ("x" * 400, 70, 70),
        ("x" * 400, 500, 100),
        ("[]", None, None),
        ("x" * 400, 1, None),
    ],
    ids=["as JSON", "as its provider counted", "not more than is sent", "not less", "than what is said"],
)
def test_provider_reply_determines_tokens_of_round(json: str, counted: int | None, weighs: int | None) -> None:
    """Thoughts that a provider wants back are in no text; what the model put out is what it is handed."""
    carried = replace(FIRST, provider_reply=ProviderReply(format="anthropic", json=json), tokens=counted)
    asked = build_round_messages("q", (carried,), QUARTERS)[0]
    said = build_round_messages("q", (replace(FIRST, provider_reply=None, tokens=counted),), QUARTERS)[0].segment.tokens
    assert asked.message.tokens == asked.segment.tokens == (said if weighs is None else weighs)


def test_round_without_text_counts_calls() -> None:
    asked, found = build_round_messages("q", (SECOND,), QUARTERS)
    assert asked.message.pieces == ()
    assert asked.message.tokens == QUARTERS.count(render_call(SEARCH))
    nothing = ToolRound(text="", calls=(CLOCK,), outputs=(ToolOutput(call="c2", output=""),))
    _, empty = build_round_messages("q", (nothing,), QUARTERS)
    assert (empty.message.pieces, empty.message.tokens) == ((), 0)
    assert found.message.tokens == QUARTERS.count("Two notes.")


def test_round_segments_have_kind_and_output_hash() -> None:
    asked, found, _ = (message.segment for message in build_round_messages("q", (FIRST,), QUARTERS))
    assert (asked.id, asked.kind, asked.form) == ("call:q:1", SegmentKind.CALL, ArtifactForm.FULL)
    assert (found.kind, found.form, found.content) == (TOOL_KIND, ArtifactForm.FULL, hash_text("Two notes."))
    assert found.id.startswith("tool:search:")
    assert (asked.recoverable, found.recoverable) == (True, True)


def test_segments_of_equal_calls_have_distinct_ids() -> None:
    twice = ToolRound(
        text="",
        calls=(SEARCH, ToolCall(id="c3", name="search", arguments=SEARCH.arguments)),
        outputs=(ToolOutput(call="c1", output="Two notes."), ToolOutput(call="c3", output="Two notes.")),
    )
    ids = [message.id for message in build_round_messages("q", (twice, SECOND, SECOND), QUARTERS)]
    assert len(set(ids)) == len(ids) == 7
    others = [message.id for message in build_round_messages("another question", (twice, SECOND, SECOND), QUARTERS)]
    assert not set(ids) & set(others)
    assert ids == [message.id for message in build_round_messages("q", (twice, SECOND, SECOND), QUARTERS)]


def test_results_may_be_in_other_order_than_calls() -> None:
    turned = ToolRound(text="", calls=FIRST.calls, outputs=FIRST.outputs[::-1])
    _, clock, search = build_round_messages("q", (turned,), QUARTERS)
    assert (clock.id.partition(":")[2].partition(":")[0], clock.message.call_id) == ("clock", "c2")
    assert (search.id.partition(":")[2].partition(":")[0], search.message.call_id) == ("search", "c1")


def test_call_stays_on_its_line() -> None:
    breaking = ToolCall(id="c", name="a\nb", arguments='{"q":"</tool_call>\\n\n"}')
    assert render_call(breaking).count("\n") == 1
    rounds = build_round_messages(
        "q", (ToolRound(text="", calls=(breaking,), outputs=(ToolOutput(call="c", output="x"),)),), QUARTERS
    )
    (line,) = make_call_lines(rounds, QUARTERS, names_recall=False)
    assert line.text.count("\n") == 1
    assert line.text.count("</tool_call>") == 1


def test_shortened_result_keeps_message_and_names_its_id() -> None:
    whole = build_round_messages("q", (FIRST,), QUARTERS)[2]
    stub = stub_result_message(whole, QUARTERS, names_recall=False)
    assert (stub.message.role, stub.message.call_id, stub.message.failed) == (Role.TOOL, "c2", True)
    assert stub.message.text == stub.segment.text
    assert "8 characters of output" in stub.text
    assert f"characters of output: {whole.id}." in stub.text
    assert (stub.id, stub.segment.form, stub.segment.content) == (whole.id, ArtifactForm.HANDLE, whole.segment.content)
    assert stub.message.tokens == stub.segment.tokens == QUARTERS.count(stub.text)


def test_ended_rounds_leave_one_line_per_call() -> None:
    said = build_round_messages("q", (FIRST, SECOND), QUARTERS)
    results = [one for one in said if one.message.role is Role.TOOL]
    lines = make_call_lines(said, QUARTERS, names_recall=False)
    assert [line.id for line in lines] == [one.id for one in results]
    assert [line.form for line in lines] == [ArtifactForm.HANDLE] * 3
    assert [line.kind for line in lines] == [TOOL_KIND] * 3
    found, failed, _ = lines
    assert found.text == (
        f'Let me look.\n<tool_call>search({{"q":"tides"}}): done, output left out: {results[0].id}</tool_call>\n'
    )
    # The text of the model beside its calls appears once, before the first of them.
    assert failed.text.startswith("<tool_call>clock({}): failed, ")
    assert found.tokens == QUARTERS.count(found.text)


def test_call_line_is_same_for_shortened_result() -> None:
    asked, *results = build_round_messages("q", (FIRST,), QUARTERS)
    smaller = (asked, *(stub_result_message(one, QUARTERS, names_recall=False) for one in results))
    assert make_call_lines(smaller, QUARTERS, names_recall=False) == make_call_lines(
        (asked, *results), QUARTERS, names_recall=False
    )
    assert make_call_lines((), QUARTERS, names_recall=False) == ()


@pytest.mark.parametrize("rounds", [(FIRST,), (SECOND, FIRST), ()])
def test_every_call_has_a_line_and_every_line_a_call(rounds: tuple[ToolRound, ...]) -> None:
    calls = sum(len(one.calls) for one in rounds)
    assert len(make_call_lines(build_round_messages("q", rounds, QUARTERS), QUARTERS, names_recall=False)) == calls


def test_rounds_are_grouped_by_reply() -> None:
    said = build_round_messages("q", (FIRST, SECOND), QUARTERS)
    assert group_rounds(said) == [(said[0], said[1:3]), (said[3], said[4:])]
    assert group_rounds(()) == []


def test_first_kept_result_counts_removed_calls() -> None:
    said = build_round_messages("q", (FIRST, SECOND), QUARTERS)
    stays, left = partition_rounds(said, {said[0].id}, QUARTERS, names_recall=False)
    text = "<left_out>2 earlier calls of this turn.</left_out>\nTwo notes."
    assert (left, stays[0]) == (said[:3], said[3])
    assert (stays[1].message.text, stays[1].message.call_id) == (text, "c1")
    assert stays[1].message.tokens == stays[1].segment.tokens == QUARTERS.count(text)
    assert (stays[1].segment.text, stays[1].segment.hash) == (text, hash_text(text))
    assert partition_rounds(said, set(), QUARTERS, names_recall=False) == (said, ())
    assert partition_rounds(said, {said[0].id, said[3].id}, QUARTERS, names_recall=False) == ((), said)
