"""A package is tested in a copy of the source: first with its own tests, then with others."""

from pathlib import Path

import pytest
from mutation.__main__ import describe_score
from mutation.mutants import Mutant
from mutation.packages import OtherTests, OwnTests, PackageScore, score_package, score_sample
from mutation.source_copy import BrokenSuiteError, Outcome, SourceCopy, Suite
from tests.unit.mutation.sample_project import build_sample_project


def replace_in_bounds(root: Path, old: str, new: str) -> Mutant:
    path = "sample/packages/one/bounds.py"
    source = (root / "src" / path).read_text(encoding="utf-8")
    assert source.count(old) == 1
    return Mutant(path=path, line=1, change=f"{old} -> {new}", source=source.replace(old, new))


OWN_SUITE, OTHER_SUITE = Suite(tests=("tests/one",), seconds=20), Suite(tests=("tests/others",), seconds=20)


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ("total > limit", "total >= limit", Outcome.KILLED_BY_OWN_TESTS),
        ('name + "!"', 'name + "?"', Outcome.KILLED_BY_OTHER_TESTS),
        ("if not name", "if name is None", Outcome.SURVIVED),
        ("number -= 1", "number += 1", Outcome.KILLED_BY_OWN_TESTS),
    ],
)
def test_mutant_is_killed_by_own_tests_or_others_or_survives(
    tmp_path: Path, old: str, new: str, outcome: Outcome
) -> None:
    project = build_sample_project(tmp_path)
    mutant = replace_in_bounds(tmp_path, old, new)
    own = Suite(tests=OWN_SUITE.tests, seconds=2) if new == "number += 1" else OWN_SUITE
    with SourceCopy(source=project.source, copy=tmp_path / "copy", project=tmp_path) as copy:
        assert copy.test_mutant(mutant, own=own, others=lambda: OTHER_SUITE) is outcome
    assert (tmp_path / "src" / mutant.path).read_text() == (tmp_path / "copy" / mutant.path).read_text()
    assert old in (tmp_path / "src" / mutant.path).read_text()


def test_tests_that_fail_without_mutant_are_refused(tmp_path: Path) -> None:
    project = build_sample_project(tmp_path)
    (tmp_path / "tests" / "one" / "test_wrong.py").write_text("def test_wrong():\n    assert False\n")
    with SourceCopy(source=project.source, copy=tmp_path / "copy", project=tmp_path) as copy:
        with pytest.raises(BrokenSuiteError, match="tests/one fails without a mutant"):
            copy.measure(("tests/one",))
        assert copy.measure(("tests/absent",)) is None
        measured = copy.measure(("tests/others", "tests/absent"))
    assert measured is not None
    assert measured.tests == ("tests/others",)
    assert measured.seconds >= 10


def test_other_tests_are_timed_once_for_all_packages(tmp_path: Path) -> None:
    project = build_sample_project(tmp_path)
    others = OtherTests(project.other_tests)
    with SourceCopy(source=project.source, copy=tmp_path / "copy", project=tmp_path) as copy:
        assert OtherTests(("tests/absent",)).measure(copy, own=("tests/one",)) is None
        first = others.measure(copy, own=("tests/one",))
        assert first is not None
        assert first.tests == ("tests/others", "--ignore=tests/one")
        (tmp_path / "tests" / "others" / "test_wrong.py").write_text("def test_wrong():\n    assert False\n")
        again = others.measure(copy, own=("tests/two",))
        assert again == Suite(tests=("tests/others", "--ignore=tests/two"), seconds=first.seconds)
        with pytest.raises(BrokenSuiteError, match="tests/others fails without a mutant"):
            OtherTests(project.other_tests).measure(copy, own=("tests/one",))


def test_score_lists_each_survivor_with_its_line(tmp_path: Path) -> None:
    project = build_sample_project(tmp_path)
    score = score_package(project, "one", OtherTests(project.other_tests), size=2, seed=1)
    assert sum(score.count(outcome) for outcome in Outcome) == len(score.outcomes) == 2
    assert len(score.survivors) == score.count(Outcome.SURVIVED)
    empty = score_package(project, "empty", OtherTests(()), size=3, seed=1)
    assert empty == PackageScore(name="empty", outcomes=())
    alive = replace_in_bounds(tmp_path, "if not name", "if name")
    dead = replace_in_bounds(tmp_path, "total > limit", "total >= limit")
    shown = PackageScore(name="one", outcomes=((alive, Outcome.SURVIVED), (dead, Outcome.KILLED_BY_OWN_TESTS)))
    assert list(describe_score(shown)) == [
        "one: 2 mutants, 1 killed by its own tests, 0 killed by others, 1 survived",
        "  src/sample/packages/one/bounds.py:1  if not name -> if name",
    ]


def test_packages_are_folders_with_code_and_modules_with_tests(tmp_path: Path) -> None:
    project = build_sample_project(tmp_path)
    assert project.find_packages() == ["empty", "one", "single"]
    assert [path.name for path in project.find_files("one")] == ["__init__.py", "bounds.py"]
    assert [path.name for path in project.find_files("single")] == ["single.py"]


def test_pooled_sample_runs_only_the_tests_of_each_package(tmp_path: Path) -> None:
    project = build_sample_project(tmp_path)
    for folder in ("others", "one"):
        (tmp_path / "tests" / folder / "test_wrong.py").write_text("def test_wrong():\n    assert False\n")
    score = score_sample(project, ["empty", "single"], OwnTests(project), size=1_000, seed=3)
    outcomes = {mutant.change: outcome for mutant, outcome in score.outcomes}
    assert score.name == "seed 3"
    assert {mutant.path for mutant, _ in score.outcomes} == {"sample/packages/single.py"}
    assert outcomes["LIMIT = 3 > 2 -> LIMIT = 3 >= 2"] is Outcome.SURVIVED
    assert outcomes["LIMIT = 3 > 2 -> LIMIT = 3 > 3"] is Outcome.KILLED_BY_OWN_TESTS
