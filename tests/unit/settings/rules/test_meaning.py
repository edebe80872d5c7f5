"""The meaning of compaction settings: for all, for a kind of source, and for a runner; the nearer wins."""

import pytest

from lamella import Conversation, Note, Pdf
from lamella.core.artifacts.model import ArtifactKind
from lamella.core.compaction.rules import CompactionConfig, KindCompactionConfig, SummaryConfig
from lamella.core.log.receipts import STEP_ORDER, CompactionStepName
from lamella.core.log.turn import TurnSettings
from lamella.errors import SettingError
from lamella.settings.rules import build_prompt_settings
from lamella.settings.word_lists import load_word_lists
from lamella.wiring import load_settings, open_adapters

LONG = "# Heading\n\n" + "long words " * 2_000


def compaction(given: object, runner: str = "chat") -> CompactionConfig:
    return build_prompt_settings(load_settings({"compaction": given}), open_adapters(None)).compaction_config_for(
        TurnSettings(runner=runner)
    )


def test_empty_settings_give_documented_chain() -> None:
    assert compaction({}) == CompactionConfig(words=load_word_lists())
    assert CompactionConfig().steps == STEP_ORDER
    assert KindCompactionConfig() == KindCompactionConfig(preview_over=5_000, handle_after=None, shrink=True)


def test_steps_words_and_summaries_are_set_by_name() -> None:
    given = {"steps": ["handle", "chitchat"], "words": ["Jawohl"], "summary": {"writes": 80}}
    made = compaction(given)
    assert made.steps == (CompactionStepName.HANDLE, CompactionStepName.CHITCHAT)
    assert made.extra_acknowledgements == {"jawohl"}
    assert made.summary == SummaryConfig(max_output_tokens=80)


def test_kind_setting_wins_over_every_kind() -> None:
    made = compaction({"every_kind": {"preview_over": 100, "handle_after": 1}, "kinds": {"pdf": {"shrink": False}}})
    assert made.for_kind(ArtifactKind.NOTE) == KindCompactionConfig(preview_over=100, handle_after=1)
    assert made.for_kind(ArtifactKind.PDF) == KindCompactionConfig(preview_over=100, handle_after=1, shrink=False)


def test_runner_setting_wins_over_general_one() -> None:
    own = {"steps": ["expendable"], "kinds": {"pdf": {"handle_after": 9}}, "summary": {"turns": 5}}
    given = {
        "steps": ["chitchat"],
        "kinds": {"pdf": {"preview_over": 7}},
        "summary": {"writes": 80},
        "runners": {"chat": own},
    }
    made = compaction(given)
    assert made.steps == (CompactionStepName.EXPENDABLE,)
    assert made.for_kind(ArtifactKind.PDF) == KindCompactionConfig(preview_over=7, handle_after=9)
    assert made.summary == SummaryConfig(max_output_tokens=80, turns=5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": ["everything"]},
        {"steps": ["handle", "handle"]},
        {"kinds": {"novel": {}}},
        {"runners": {"jogger": {}}},
        {"summary": {"writes": 0}},
        {"every_kind": {"handle_after": -1}},
        {"speed": 3},
    ],
)
def test_invalid_compaction_setting_is_refused(wrong: object) -> None:
    with pytest.raises(SettingError):
        compaction(wrong)


def test_kind_rules_apply_in_conversation() -> None:
    chat = Conversation(compaction={"kinds": {"pdf": {"shrink": False}}, "steps": ["preview"]})
    chat.ask("Read both.", attach=[Note(path="a.md", text=LONG), Pdf(path="b.pdf", text=LONG + "!")])
    chat.reply("Done.")
    receipt = chat.compact(0.0001)
    assert receipt is not None
    assert [step.removed for step in receipt.steps] == [("a.md",)]


def test_chat_runner_steps_apply_in_conversation() -> None:
    chat = Conversation(compaction={"runners": {"chat": {"steps": ["expendable"]}}})
    for number in range(6):
        chat.ask(f"Question {number}?")
        chat.reply("because " * 50)
    receipt = chat.compact(0.0001)
    assert receipt is not None
    assert [step.name.value for step in receipt.steps] == ["expendable"]
    assert receipt.skipped == ()


@pytest.mark.parametrize("to", [0, -0.5, 1.5, True, "half", None])
def test_share_is_above_zero_and_up_to_one(to: object) -> None:
    chat = Conversation()
    chat.ask("Why?")
    chat.reply("So.")
    if to is None:
        assert chat.plan(to).receipt is None
        return
    with pytest.raises(SettingError, match="share"):
        chat.plan(to)  # type: ignore[arg-type]


def test_profile_sets_thresholds_and_explicit_settings_win() -> None:
    budget = build_prompt_settings(
        load_settings({"profile": "seed-paper", "target": 0.5, "warn": 0.4}), open_adapters(None)
    ).budget
    assert (budget.warn, budget.target, budget.trigger, budget.hard, budget.reserve) == (0.4, 0.5, 0.85, 0.95, 0)
    with pytest.raises(SettingError, match="no profile"):
        load_settings({"profile": "makalah"})


def test_runner_that_there_is_not_is_refused() -> None:
    with pytest.raises(SettingError, match="There is no runner 'jogger'"):
        Conversation(runner="jogger")
