"""L4: earlier turns as exchanges, their messages, and the position of each of their segments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.compaction.stories import QUARTERS, Story, attaching, result

from lamella.core.log.turn import MessageAuthor
from lamella.core.messages import Role, ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.layers.history import (
    EMPTY_PREAMBLE,
    ConversationHistory,
    HistoryTurn,
    SharedSequence,
    build_history_layer,
    count_messages,
    extend_preamble,
    history_messages,
    list_history_segments,
    make_history_message,
    make_placeholder,
    with_joined_replies,
)
from lamella.core.prompt.layers.model import LayerId, SegmentKind
from lamella.core.prompt.layers.tool_rounds import build_round_messages, make_call_lines
from lamella.core.values import replace

ROUND = ToolRound(
    text="",
    calls=(ToolCall(id="c", name="search", arguments="{}"),),
    outputs=(ToolOutput(call="c", output="found"),),
)


def exchange(number: int, *, rounds: tuple[ToolRound, ...] = ()) -> HistoryTurn:
    user = make_history_message(f"q{number}", MessageAuthor.USER, f"{number}?", position=None, tokenizer=QUARTERS)
    return HistoryTurn(
        question=user,
        question_message=user.message,
        tool_results=(),
        rounds=build_round_messages(user.id, rounds, QUARTERS),
        reply=make_history_message(f"a{number}", MessageAuthor.REPLY, f"{number}.", position=None, tokenizer=QUARTERS),
        turn_index=number,
    )


def talk(*turns: HistoryTurn, hidden: int = 0) -> ConversationHistory:
    return ConversationHistory(turns=SharedSequence(turns), message_count=count_messages(turns), hidden_turns=hidden)


def test_history_message_has_role_and_equal_segment() -> None:
    asked = make_history_message("q", MessageAuthor.USER, "why so?", position="message:3", tokenizer=QUARTERS)
    assert (asked.message.role, asked.message.text, asked.message.tokens) == (Role.USER, "why so?", 2)
    assert (asked.id, asked.text, asked.segment.kind, asked.segment.place) == ("q", "why so?", "user", "message:3")
    assert (asked.segment.tokens, asked.segment.recoverable) == (2, False)
    empty = make_history_message("a", MessageAuthor.REPLY, "", position=None, tokenizer=QUARTERS)
    assert (empty.message.role, empty.message.pieces, empty.message.tokens) == (Role.ASSISTANT, (), 0)


def test_exchange_has_two_messages_and_its_rounds_between() -> None:
    plain, called = exchange(0), exchange(1, rounds=(ROUND, ROUND))
    assert [message.role.value for message in history_messages((plain,))] == ["user", "assistant"]
    assert [message.role.value for message in history_messages((called,))] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert count_messages((plain, called)) == 8
    assert history_messages((plain, called)) == [*history_messages((plain,)), *history_messages((called,))]
    assert (plain.message_tokens, [message.id for message in plain.messages]) == (2, ["q0", "a0"])


def test_hidden_turns_are_not_shown_or_counted() -> None:
    one = talk(exchange(0, rounds=(ROUND,)), exchange(1), exchange(2), hidden=1)
    assert (one.message_count, one.shown_message_count) == (8, 4)
    assert [shown.question.id for shown in one.shown] == ["q1", "q2"]
    everything = replace(one, hidden_turns=0)
    assert (everything.shown_message_count, everything.shown) == (8, tuple(everything.turns))


def test_every_segment_is_in_its_message() -> None:
    strip = list_history_segments(
        talk(exchange(0, rounds=(ROUND,)), exchange(1)), first_message=1, preamble=EMPTY_PREAMBLE
    )
    assert [(segment.kind, segment.place) for segment in strip] == [
        ("user", "message:1"),
        ("call", "message:2"),
        ("tool", "message:3"),
        ("reply", "message:4"),
        ("user", "message:5"),
        ("reply", "message:6"),
    ]


def test_preamble_is_first_in_first_shown_turn() -> None:
    preamble = extend_preamble(EMPTY_PREAMBLE, left_out=4, names_recall=False, count=QUARTERS.count)
    strip = list_history_segments(talk(exchange(0), exchange(1), hidden=1), first_message=0, preamble=preamble)
    assert [(segment.kind, segment.place) for segment in strip] == [
        ("left_out", "message:0"),
        ("user", "message:0"),
        ("reply", "message:1"),
    ]


def test_joined_replies_and_call_lines_share_message() -> None:
    first, second = exchange(0, rounds=(ROUND,)), exchange(1)
    lines = make_call_lines(first.rounds, QUARTERS, names_recall=False)
    folded = with_joined_replies(replace(first, rounds=(), call_lines=lines), (second.reply,), count=QUARTERS.count)
    assert folded.reply_message is not None
    assert folded.reply_message.text == f"{lines[0].text}0.\n\n1."
    assert folded.reply_message.tokens == QUARTERS.count(lines[0].text) + QUARTERS.count("0.\n\n1.")
    assert [message.id for message in folded.replies] == ["a0", "a1"]
    assert [message.id for message in folded.messages] == ["q0", "a0", "a1"]
    assert history_messages((folded,)) == [first.question_message, folded.reply_message]
    places = [
        (segment.id, segment.place)
        for segment in list_history_segments(talk(folded), first_message=0, preamble=EMPTY_PREAMBLE)
    ]
    assert places == [("q0", "message:0"), *((name, "message:1") for name in (lines[0].id, "a0", "a1"))]


def test_exchange_without_joined_replies_has_its_reply_only() -> None:
    joined = with_joined_replies(exchange(0), (exchange(1).reply,), count=QUARTERS.count)
    assert with_joined_replies(joined, (), count=QUARTERS.count) == exchange(0)


def test_layer_joins_segments_with_blank_lines() -> None:
    placeholder = make_placeholder(SegmentKind.SUMMARY, "told", count=QUARTERS.count)
    preamble = extend_preamble(
        EMPTY_PREAMBLE, left_out=0, blocks=(placeholder,), names_recall=False, count=QUARTERS.count
    )
    layer = build_history_layer(list_history_segments(talk(exchange(0)), first_message=0, preamble=preamble))
    assert layer.id is LayerId.L4
    assert layer.text == "told\n\n0?\n\n0."
    assert layer.tokens == sum(segment.tokens for segment in layer.segments) == 3
    assert (
        build_history_layer(
            list_history_segments(ConversationHistory(), first_message=0, preamble=EMPTY_PREAMBLE)
        ).pieces
        == ()
    )


def test_newer_of_two_equal_results_is_in_history() -> None:
    story = Story()
    story.say("one?", "one.", attaching(result("x", "found " * 30)))
    story.say("two?", "two.", replace(attaching(result("x", "found " * 30)), fold=True))
    exchanges = story.state.history.turns
    assert [len(one.tool_results) for one in exchanges] == [1, 1]
    tools = [
        s
        for s in list_history_segments(story.state.history, first_message=0, preamble=EMPTY_PREAMBLE)
        if s.kind == "tool"
    ]
    assert [(segment.form.value, segment.place) for segment in tools] == [("full", "message:2")]


ITEMS = ("a", "b", "c")


@given(st.data())
def test_shared_sequences_behave_like_tuples(data: st.DataObject) -> None:
    grown: list[tuple[SharedSequence[str], tuple[str, ...]]] = [(SharedSequence(), ())]
    for _ in range(data.draw(st.integers(0, 8))):
        series, items = data.draw(st.sampled_from(grown))
        more = data.draw(st.lists(st.sampled_from(ITEMS), min_size=1, max_size=3))
        grown.append((series.with_items_appended(*more), (*items, *more)))
    for series, items in grown:
        start, stop = data.draw(st.tuples(st.integers(-26, 26), st.integers(-26, 26)))
        assert (tuple(series), len(series), series[start:stop]) == (items, len(items), items[start:stop])
        assert series[::-1] == items[::-1]
        assert [series[place] for place in range(-len(items), len(items))] == [*items, *items]


def test_equal_items_are_kept_twice() -> None:
    item = object()
    one = SharedSequence[object]().with_items_appended(item)
    assert tuple(one.with_items_appended(item)) == tuple(one.with_items_appended(item)) == (item, item)
    assert tuple(one) == (item,)


def test_shared_empty_sequence_stays_empty() -> None:
    empty = SharedSequence[str]()
    assert (tuple(empty.with_items_appended("a")), tuple(empty.with_items_appended("b")), tuple(empty)) == (
        ("a",),
        ("b",),
        (),
    )


def test_index_beyond_own_items_is_error_after_other_grew() -> None:
    one = SharedSequence(["a"])
    one.with_items_appended("b")
    with pytest.raises(IndexError):
        one[1]


def test_sequences_of_equal_items_are_equal() -> None:
    assert SharedSequence(["a", "b"]) == SharedSequence(["a"]).with_items_appended("b")
    assert hash(SharedSequence(["a", "b"])) == hash(SharedSequence(["a"]).with_items_appended("b"))
    assert SharedSequence(["a"]) != SharedSequence(["b"])
    assert SharedSequence(["a"]) != ("a",)
    assert repr(SharedSequence(["a"])) == "Series(['a'])"
