"""The facts that the benchmark plants: exact, unique, and not revealed by their questions."""

import pytest
from bench.facts import BadSummarizer, make_facts


def test_facts_are_distinct_and_questions_do_not_reveal_them() -> None:
    facts = make_facts()
    assert len(facts) == 200
    assert len({fact.exact for fact in facts}) == len({fact.question for fact in facts}) == 200
    assert all(fact.exact in fact.sentence and fact.exact not in fact.question for fact in facts)
    sentences = " ".join(fact.sentence for fact in facts)
    assert [fact.exact for fact in facts if sentences.count(fact.exact) != 1] == []


def test_bad_summarizer_gives_every_kind_of_bad_answer() -> None:
    bad = BadSummarizer()
    answers = [bad.summarize([], max_tokens=10) for _ in range(4)]
    assert len(set(answers)) == 4
    with pytest.raises(ConnectionError):
        bad.summarize([], max_tokens=10)
