"""Calls: the words in every store, and those that people read."""

from lamella.core.log.call import CacheOutcome, CacheVerdict, PrefixChange, PrefixChangeCause, PrefixChangeTrigger

WORDS = {
    "first": "first turn: nothing was cached yet",
    "hit": "hit",
    "moved": "the prefix changed: artifact_updated(a.md)",
    "too_short": "too short for this model's cache",
    "cold": "nothing of it was cached, as expected",
    "expired": "the provider's cache entry expired",
    "evicted": "the provider dropped its cache entry",
    "unknown": "the provider does not say what was cached",
    "unexplained": "the prefix changed for an unknown reason: a bug, please report it",
}


def test_prefix_change_causes_are_the_stored_words() -> None:
    assert [cause.value for cause in PrefixChangeCause] == [
        "first_turn",
        "system_changed",
        "tools_changed",
        "model_changed",
        "artifact_added",
        "artifact_updated",
        "epoch_folded",
        "compacted",
        "history_edited",
        "branch",
        "layout_changed",
        "renderer_changed",
        "none",
    ]


def test_prefix_change_triggers_are_the_stored_words() -> None:
    assert [one.value for one in PrefixChangeTrigger] == ["system", "tools", "model", "terms", "drop", "fold", "rules"]


def test_every_outcome_has_stored_word_and_sentence() -> None:
    movement = PrefixChange(cause=PrefixChangeCause.ARTIFACT_UPDATED, segment="a.md")
    told = {outcome.value: CacheVerdict(outcome=outcome, prefix_change=movement) for outcome in CacheOutcome}
    assert {word: str(verdict) for word, verdict in told.items()} == WORDS
    assert [word for word, verdict in told.items() if verdict.is_caused_by_lamella] == ["moved", "unexplained"]


def test_prefix_change_names_its_segment() -> None:
    assert str(PrefixChange(cause=PrefixChangeCause.BRANCH)) == "branch"
    assert str(PrefixChange(cause=PrefixChangeCause.SYSTEM_CHANGED, segment="memory")) == "system_changed(memory)"
