"""Rows of cells as a table."""

from lamella.sources.converters import render_table


def test_rows_are_filled_up_and_cells_cannot_break_out() -> None:
    rows = [["a", "b|c"], ["one\ntwo"], ["back\\slash", "x", "y"]]
    assert render_table(rows) == ("| a | b\\|c |  |\n| --- | --- | --- |\n| one two |  |  |\n| back\\\\slash | x | y |")
    assert render_table([]) == ""
