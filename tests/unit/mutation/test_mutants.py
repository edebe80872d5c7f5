"""Mutants: one change each, in an order that does not depend on the rest of the code."""

from pathlib import Path

from mutation.mutants import Mutant, sample_mutants
from tests.unit.mutation.toys import ROOM, build_toy


def changes(root: Path, *, size: int = 1_000, seed: int = 1) -> list[str]:
    return [mutant.change for mutant in sample(root, size=size, seed=seed)]


def sample(root: Path, *, size: int = 1_000, seed: int = 1) -> list[Mutant]:
    return sample_mutants(root / "src", root / "src" / "toy" / "rooms" / "one", size=size, seed=seed)


def test_a_mutant_is_the_file_with_one_line_changed_and_names_that_line(tmp_path: Path) -> None:
    build_toy(tmp_path)
    (mutant,) = [mutant for mutant in sample(tmp_path) if "total >= limit" in mutant.change]
    source = (tmp_path / "src" / mutant.path).read_text(encoding="utf-8")
    assert mutant.path == "toy/rooms/one/bounds.py"
    assert mutant.change == "return total > limit -> return total >= limit"
    assert source.splitlines()[mutant.line - 1] == "    return total > limit"
    assert mutant.source == source.replace("total > limit", "total >= limit")


def test_every_mutant_is_another_one_and_can_be_compiled(tmp_path: Path) -> None:
    build_toy(tmp_path)
    found = [mutant.source for mutant in sample(tmp_path)]
    assert len(set(found)) == len(found) > 8
    for source in found:
        compile(source, "mutant", "exec")


def test_annotations_class_arguments_and_the_words_of_errors_are_left_alone(tmp_path: Path) -> None:
    build_toy(tmp_path)
    found = changes(tmp_path)
    assert not any("import" in change or "class Box" in change for change in found)
    assert not any("NOBODY" in change or "XXNobody" in change for change in found)
    assert any("ValueError(None)" in change for change in found)


def test_a_smaller_sample_is_the_beginning_of_a_larger_one_and_a_seed_shuffles_it(tmp_path: Path) -> None:
    build_toy(tmp_path)
    assert changes(tmp_path, size=4) == changes(tmp_path)[:4]
    assert changes(tmp_path, seed=2) != changes(tmp_path)
    assert sorted(changes(tmp_path, seed=2)) == sorted(changes(tmp_path))


def test_code_that_is_added_leaves_the_order_of_the_rest_as_it_was(tmp_path: Path) -> None:
    build_toy(tmp_path)
    before = changes(tmp_path)
    path = tmp_path / "src" / "toy" / "rooms" / "one" / "bounds.py"
    path.write_text(f"{ROOM}\n\nLATER = 3\n", encoding="utf-8")
    assert [change for change in changes(tmp_path) if "LATER" not in change] == before
