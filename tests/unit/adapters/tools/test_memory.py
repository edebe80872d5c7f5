"""Remembering: a fact in one line goes to whoever keeps it."""

import pytest

from lamella.adapters.tools.memory import make_remember_tool


def test_a_fact_is_handed_on_in_one_line_and_what_became_of_it_is_told() -> None:
    kept: list[str] = []
    tool = make_remember_tool(lambda fact: kept.append(fact) or "Kept.")  # type: ignore[func-returns-value]
    assert tool.run is not None
    assert tool.run(fact="  The garden\nlies north. ") == "Kept."
    assert kept == ["The garden lies north."]


@pytest.mark.parametrize("fact", [" ", "x" * 2_001])
def test_nothing_and_too_much_is_no_fact(fact: str) -> None:
    tool = make_remember_tool(lambda _fact: "Kept.")
    assert tool.run is not None
    with pytest.raises(ValueError, match="fact"):
        tool.run(fact=fact)
