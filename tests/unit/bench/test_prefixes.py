"""What the compaction benchmark counts in requests: prefix breaks, halves of tool results, and costs."""

import pytest
from bench.compaction import fewest_breaks, mean_turn
from bench.prefixes import Played, extends, find_orphans, play
from bench.workloads import WorkloadMessage, make_small_talk, make_tool_work

from lamella import Conversation, Message, ToolResult
from lamella.core.messages import Role

CALL = "look()\n"
SAID = [WorkloadMessage(typed="Go on.", reply="Done.", tools=(ToolResult(name="look", output="x"),))]


def user(text: str) -> Message:
    return Message(role=Role.USER, pieces=(text,))


def played(*, requests: int = 10, sent: int = 1_000, read: int = 0, first: int = 100, last: int = 1_000) -> Played:
    return Played(requests=requests, breaks=1, orphans=0, compactions=1, sent=sent, read=read, first=first, last=last)


def test_request_extends_previous_if_it_starts_with_all_of_it() -> None:
    one, two = user("one"), user("two")
    assert extends([one], [one, two])
    assert extends([one], [Message(role=Role.USER, pieces=("o", "ne")), two])
    assert not extends([one, two], [one])
    assert not extends([one, two], [two, one])


def test_result_with_call_and_question_is_no_orphan() -> None:
    whole = f"<tool_result>{CALL}x\n</tool_result>\n[User query]:\nGo on."
    assert list(find_orphans([user("before"), user(whole)], SAID)) == []


@pytest.mark.parametrize(
    "text",
    [
        "<tool_result>\nx\n</tool_result>\n[User query]:\nGo on.",
        f"<tool_result>{CALL}x\n</tool_result>\n[User query]:\nSomething else.",
        f"<tool_result>{CALL}x\n[User query]:\nGo on.",
        "x\n</tool_result>\n[User query]:\nGo on.",
    ],
    ids=["no call", "another question", "no end", "no beginning"],
)
def test_result_without_call_is_orphan(text: str) -> None:
    assert list(find_orphans([user(text)], SAID)) != []


def test_orphans_are_found_in_sent_form_of_results() -> None:
    turn = Conversation().ask("Go on.", results=[ToolResult(name="look", output="x")])
    assert list(find_orphans(turn.messages, SAID)) == []
    assert list(find_orphans(turn.messages, [])) != []


def test_read_costs_a_tenth_and_write_a_quarter_more() -> None:
    assert played(sent=1_000, read=800).cost == pytest.approx(80 + 250)
    assert played(requests=20).breaks_per_100 == 5


def test_window_that_fits_all_needs_no_break_and_half_needs_one() -> None:
    whole = played(requests=100, first=0, last=950)
    assert fewest_breaks(whole, window=1_000) == 0
    assert fewest_breaks(whole, window=999) == 1
    assert fewest_breaks(whole, window=500) == 1
    assert fewest_breaks(whole, window=100) == 9


def test_mean_turn_is_growth_of_requests() -> None:
    assert mean_turn(played(requests=10, first=100, last=1_000), make_small_talk(sessions=1)) == 100
    assert mean_turn(played(requests=10, first=100, last=1_000), make_tool_work(turns=1)) == 200


def test_workloads_are_deterministic_and_of_stated_size() -> None:
    assert make_small_talk() == make_small_talk()
    work = make_tool_work()
    assert work == make_tool_work()
    assert len(work.said) == 60
    assert len(work.system) == 4_000
    assert [len(tool.output) for message in work.said for tool in message.tools] == [6_000] * 30


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_tool_work_in_a_small_window_leaves_no_orphan(layout: str) -> None:
    work = make_tool_work(turns=12)
    narrow = play(work, layout=layout, window=10_000)
    wide = play(work, layout=layout)
    assert narrow.orphans == wide.orphans == 0
    assert wide.compactions == 0
    if layout == "in_place":
        assert narrow.compactions == narrow.breaks > 0
        assert wide.breaks == 0
        assert narrow.sent < wide.sent
