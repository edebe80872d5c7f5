"""An allowance is spent in steps, and what is over is refused with its number."""

import pytest

from lamella.adapters.sources.dataview.language.allowance import LETTERS_OF_A_STEP, Allowance, QueryRefusal


def test_all_steps_may_be_spent_and_not_one_more() -> None:
    allowance = Allowance(3)
    allowance.spend()
    allowance.spend(2)
    with pytest.raises(QueryRefusal, match="it takes more than 3 steps"):
        allowance.spend()


def test_long_texts_take_more_steps_than_short_ones() -> None:
    Allowance(1).read(LETTERS_OF_A_STEP - 1)
    with pytest.raises(QueryRefusal):
        Allowance(1).read(LETTERS_OF_A_STEP)
