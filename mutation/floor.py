"""The floor: how many survivors each room is allowed. It only falls."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FLOOR = Path(__file__).with_name("floor.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Survivors allowed per room, in samples of one size drawn with one seed."""

    seed: int
    sample: int
    survivors: Mapping[str, int]

    def judge(self, room: str, survivors: int) -> str | None:
        """What is wrong with so many survivors, or nothing."""
        allowed = self.survivors.get(room)
        if allowed is None:
            return "no floor is recorded; make mutate RECORD=1 records one"
        if survivors > allowed:
            return f"{survivors} survived, and {allowed} may"
        return None

    def lower(self, found: Mapping[str, int]) -> "Floor":
        """The floor with what was found, wherever that is lower or new."""
        lowest = {room: min(count, self.survivors.get(room, count)) for room, count in found.items()}
        together = {**self.survivors, **lowest}
        return Floor(seed=self.seed, sample=self.sample, survivors=dict(sorted(together.items())))


def load_floor(path: Path = FLOOR) -> Floor:
    """The floor as it is recorded."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return Floor(seed=data["seed"], sample=data["sample"], survivors=data["survivors"])


def save_floor(floor: Floor, path: Path = FLOOR) -> None:
    """Record a floor."""
    data = {"seed": floor.seed, "sample": floor.sample, "survivors": dict(floor.survivors)}
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
