"""Taking messages out: whole turns leave, a reply without its question joins the reply before it."""

from tests.unit.core.compaction.talking import QUARTERS, Story

from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.receipts import remove_messages
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
    talk = replace(told.state.talk, exchanges=joined)
    own = message_ids(told.state.talk.exchanges[0])
    partly, _, _ = remove_messages(talk, set(own), count=QUARTERS.count)
    assert partly == joined
    wholly, messages, _ = remove_messages(talk, set(message_ids(joined[0])), count=QUARTERS.count)
    assert [exchange.user.text for exchange in wholly] == ["three?", "four?"]
    assert messages == 3


def test_ids_that_are_not_there_are_passed_over() -> None:
    told = story()
    assert remove(told, "nothing", "there") == (told.state.talk.exchanges, 0, 0)


def test_the_epoch_still_starts_at_the_same_turn() -> None:
    told = story()
    gone = (*message_ids(told.state.talk.exchanges[0]), *message_ids(told.state.talk.exchanges[2]))
    for start, expected in ((0, 0), (1, 0), (2, 1), (3, 1), (4, 2)):
        assert remove(told, *gone, epoch_start=start)[2] == expected
