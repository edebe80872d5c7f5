"""Facts survive compaction: one recall returns every removed fact word for word."""

import pytest
from bench.facts import SHARES, BadSummarizer, Survival, probe_survival

FACTS = 60


def check_survival(survival: Survival) -> None:
    assert survival.lost == ()
    assert survival.share == 100
    assert survival.recalled > FACTS // 3, "too little was taken out for this to try anything"
    assert len(survival.steps) >= len(SHARES)


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_every_fact_is_in_prompt_or_one_recall_away_after_three_compactions(layout: str) -> None:
    check_survival(probe_survival(layout=layout, facts=FACTS))


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_bad_summarizer_loses_no_fact(layout: str) -> None:
    survival = probe_survival(layout=layout, summarizer=BadSummarizer(), facts=FACTS)
    check_survival(survival)
    assert "summary" in survival.steps
    assert survival.skipped
