"""Applying receipts: an epoch begins, what they name leaves, and what is left stands where it says.

Whole turns leave; a reply without its question joins the reply before it.
"""

import pytest
from tests.unit.core.compaction.talking import FOLDING, IN_PLACE, LIBRARY, NOW, QUARTERS, Story, attaching, note, result

from lamella.core.log.placement import Form
from lamella.core.log.receipt import Receipt, Step, StepName, make_receipt
from lamella.core.log.terms import Terms
from lamella.core.log.turn import SystemParts
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.layers.strip import Exchange, Series
from lamella.core.prompt.receipts import apply_receipt, apply_step, fold_for_receipt, remove_messages, settle
from lamella.core.values import replace

Left = tuple[tuple[Exchange, ...], int, int]


def story() -> Story:
    told = Story()
    for word in ("one", "two", "three", "four"):
        told.say(f"{word}?", f"{word}.")
    return told


def remove(told: Story, *gone: str, epoch_start: int = 0) -> Left:
    return remove_messages(replace(told.state.talk, epoch_start=epoch_start), set(gone), count=QUARTERS.count)


def message_ids(exchange: Exchange) -> tuple[str, ...]:
    return tuple(said.id for said in exchange.said)


def test_a_turn_with_a_pinned_message_stays_whatever_a_receipt_says() -> None:
    told = story()
    two, three = told.state.talk.exchanges[1:3]
    step = Step(name=StepName.EXPENDABLE, removed=(*message_ids(two), *message_ids(three)))
    state = apply_step(replace(told.state, pinned=frozenset({two.reply.id})), step, QUARTERS)
    assert [exchange.user.text for exchange in state.talk.exchanges] == ["one?", "two?", "four?"]
    assert state.talk.opening.left_out == 2


def test_a_turn_leaves_whole() -> None:
    told = story()
    left, messages, _ = remove(told, *message_ids(told.state.talk.exchanges[1]))
    assert [exchange.user.text for exchange in left] == ["one?", "three?", "four?"]
    assert messages == 2


def test_a_reply_whose_question_left_joins_the_reply_before_it_after_a_blank_line() -> None:
    told = story()
    left, messages, _ = remove(told, told.state.talk.exchanges[1].user.id)
    assert [exchange.user.text for exchange in left] == ["one?", "three?", "four?"]
    first = left[0]
    assert first.answer is not None
    assert first.answer.text == "one.\n\ntwo."
    assert first.answer.tokens == QUARTERS.count("one.\n\ntwo.")
    assert message_ids(first) == (*message_ids(told.state.talk.exchanges[0]), told.state.talk.exchanges[1].reply.id)
    assert messages == 1


def test_several_replies_join_in_their_order() -> None:
    told = story()
    left, _, _ = remove(told, told.state.talk.exchanges[1].user.id, told.state.talk.exchanges[2].user.id)
    assert left[0].answer is not None
    assert left[0].answer.text == "one.\n\ntwo.\n\nthree."


def test_an_empty_reply_joins_without_a_gap() -> None:
    told = Story().say("one?", "one.").say("two?", "").say("three?", "three.")
    left, _, _ = remove(told, told.state.talk.exchanges[1].user.id, told.state.talk.exchanges[2].user.id)
    assert left[0].answer is not None
    assert left[0].answer.text == "one.\n\nthree."


def test_the_first_question_does_not_go_alone() -> None:
    told = story()
    assert remove(told, told.state.talk.exchanges[0].user.id) == remove(told)


def test_an_answer_does_not_go_without_its_question() -> None:
    told = story()
    assert remove(told, told.state.talk.exchanges[1].reply.id) == remove(told)


def test_a_turn_that_took_in_a_reply_leaves_with_it_or_not_at_all() -> None:
    told = story()
    joined, _, _ = remove(told, told.state.talk.exchanges[1].user.id)
    talk = replace(told.state.talk, exchanges=Series(joined))
    own = message_ids(told.state.talk.exchanges[0])
    partly, _, _ = remove_messages(talk, set(own), count=QUARTERS.count)
    assert partly == joined
    wholly, messages, _ = remove_messages(talk, set(message_ids(joined[0])), count=QUARTERS.count)
    assert [exchange.user.text for exchange in wholly] == ["three?", "four?"]
    assert messages == 3


def test_ids_that_are_not_there_are_passed_over() -> None:
    told = story()
    assert remove(told, "nothing", "there") == (tuple(told.state.talk.exchanges), 0, 0)


def test_the_epoch_still_starts_at_the_same_turn() -> None:
    told = story()
    gone = (*message_ids(told.state.talk.exchanges[0]), *message_ids(told.state.talk.exchanges[2]))
    for start, expected in ((0, 0), (1, 0), (2, 1), (3, 1), (4, 2)):
        assert remove(told, *gone, epoch_start=start)[2] == expected


LONG = "# Heading\n\n" + "long words " * 700
BOTH = pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])


def worked(terms: Terms = IN_PLACE) -> Story:
    """A conversation with a long note and a tool result, and two turns after them."""
    told = Story(terms=terms).say("one?", "one.", attaching(note("a.md", LONG), result("x", "found " * 80)))
    return told.say("two?", "two.").say("three?", "three.")


def receipt_of(*steps: Step) -> Receipt:
    return make_receipt("story", parent="", steps=steps, skipped=(), tokens=(90, 40), target=40, automatic=True)


@BOTH
def test_a_receipt_begins_an_epoch_and_says_what_it_came_to(terms: Terms) -> None:
    told = worked(terms)
    after = apply_receipt(told.state, receipt_of(), terms, measure=QUARTERS)
    assert after.epoch == told.state.epoch + 1
    assert (after.shrunk_to, after.compacted) == (40, "fold")
    assert list(after.shelf) == ["a.md"]
    assert after.talk.epoch_start == told.state.talk.epoch_start
    assert after.head == told.state.head


@pytest.mark.parametrize(
    ("names", "moved"),
    [
        (("expendable", "handle"), "handle"),
        (("tool_results", "chitchat"), "chitchat"),
        (("tool_results",), "tool_results"),
        (("summary", "chitchat"), "summary"),
        (("chitchat", "preview", "handle"), "preview"),
    ],
)
def test_what_moved_is_named_after_the_step_that_moved_the_earliest_bytes(names: tuple[str, ...], moved: str) -> None:
    steps = [Step(name=StepName(name), removed=()) for name in names]
    assert apply_receipt(worked().state, receipt_of(*steps), IN_PLACE, measure=QUARTERS).compacted == moved


@pytest.mark.parametrize(("name", "form"), [(StepName.PREVIEW, Form.PREVIEW), (StepName.HANDLE, Form.HANDLE)])
def test_an_entry_made_smaller_stands_so_and_is_remembered_so(name: StepName, form: Form) -> None:
    told = worked()
    folded = fold_for_receipt(told.state, IN_PLACE, QUARTERS)
    after = apply_step(folded, Step(name=name, removed=("a.md", "nowhere.md")), QUARTERS)
    assert [one["a.md"].form for one in (after.shelf, after.standing, after.library)] == [form] * 3
    assert list(after.library) == ["a.md"]
    told.apply(receipt_of(Step(name=name, removed=("a.md",))))
    assert [segment.form for segment in told.ask(FOLDING).segments(LayerId.L2)] == [form]
    assert [segment.form for segment in told.ask(attaching(note("a.md", LONG))).segments(LayerId.L3)] == [Form.FULL]


def test_what_instructions_drew_in_is_shelved_once_they_no_longer_do_after_something_was_made_smaller() -> None:
    drawn, other = note("drawn.md", "Write plainly."), note("other.md", "# Head\n\n" + "A long text. " * 400)
    system = SystemParts(instructions="Write plainly.", inlined=(drawn,), typed_instructions="{[[drawn]]}")
    for terms in (IN_PLACE, LIBRARY):
        told = Story(terms=terms).say("one?", "one.", replace(attaching(drawn, other), system=system))
        told.say("two?", "two.", FOLDING)
        told.apply(receipt_of(Step(name=StepName.HANDLE, removed=("other.md",))))
        without = replace(NOW, system=SystemParts(base="Be brief."))
        assert [one.id for one in told.ask(without).segments(LayerId.L2)] == ["drawn.md", "other.md"]


def test_a_compaction_keeps_tool_results_of_the_epoch_unless_it_names_them() -> None:
    told = worked()
    found = result("x", "found " * 80)
    kept = apply_receipt(told.state, receipt_of(), IN_PLACE, measure=QUARTERS)
    cut = apply_receipt(
        told.state, receipt_of(Step(name=StepName.TOOL_RESULTS, removed=(found.id,))), IN_PLACE, measure=QUARTERS
    )
    assert [one.standing[found.id].form for one in (kept, cut)] == [Form.FULL, Form.HANDLE]
    # The library came into the system message, so that everything else stands one message later.
    assert [one.standing[found.id].place for one in (kept, cut)] == ["message:1", "message:1"]


def test_of_two_results_in_a_question_only_the_one_that_is_named_is_cut() -> None:
    one, other = result("x", "found " * 80), result("y", "found " * 90)
    told = Story().say("one?", "one.", attaching(one, other)).say("two?", "two.")
    cut = Step(name=StepName.TOOL_RESULTS, removed=(one.id,))
    after = apply_receipt(told.state, receipt_of(cut), IN_PLACE, measure=QUARTERS)
    assert [after.standing[found.id].form for found in (one, other)] == [Form.HANDLE, Form.FULL]


def test_a_result_whose_turn_left_stands_nowhere() -> None:
    told = worked()
    gone = Step(name=StepName.EXPENDABLE, removed=message_ids(told.state.talk.exchanges[0]))
    after = apply_receipt(told.state, receipt_of(gone), IN_PLACE, measure=QUARTERS)
    assert list(after.standing) == ["a.md"]
    assert [exchange.user.text for exchange in after.talk.exchanges] == ["two?", "three?"]
    assert (after.talk.spoken, after.talk.opening.left_out) == (4, 2)


def test_settling_changes_nothing_that_stands_where_it_says() -> None:
    told = worked()
    after = apply_receipt(told.state, receipt_of(), IN_PLACE, measure=QUARTERS)
    assert settle(after, IN_PLACE, QUARTERS) == after


def test_a_reply_that_says_nothing_leaves_no_line() -> None:
    told = Story().say("one?", "").say("two?", "two.")
    empty, said = (exchange.reply.id for exchange in told.state.talk.exchanges)
    step = Step(name=StepName.EXPENDABLE, removed=(empty, said))
    first, second = apply_step(told.state, step, QUARTERS).talk.exchanges
    assert first.reply.text == ""
    assert second.reply.text not in ("", "two.")


def test_a_block_stands_in_for_what_left_and_keeps_what_it_tells() -> None:
    told = worked()
    gone = message_ids(told.state.talk.exchanges[0])
    step = Step(name=StepName.SUMMARY, removed=gone, text="a block", content="what it tells")
    opening = apply_step(told.state, step, QUARTERS).talk.opening
    (block,) = opening.blocks
    assert (block.kind.value, block.text, block.content) == ("summary", "a block", "what it tells")
    erased = apply_step(told.state, replace(step, text=None), QUARTERS).talk.opening
    assert (erased.blocks, erased.left_out) == ((), 2)
