"""Recall results: texts within a budget of tokens, long ones by their best sentences, with their neighbours."""

import pytest

from lamella.core.search.index import Passage, PassageIndex
from lamella.core.search.recall import (
    RECALL_TOKENS,
    WHOLE_TOKENS,
    RecallHit,
    find_neighbours,
    recall_passages,
)

FILLER = "Nothing of interest is said in this sentence at all. "


def count(text: str) -> int:
    """About a token for each word, as tokenizers count them."""
    return len(text.split()) + text.count(".")


def talk(*texts: str) -> PassageIndex:
    """Messages in turn from the user and the assistant."""
    return PassageIndex(
        Passage(
            id=f"m{number}",
            place=f"turn {number // 2 + 1}",
            role=("user", "reply")[number % 2],
            title=f"m{number}",
            text=text,
            message=f"m{number}",
        )
        for number, text in enumerate(texts)
    )


def recall(index: PassageIndex, query: str, **given: int) -> tuple[RecallHit, ...]:
    return recall_passages(index, query, count=count, **given)  # type: ignore[arg-type]


def tokens_of(hits: tuple[RecallHit, ...]) -> int:
    beside = [one.text for hit in hits for one in (hit.before, hit.after) if one is not None]
    return sum(map(count, (*(hit.text for hit in hits), *beside)))


def test_a_short_message_comes_whole_with_the_messages_around_it() -> None:
    index = talk("How are the bees?", "Fine.", "The otter sleeps in the shed.", "Good to know.", "And the geese?")
    (hit,) = recall(index, "where does the otter sleep")
    assert (hit.text, hit.is_whole) == ("The otter sleeps in the shed.", True)
    assert hit.before is not None
    assert hit.after is not None
    assert (hit.before.text, hit.after.text) == ("Fine.", "Good to know.")


def test_of_a_long_message_the_three_best_sentences_come_in_their_order() -> None:
    said = (
        "The otter is no beaver.",
        "The otter sleeps in the shed.",
        "In the shed there is straw.",
        "The otter eats.",
    )
    long = FILLER * 20 + said[0] + " " + FILLER * 20 + said[1] + " " + said[2] + " " + FILLER * 20 + said[3]
    (hit,) = recall(talk(long, "Yes."), "does the otter sleep in the shed")
    assert hit.text == f"{said[0]} … {said[1]} {said[2]}"
    assert not hit.is_whole
    assert hit.passage.text == long


def test_a_message_of_just_the_limit_comes_whole() -> None:
    text = "otter " * WHOLE_TOKENS
    assert [hit.is_whole for hit in recall(talk(text), "otter")] == [True]
    longer = "The otter. " * WHOLE_TOKENS
    assert [hit.is_whole for hit in recall(talk(longer), "otter")] == [False]


def test_hits_and_neighbours_stay_within_the_budget_and_fill_it() -> None:
    index = talk(*(f"Bed {number} has an otter. {FILLER * 5}" for number in range(60)))
    found = recall(index, "otter")
    assert RECALL_TOKENS // 2 < tokens_of(found) <= RECALL_TOKENS
    assert tokens_of(recall(index, "otter", max_tokens=300)) <= 300
    assert len(recall(index, "otter", limit=2)) == 2


def test_no_message_is_returned_twice() -> None:
    index = talk(*(f"Bed {number} has an otter." for number in range(6)), "One more.", "Yes.")
    found = recall(index, "otter")
    beside = [one.passage.id for hit in found for one in (hit.before, hit.after) if one is not None]
    every = [*(hit.passage.id for hit in found), *beside]
    assert len(set(every)) == len(every)
    assert beside == ["m6"]


def test_the_best_hit_is_cut_rather_than_left_out() -> None:
    (hit,) = recall(talk("The otter sleeps. " * 20), "otter", max_tokens=30)
    assert hit.text
    assert count(hit.text) <= 30


def test_a_text_named_by_its_id_comes_from_its_beginning_as_far_as_the_budget_reaches() -> None:
    long = FILLER * 400
    (hit,) = recall(talk("Hello.", long), "m1", limit=1)
    assert long.startswith(hit.text)
    assert RECALL_TOKENS * 0.8 < count(hit.text) <= RECALL_TOKENS


def test_a_line_without_any_punctuation_is_cut_to_the_match() -> None:
    (hit,) = recall(talk("word " * 5_000 + "otter " + "word " * 5_000), "otter")
    assert "otter" in hit.text
    assert len(hit.text) < 300


@pytest.mark.parametrize("query", ["zebra", "What is the capital of Mongolia?"])
def test_nothing_is_returned_if_nothing_fits(query: str) -> None:
    assert recall(talk("The otter sleeps in the shed.", "What is it to you?"), query) == ()


def test_the_messages_next_to_a_note_are_those_of_its_conversation() -> None:
    note = Passage(id="b/n@1", place="turn 1", role="note", title="n", text="otter", message="m1")
    messages = [
        Passage(id=f"{chat}/{name}", place="turn 1", role=role, title=name, text=name, message=name)
        for chat, name, role in (("a", "m0", "user"), ("b", "m1", "user"), ("b", "m2", "reply"))
    ]
    index = PassageIndex([messages[0], note, *messages[1:]])
    before, after = find_neighbours(index, note, conversation_of=lambda one: one.id[0])
    assert before is None
    assert after == messages[1]
    assert find_neighbours(index, messages[0]) == (None, messages[1])
