"""The baseline of survivors is only lowered, and covers every package of core."""

from pathlib import Path

from mutation.__main__ import CORE
from mutation.baseline import BASELINE_FILE, Baseline, load_baseline, save_baseline

BASELINE = Baseline(seed=1, sample=100, survivors={"text": 4})


def test_baseline_rejects_more_survivors_than_allowed() -> None:
    assert BASELINE.find_problem("text", 4) is None
    assert BASELINE.find_problem("text", 5) == "5 survived, and 4 may"
    assert "no baseline is recorded" in (BASELINE.find_problem("search", 0) or "")


def test_baseline_is_lowered_and_never_raised() -> None:
    assert BASELINE.lower({"text": 9, "search": 7}).survivors == {"search": 7, "text": 4}
    assert BASELINE.lower({"text": 3}).survivors == {"text": 3}


def test_saved_baseline_is_loaded_unchanged(tmp_path: Path) -> None:
    save_baseline(BASELINE, tmp_path / "baseline.json")
    assert load_baseline(tmp_path / "baseline.json") == BASELINE


def test_recorded_baseline_has_each_package_of_core() -> None:
    baseline = load_baseline(BASELINE_FILE)
    assert baseline.sample == 100
    assert sorted(baseline.survivors) == CORE.find_packages()
