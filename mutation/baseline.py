"""The baseline: how many mutants may survive in each package of core. The numbers are only ever lowered."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BASELINE_FILE = Path(__file__).with_name("baseline.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Survivors allowed per package, in samples of one size drawn with one seed."""

    seed: int
    sample: int
    survivors: Mapping[str, int]

    def find_problem(self, package: str, survivors: int) -> str | None:
        """Says that more mutants survived than may; None if they did not."""
        allowed = self.survivors.get(package)
        if allowed is None:
            return "no baseline is recorded; make mutate RECORD=1 records one"
        if survivors > allowed:
            return f"{survivors} survived, and {allowed} may"
        return None

    def lower(self, found: Mapping[str, int]) -> "Baseline":
        """The baseline with the numbers found, wherever they are lower or new."""
        lowest = {package: min(count, self.survivors.get(package, count)) for package, count in found.items()}
        together = {**self.survivors, **lowest}
        return Baseline(seed=self.seed, sample=self.sample, survivors=dict(sorted(together.items())))


def load_baseline(path: Path = BASELINE_FILE) -> Baseline:
    """Read the recorded baseline."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return Baseline(seed=data["seed"], sample=data["sample"], survivors=data["survivors"])


def save_baseline(baseline: Baseline, path: Path = BASELINE_FILE) -> None:
    """Record a baseline."""
    data = {"seed": baseline.seed, "sample": baseline.sample, "survivors": dict(baseline.survivors)}
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
