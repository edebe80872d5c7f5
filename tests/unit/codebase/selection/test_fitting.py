"""Fitting files into a budget."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.codebase.repositories import count

from lamella.codebase.index import RankedFile
from lamella.codebase.selection import BudgetFitter, CodeViews
from lamella.ports import CodeFile, CodeForm


def fit(files: dict[str, str], budget: int, *, named: str = "") -> tuple[list[CodeFile], str, int]:
    """Files in the order they are given, each with a skeleton of a fifth of its text."""
    ranked = [
        RankedFile(path, 10.0 - number / 100, {"text": 1.0} | ({"named": 1.0} if path == named else {}))
        for number, path in enumerate(files)
    ]

    def show(path: str) -> CodeViews:
        return CodeViews(files[path], lambda: files[path][: len(files[path]) // 5])

    chosen, _, text, tokens = BudgetFitter("", "q", budget=budget, count_tokens=count, load_views=show).fit(
        ranked, total_files=len(files)
    )
    return chosen, text, tokens


def forms(files: list[CodeFile]) -> dict[str, str]:
    return {one.path: one.form.value for one in files}


def test_best_files_are_full_others_skeletons_and_rest_names() -> None:
    files = {f"{number:02}.py": "x" * 2_000 for number in range(40)}
    chosen, text, tokens = fit(files, 3_000)
    told = list(forms(chosen).values())
    assert told[0] == "full"
    assert {"full", "skeleton", "name"} == set(told)
    assert max(at for at, form in enumerate(told) if form == "skeleton") < told.index("name") + 1
    assert tokens == count(text) <= 3_000


def test_all_files_are_full_if_they_fit() -> None:
    chosen, _, _ = fit({"a.py": "x" * 100, "b.py": "y" * 100}, 1_000)
    assert set(forms(chosen).values()) == {"full"}


def test_file_larger_than_budget_is_skeleton_and_hides_no_others() -> None:
    chosen, _, _ = fit({"large.py": "x" * 6_000, "small.py": "y" * 200}, 1_000)
    assert forms(chosen) == {"large.py": "skeleton", "small.py": "full"}


def test_named_long_file_may_exceed_its_share() -> None:
    files = {"first.py": "y" * 2_000, "long.py": "x" * 2_800}
    assert forms(fit(files, 1_000)[0]) == {"first.py": "full", "long.py": "skeleton"}
    assert forms(fit(files, 1_000, named="long.py")[0])["long.py"] == "full"


def test_empty_file_is_listed_by_name() -> None:
    assert forms(fit({"empty.py": "", "b.py": "y"}, 1_000)[0]) == {"empty.py": "name", "b.py": "full"}


@pytest.mark.parametrize("budget", [1, 10, 40])
def test_tiny_budget_selects_nothing(budget: int) -> None:
    assert fit({"a.py": "x" * 100}, budget)[0] == []


@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 5_000), max_size=30),
    budget=st.integers(1, 6_000),
    odd=st.sampled_from(["x", "```\n", "</content>", "é", "\n"]),
)
def test_selection_stays_within_budget(sizes: list[int], budget: int, odd: str) -> None:
    files = {f"{number}.py": (odd * size)[:size] for number, size in enumerate(sizes)}
    chosen, text, tokens = fit(files, budget)
    assert tokens == count(text)
    assert tokens <= budget or not chosen


def test_text_length_follows_form() -> None:
    chosen, _, _ = fit({f"{number}.py": "x" * 2_000 for number in range(30)}, 2_000)
    lengths = {one.form: len(one.text) for one in chosen}
    assert lengths == {CodeForm.FULL: 2_000, CodeForm.SKELETON: 400, CodeForm.NAME: 0}
