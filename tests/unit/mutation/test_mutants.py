"""Mutants: one change each, in an order that does not depend on the rest of the code."""

from pathlib import Path

from mutation.mutants import Mutant, sample_mutants
from tests.unit.mutation.sample_project import BOUNDS, build_sample_project


def changes(root: Path, *, size: int = 1_000, seed: int = 1) -> list[str]:
    return [mutant.change for mutant in sample(root, size=size, seed=seed)]


def sample(root: Path, *, size: int = 1_000, seed: int = 1) -> list[Mutant]:
    files = sorted((root / "src" / "sample" / "packages" / "one").glob("*.py"))
    return sample_mutants(root / "src", files, size=size, seed=seed)


def test_mutant_changes_one_line_and_names_it(tmp_path: Path) -> None:
    build_sample_project(tmp_path)
    (mutant,) = [mutant for mutant in sample(tmp_path) if "total >= limit" in mutant.change]
    source = (tmp_path / "src" / mutant.path).read_text(encoding="utf-8")
    assert mutant.path == "sample/packages/one/bounds.py"
    assert mutant.change == "return total > limit -> return total >= limit"
    assert source.splitlines()[mutant.line - 1] == "    return total > limit"
    assert mutant.source == source.replace("total > limit", "total >= limit")


def test_mutants_differ_and_compile(tmp_path: Path) -> None:
    build_sample_project(tmp_path)
    found = [mutant.source for mutant in sample(tmp_path)]
    assert len(set(found)) == len(found) > 8
    for source in found:
        compile(source, "mutant", "exec")


def test_annotations_class_arguments_and_error_texts_are_not_mutated(tmp_path: Path) -> None:
    build_sample_project(tmp_path)
    found = changes(tmp_path)
    assert not any("import" in change or "class Box" in change for change in found)
    assert not any("THE NAME" in change or "XXThe name" in change for change in found)
    assert any("ValueError(None)" in change for change in found)


def test_smaller_sample_is_the_beginning_of_a_larger_one(tmp_path: Path) -> None:
    build_sample_project(tmp_path)
    assert changes(tmp_path, size=4) == changes(tmp_path)[:4]
    assert changes(tmp_path, seed=2) != changes(tmp_path)
    assert sorted(changes(tmp_path, seed=2)) == sorted(changes(tmp_path))


def test_added_code_does_not_reorder_the_other_mutants(tmp_path: Path) -> None:
    build_sample_project(tmp_path)
    before = changes(tmp_path)
    path = tmp_path / "src" / "sample" / "packages" / "one" / "bounds.py"
    path.write_text(f"{BOUNDS}\n\nLATER = 3\n", encoding="utf-8")
    assert [change for change in changes(tmp_path) if "LATER" not in change] == before
