"""Text removed by compactions is found by its words and by other forms of them."""

import pytest
from bench.recall import probe_recall
from bench.rewording import REPORTED, TUNED_ON, make_reworded

FACTS = 60


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_reworded_facts_are_one_recall_away_after_three_compactions(layout: str) -> None:
    found = probe_recall(REPORTED[0], layout=layout, facts=FACTS)
    assert found.in_prompt + found.exact == FACTS
    assert found.reworded_share >= 97, found.missed
    assert found.exact > FACTS // 3, "too little was taken out for this to try anything"


def test_facts_depend_on_seed_and_are_reworded() -> None:
    assert make_reworded(3, 40) == make_reworded(3, 40) != make_reworded(5, 40)
    assert not set(TUNED_ON) & set(REPORTED)
    facts = make_reworded(3, 200)
    assert len({fact.question for fact in facts}) == len(facts) == 200
    assert all(fact.question not in fact.sentence and fact.exact in fact.sentence for fact in facts)
