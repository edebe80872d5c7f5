"""L4: earlier turns as exchanges, the messages they are sent as, and where each segment of them stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.compaction.talking import QUARTERS, Story, attaching, result

from lamella.core.log.ids import Voice
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.model import Role
from lamella.core.messages.rounds import ToolOutput, ToolRound
from lamella.core.prompt.layers.model import LayerId, SegmentKind
from lamella.core.prompt.layers.opening import NOTHING_LEFT_OUT, make_stand_in, open_with
from lamella.core.prompt.layers.rounds import build_rounds, list_calls
from lamella.core.prompt.layers.strip import (
    Exchange,
    Series,
    Talk,
    build_strip,
    count_messages,
    join_answer,
    list_strip,
    make_said,
    past_messages,
)
from lamella.core.values import replace

ROUND = ToolRound(
    text="",
    calls=(ToolCall(id="c", name="search", arguments="{}"),),
    outputs=(ToolOutput(call="c", output="found"),),
)


def exchange(number: int, *, rounds: tuple[ToolRound, ...] = ()) -> Exchange:
    user = make_said(f"q{number}", Voice.USER, f"{number}?", place=None, measure=QUARTERS)
    return Exchange(
        user=user,
        sent=user.message,
        tools=(),
        rounds=build_rounds(user.id, rounds, QUARTERS),
        reply=make_said(f"a{number}", Voice.REPLY, f"{number}.", place=None, measure=QUARTERS),
        number=number,
    )


def talk(*exchanges: Exchange, hidden: int = 0) -> Talk:
    return Talk(exchanges=Series(exchanges), spoken=count_messages(exchanges), hidden=hidden)


def test_what_is_said_is_a_message_of_its_role_and_a_segment_that_weighs_the_same() -> None:
    asked = make_said("q", Voice.USER, "why so?", place="message:3", measure=QUARTERS)
    assert (asked.message.role, asked.message.text, asked.message.tokens) == (Role.USER, "why so?", 2)
    assert (asked.id, asked.text, asked.segment.kind, asked.segment.place) == ("q", "why so?", "user", "message:3")
    assert (asked.segment.tokens, asked.segment.recoverable) == (2, False)
    empty = make_said("a", Voice.REPLY, "", place=None, measure=QUARTERS)
    assert (empty.message.role, empty.message.pieces, empty.message.tokens) == (Role.ASSISTANT, (), 0)


def test_an_exchange_is_two_messages_and_those_of_its_rounds_between_them() -> None:
    plain, called = exchange(0), exchange(1, rounds=(ROUND, ROUND))
    assert [message.role.value for message in past_messages((plain,))] == ["user", "assistant"]
    assert [message.role.value for message in past_messages((called,))] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert count_messages((plain, called)) == 8
    assert past_messages((plain, called)) == [*past_messages((plain,)), *past_messages((called,))]
    assert (plain.said_tokens, [said.id for said in plain.said]) == (2, ["q0", "a0"])


def test_what_is_hidden_is_neither_shown_nor_counted() -> None:
    one = talk(exchange(0, rounds=(ROUND,)), exchange(1), exchange(2), hidden=1)
    assert (one.spoken, one.length) == (8, 4)
    assert [shown.user.id for shown in one.shown] == ["q1", "q2"]
    everything = replace(one, hidden=0)
    assert (everything.length, everything.shown) == (8, tuple(everything.exchanges))


def test_every_segment_is_placed_in_the_message_that_holds_it() -> None:
    strip = list_strip(talk(exchange(0, rounds=(ROUND,)), exchange(1)), first=1, opening=NOTHING_LEFT_OUT)
    assert [(segment.kind, segment.place) for segment in strip] == [
        ("user", "message:1"),
        ("call", "message:2"),
        ("tool", "message:3"),
        ("reply", "message:4"),
        ("user", "message:5"),
        ("reply", "message:6"),
    ]


def test_the_opening_stands_first_in_the_message_of_the_first_turn_shown() -> None:
    opening = open_with(NOTHING_LEFT_OUT, left_out=4, count=QUARTERS.count)
    strip = list_strip(talk(exchange(0), exchange(1), hidden=1), first=0, opening=opening)
    assert [(segment.kind, segment.place) for segment in strip] == [
        ("left_out", "message:0"),
        ("user", "message:0"),
        ("reply", "message:1"),
    ]


def test_replies_that_joined_and_lines_of_calls_stand_in_one_message() -> None:
    first, second = exchange(0, rounds=(ROUND,)), exchange(1)
    lines = list_calls(first.rounds, QUARTERS)
    folded = join_answer(replace(first, rounds=(), lines=lines), (second.reply,), count=QUARTERS.count)
    assert folded.answer is not None
    assert folded.answer.text == f"{lines[0].text}0.\n\n1."
    assert folded.answer.tokens == QUARTERS.count(lines[0].text) + QUARTERS.count("0.\n\n1.")
    assert [said.id for said in folded.replies] == ["a0", "a1"]
    assert [said.id for said in folded.said] == ["q0", "a0", "a1"]
    assert past_messages((folded,)) == [first.sent, folded.answer]
    places = [(segment.id, segment.place) for segment in list_strip(talk(folded), first=0, opening=NOTHING_LEFT_OUT)]
    assert places == [("q0", "message:0"), *((name, "message:1") for name in (lines[0].id, "a0", "a1"))]


def test_an_exchange_that_nothing_joined_has_no_answer_but_its_reply() -> None:
    joined = join_answer(exchange(0), (exchange(1).reply,), count=QUARTERS.count)
    assert join_answer(joined, (), count=QUARTERS.count) == exchange(0)


def test_a_layer_is_its_segments_with_a_blank_line_between_and_weighs_what_they_weigh() -> None:
    block = make_stand_in(SegmentKind.SUMMARY, "told", count=QUARTERS.count)
    opening = open_with(NOTHING_LEFT_OUT, left_out=0, blocks=(block,), count=QUARTERS.count)
    layer = build_strip(list_strip(talk(exchange(0)), first=0, opening=opening))
    assert layer.id is LayerId.L4
    assert layer.text == "told\n\n0?\n\n0."
    assert layer.tokens == sum(segment.tokens for segment in layer.segments) == 3
    assert build_strip(list_strip(Talk(), first=0, opening=NOTHING_LEFT_OUT)).pieces == ()


def test_of_a_result_that_stands_twice_the_newer_is_what_the_strip_holds() -> None:
    story = Story()
    story.say("one?", "one.", attaching(result("x", "found " * 30)))
    story.say("two?", "two.", replace(attaching(result("x", "found " * 30)), fold=True))
    exchanges = story.state.talk.exchanges
    assert [len(one.tools) for one in exchanges] == [1, 1]
    tools = [s for s in list_strip(story.state.talk, first=0, opening=NOTHING_LEFT_OUT) if s.kind == "tool"]
    assert [(segment.form.value, segment.place) for segment in tools] == [("full", "message:2")]


ITEMS = ("a", "b", "c")


@given(st.data())
def test_series_that_grew_from_one_another_are_as_tuples_would_be(data: st.DataObject) -> None:
    grown: list[tuple[Series[str], tuple[str, ...]]] = [(Series(), ())]
    for _ in range(data.draw(st.integers(0, 8))):
        series, items = data.draw(st.sampled_from(grown))
        more = data.draw(st.lists(st.sampled_from(ITEMS), min_size=1, max_size=3))
        grown.append((series.plus(*more), (*items, *more)))
    for series, items in grown:
        start, stop = data.draw(st.tuples(st.integers(-26, 26), st.integers(-26, 26)))
        assert (tuple(series), len(series), series[start:stop]) == (items, len(items), items[start:stop])
        assert series[::-1] == items[::-1]
        assert [series[place] for place in range(-len(items), len(items))] == [*items, *items]


def test_the_same_item_twice_stands_twice() -> None:
    item = object()
    one = Series[object]().plus(item)
    assert tuple(one.plus(item)) == tuple(one.plus(item)) == (item, item)
    assert tuple(one) == (item,)


def test_an_empty_series_that_many_begin_with_keeps_nothing_of_theirs() -> None:
    empty = Series[str]()
    assert (tuple(empty.plus("a")), tuple(empty.plus("b")), tuple(empty)) == (("a",), ("b",), ())


def test_an_index_beyond_its_own_items_is_beyond_it_although_another_grew() -> None:
    one = Series(["a"])
    one.plus("b")
    with pytest.raises(IndexError):
        one[1]


def test_series_of_equal_items_are_equal() -> None:
    assert Series(["a", "b"]) == Series(["a"]).plus("b")
    assert hash(Series(["a", "b"])) == hash(Series(["a"]).plus("b"))
    assert Series(["a"]) != Series(["b"])
    assert Series(["a"]) != ("a",)
    assert repr(Series(["a"])) == "Series(['a'])"
