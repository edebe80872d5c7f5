"""Standalone questions: reworded by a model if the history is needed, and never worse than the typed text."""

import pytest

from lamella.runners.query_planning import choose_wording

TALK = ["User: Who owns Project Heron?", "Assistant: Maya owns it, since 2024-03-01."]


def test_plausible_rewording_is_used() -> None:
    worded = "What is the budget of Project Heron?"
    assert choose_wording(f" *{worded}*\n", "And its budget, what is it?", TALK) == worded


@pytest.mark.parametrize(
    "nonsense",
    [
        "",
        "   \n",
        "Sure! Here is the question:\nWhat is the budget of Project Heron?",
        "I am a language model and cannot help with budgets, sorry about that.",
        "What is the budget of Project Heron for 2031?",
        "Project Heron " * 100,
    ],
)
def test_nonsensical_rewording_is_not_used(nonsense: str) -> None:
    assert choose_wording(nonsense, "And its budget?", TALK) == "And its budget?"


def test_search_filters_survive_rewording() -> None:
    typed = 'And its budget in [[Plan 2024]] #money path:"a b" folder:work'
    worded = choose_wording("What is the budget of Project Heron", typed, TALK)
    assert worded == 'What is the budget of Project Heron [[Plan 2024]] #money path:"a b" folder:work'


def test_quotation_marks_of_model_are_not_filters() -> None:
    assert choose_wording('What is the budget of "Project Heron"?', "And the budget?", TALK) == (
        "What is the budget of Project Heron?"
    )
    typed = 'Who said "budget of Heron"?'
    assert choose_wording(typed, typed, TALK) == typed


def test_wide_scripts_are_compared_as_well() -> None:
    talk = ["User: 予算は誰が決めますか", "Assistant: 佐藤さんです"]
    assert choose_wording("佐藤さんの予算は", "予算は?", talk) == "佐藤さんの予算は"
    assert choose_wording("天気はどうですか今日", "予算?", talk[1:]) == "予算?"
