"""Taking messages out: whole turns leave, a reply without its question joins the reply before it."""

from lamella.core.prompt.removal import Left, message_ids, remove_messages
from tests.unit.core.compaction.talking import QUARTERS, Story


def story() -> Story:
    told = Story()
    for word in ("one", "two", "three", "four"):
        told.say(f"{word}?", f"{word}.")
    return told


def remove(told: Story, *gone: str, epoch_start: int = 0) -> Left:
    return remove_messages(told.state.exchanges, set(gone), epoch_start=epoch_start, count=QUARTERS.count)


def test_a_turn_leaves_whole() -> None:
    told = story()
    left = remove(told, *message_ids(told.state.exchanges[1]))
    assert [exchange.user.text for exchange in left.exchanges] == ["one?", "three?", "four?"]
    assert left.messages == 2


def test_a_reply_whose_question_left_joins_the_reply_before_it_after_a_blank_line() -> None:
    told = story()
    left = remove(told, told.state.exchanges[1].user.id)
    assert [exchange.user.text for exchange in left.exchanges] == ["one?", "three?", "four?"]
    first = left.exchanges[0]
    assert first.answer is not None
    assert first.answer.text == "one.\n\ntwo."
    assert first.answer.tokens == QUARTERS.count("one.\n\ntwo.")
    assert message_ids(first) == (*message_ids(told.state.exchanges[0]), told.state.exchanges[1].reply.id)
    assert left.messages == 1


def test_several_replies_join_in_their_order() -> None:
    told = story()
    left = remove(told, told.state.exchanges[1].user.id, told.state.exchanges[2].user.id)
    assert left.exchanges[0].answer is not None
    assert left.exchanges[0].answer.text == "one.\n\ntwo.\n\nthree."


def test_an_empty_reply_joins_without_a_gap() -> None:
    told = Story().say("one?", "one.").say("two?", "").say("three?", "three.")
    left = remove(told, told.state.exchanges[1].user.id, told.state.exchanges[2].user.id)
    assert left.exchanges[0].answer is not None
    assert left.exchanges[0].answer.text == "one.\n\nthree."


def test_the_first_question_does_not_go_alone() -> None:
    told = story()
    assert remove(told, told.state.exchanges[0].user.id) == remove(told)


def test_an_answer_does_not_go_without_its_question() -> None:
    told = story()
    assert remove(told, told.state.exchanges[1].reply.id) == remove(told)


def test_a_turn_that_took_in_a_reply_leaves_with_it_or_not_at_all() -> None:
    told = story()
    joined = remove(told, told.state.exchanges[1].user.id).exchanges
    own = message_ids(told.state.exchanges[0])
    partly = remove_messages(joined, set(own), epoch_start=0, count=QUARTERS.count)
    assert partly.exchanges == joined
    wholly = remove_messages(joined, set(message_ids(joined[0])), epoch_start=0, count=QUARTERS.count)
    assert [exchange.user.text for exchange in wholly.exchanges] == ["three?", "four?"]
    assert wholly.messages == 3


def test_ids_that_are_not_there_are_passed_over() -> None:
    told = story()
    assert remove(told, "nothing", "there") == Left(exchanges=told.state.exchanges, messages=0, epoch_start=0)


def test_the_epoch_still_starts_at_the_same_turn() -> None:
    told = story()
    gone = (*message_ids(told.state.exchanges[0]), *message_ids(told.state.exchanges[2]))
    for start, expected in ((0, 0), (1, 0), (2, 1), (3, 1), (4, 2)):
        assert remove(told, *gone, epoch_start=start).epoch_start == expected
