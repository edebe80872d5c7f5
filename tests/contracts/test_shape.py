"""Files and functions stay small, flat and readable; the checker itself is shown to find what it looks for."""

import pytest
from tests.contracts.places import python_files, shown
from tests.contracts.shape import Limits, find_breaches

SOURCE = Limits(file_lines=400)
BENCH = Limits(file_lines=400, positional=None)
TESTS = Limits(file_lines=600, positional=None)


@pytest.mark.parametrize(
    ("folder", "limits"), [("src", SOURCE), ("bench", BENCH), ("mutation", SOURCE), ("tests", TESTS)]
)
def test_no_file_and_no_function_is_over_its_limits(folder: str, limits: Limits) -> None:
    breaches = [
        f"{shown(path)}: {breach}"
        for path in python_files(folder)
        for breach in find_breaches(path.read_text(encoding="utf-8"), limits)
    ]
    assert breaches == []


def _function(body: str, *, parameters: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"def walk({parameters}):\n{lines}\n"


def test_a_file_one_line_too_long_is_found() -> None:
    assert list(find_breaches("x = 1\n" * 400, SOURCE)) == []
    assert list(find_breaches("x = 1\n" * 401, SOURCE)) == ["has 401 lines, over 400"]


def test_a_function_one_line_too_long_is_found() -> None:
    assert list(find_breaches(_function("x = 1\n" * 49), SOURCE)) == []
    assert list(find_breaches(_function("x = 1\n" * 50), SOURCE)) == ["walk has 51 lines, over 50"]


def test_a_function_that_parts_too_often_is_found() -> None:
    branches = "if x:\n    y = 1\n"
    assert list(find_breaches(_function(branches * 7), SOURCE)) == []
    assert list(find_breaches(_function(branches * 8), SOURCE)) == ["walk has complexity 9, over 8"]


def test_a_fourth_parameter_must_be_given_by_name() -> None:
    assert list(find_breaches(_function("pass", parameters="a, b, c, *, d"), SOURCE)) == []
    assert list(find_breaches(_function("pass", parameters="self, a, b, c"), SOURCE)) == []
    found = list(find_breaches(_function("pass", parameters="a, b, c, d"), SOURCE))
    assert found == ["walk takes 4 parameters by position, over 3"]
