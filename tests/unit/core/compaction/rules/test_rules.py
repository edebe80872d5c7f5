"""Compaction rules: the defaults, and invalid values."""

import pytest

from lamella.core.artifacts.model import ArtifactKind
from lamella.core.compaction.rules import CompactionConfig, KindCompactionConfig, SummaryConfig
from lamella.core.log.receipts import STEP_ORDER
from lamella.errors import SettingError


def test_default_chain_is_the_documented_one() -> None:
    config = CompactionConfig()
    assert (config.steps, config.extra_acknowledgements, config.kinds, config.stages) == (
        STEP_ORDER,
        frozenset(),
        {},
        (),
    )
    assert (config.default_kind.preview_over, config.default_kind.handle_after, config.default_kind.shrink) == (
        5_000,
        None,
        True,
    )
    caps = config.summary
    assert (caps.max_input_tokens, caps.max_output_tokens, caps.max_exact_tokens, caps.turns, caps.item) == (
        16_000,
        500,
        500,
        3,
        2_000,
    )


def test_rules_of_kind_win_over_defaults() -> None:
    own = KindCompactionConfig(shrink=False)
    config = CompactionConfig(kinds={ArtifactKind.URL: own})
    assert config.for_kind(ArtifactKind.URL) is own
    assert config.for_kind(ArtifactKind.NOTE) is config.default_kind


@pytest.mark.parametrize("wrong", [{"preview_over": -1}, {"handle_after": -1}])
def test_negative_setting_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError, match="cannot be below 0") as caught:
        KindCompactionConfig(**wrong)  # type: ignore[arg-type]
    assert caught.value.hint.startswith("Give how many characters")
    KindCompactionConfig(preview_over=0, handle_after=0)


def test_minimum_summary_limits_are_one() -> None:
    SummaryConfig(max_input_tokens=1, max_output_tokens=1, max_exact_tokens=0, turns=1, item=1)
    with pytest.raises(SettingError) as caught:
        SummaryConfig(max_input_tokens=0)
    assert caught.value.hint == "Give whole numbers above 0; exact may be 0."
