"""A room is tried in a copy: first with its own tests, then with others, and nothing of it is left behind."""

from pathlib import Path

import pytest
from mutation.__main__ import describe_score
from mutation.bed import BrokenSuiteError, Fate, Suite, TestBed
from mutation.mutants import Mutant
from mutation.room import OtherTests, RoomScore, try_room
from tests.unit.mutation.toys import build_toy


def put(root: Path, old: str, new: str) -> Mutant:
    path = "toy/rooms/one/bounds.py"
    source = (root / "src" / path).read_text(encoding="utf-8")
    assert source.count(old) == 1
    return Mutant(path=path, line=1, change=f"{old} -> {new}", source=source.replace(old, new))


OWN, OTHERS = Suite(tests=("tests/one",), seconds=20), Suite(tests=("tests/others",), seconds=20)


@pytest.mark.parametrize(
    ("old", "new", "fate"),
    [
        ("total > limit", "total >= limit", Fate.OWN),
        ('name + "!"', 'name + "?"', Fate.OTHERS),
        ("if not name", "if name is None", Fate.SURVIVED),
        ("number -= 1", "number += 1", Fate.OWN),
    ],
)
def test_a_mutant_is_killed_by_its_own_tests_by_others_or_survives(
    tmp_path: Path, old: str, new: str, fate: Fate
) -> None:
    project = build_toy(tmp_path)
    mutant = put(tmp_path, old, new)
    own = Suite(tests=OWN.tests, seconds=2) if new == "number += 1" else OWN
    with TestBed(source=project.source, copy=tmp_path / "copy", project=tmp_path) as bed:
        assert bed.try_mutant(mutant, own=own, others=lambda: OTHERS) is fate
    assert (tmp_path / "src" / mutant.path).read_text() == (tmp_path / "copy" / mutant.path).read_text()
    assert old in (tmp_path / "src" / mutant.path).read_text()


def test_tests_that_fail_without_a_mutant_are_not_used(tmp_path: Path) -> None:
    project = build_toy(tmp_path)
    (tmp_path / "tests" / "one" / "test_wrong.py").write_text("def test_wrong():\n    assert False\n")
    with TestBed(source=project.source, copy=tmp_path / "copy", project=tmp_path) as bed:
        with pytest.raises(BrokenSuiteError, match="tests/one fails without a mutant"):
            bed.measure(("tests/one",))
        assert bed.measure(("tests/absent",)) is None
        measured = bed.measure(("tests/others", "tests/absent"))
    assert measured is not None
    assert measured.tests == ("tests/others",)
    assert measured.seconds >= 10


def test_other_tests_are_measured_once_for_all_rooms(tmp_path: Path) -> None:
    project = build_toy(tmp_path)
    others = OtherTests(project.others)
    with TestBed(source=project.source, copy=tmp_path / "copy", project=tmp_path) as bed:
        assert OtherTests(("tests/absent",)).measure(bed, own="tests/one") is None
        first = others.measure(bed, own="tests/one")
        assert first is not None
        assert first.tests == ("tests/others", "--ignore=tests/one")
        (tmp_path / "tests" / "others" / "test_wrong.py").write_text("def test_wrong():\n    assert False\n")
        again = others.measure(bed, own="tests/two")
        assert again == Suite(tests=("tests/others", "--ignore=tests/two"), seconds=first.seconds)
        with pytest.raises(BrokenSuiteError, match="tests/others fails without a mutant"):
            OtherTests(project.others).measure(bed, own="tests/one")


def test_a_room_is_scored_and_each_survivor_is_named_with_its_place(tmp_path: Path) -> None:
    project = build_toy(tmp_path)
    assert project.find_rooms() == ["empty", "one"]
    score = try_room(project, "one", OtherTests(project.others), size=2, seed=1)
    assert sum(score.count(fate) for fate in Fate) == len(score.fates) == 2
    assert len(score.survivors) == score.count(Fate.SURVIVED)
    assert try_room(project, "empty", OtherTests(()), size=3, seed=1) == RoomScore(room="empty", fates=())
    alive, dead = put(tmp_path, "if not name", "if name"), put(tmp_path, "total > limit", "total >= limit")
    told = RoomScore(room="one", fates=((alive, Fate.SURVIVED), (dead, Fate.OWN)))
    assert list(describe_score(told)) == [
        "one: 2 mutants, 1 killed by its own tests, 0 killed by others, 1 survived",
        "  src/toy/rooms/one/bounds.py:1  if not name -> if name",
    ]
