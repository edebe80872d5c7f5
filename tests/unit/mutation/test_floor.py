"""The floor of survivors only falls."""

from pathlib import Path

from mutation.floor import FLOOR, Floor, load_floor, save_floor
from tests.contracts.places import CORE

ONE = Floor(seed=1, sample=100, survivors={"text": 4})


def test_a_room_may_have_as_many_survivors_as_its_floor_and_not_one_more() -> None:
    assert ONE.judge("text", 4) is None
    assert ONE.judge("text", 5) == "5 survived, and 4 may"
    assert "no floor is recorded" in (ONE.judge("search", 0) or "")


def test_a_floor_is_lowered_and_never_raised() -> None:
    assert ONE.lower({"text": 9, "search": 7}).survivors == {"search": 7, "text": 4}
    assert ONE.lower({"text": 3}).survivors == {"text": 3}


def test_a_floor_is_read_as_it_was_recorded(tmp_path: Path) -> None:
    save_floor(ONE, tmp_path / "floor.json")
    assert load_floor(tmp_path / "floor.json") == ONE


def test_the_recorded_floor_is_of_a_hundred_mutants_in_every_room_that_there_is() -> None:
    floor = load_floor(FLOOR)
    assert floor.sample == 100
    packages = {path.parent.name for path in CORE.glob("*/__init__.py")} | {"budget", "messages"}
    assert set(floor.survivors) == packages
