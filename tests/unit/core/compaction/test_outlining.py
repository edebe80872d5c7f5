"""Outlining what is attached now: only where it does not fit, shared fairly, and never what cannot be fetched again."""

from tests.unit.core.compaction.talking import NOW, Story, attaching, make_rules, note, result, selection

from lamella.core.artifacts.model import Policy
from lamella.core.budget.thresholds import Budget
from lamella.core.compaction.outlining import outline_turn
from lamella.core.log.turn import Turn
from lamella.core.values import replace

BUDGET = Budget(window=1_000, reserve=0)
LONG = "# One\n\n" + "first words " * 400 + "\n# Two\n\n" + "last words " * 400


def outlined(turn: Turn, *, alone: bool = True) -> Turn:
    story = Story(make_rules(budget=BUDGET))
    bound = story.bind(turn)
    return outline_turn(bound, story.open(turn), budget=BUDGET, alone=alone)


def test_what_fits_alone_is_as_it_was() -> None:
    turn = attaching(note("a.md", "words " * 400))
    assert all(one.condensed is None for one in outlined(turn).attached)
    assert outlined(turn, alone=False).attached[0].condensed is not None


def test_long_items_share_what_is_left_and_short_ones_stay_whole() -> None:
    turn = attaching(note("a.md", LONG), note("b.md", LONG), note("short.md", "short"), result("x", LONG))
    made = outlined(replace(turn, text="Why?"))
    a, b, short = (one.condensed for one in made.attached)
    assert short is None
    assert a == b
    assert a is not None
    assert a.startswith("# One\nfirst words")
    assert "characters are left out.]" in a
    assert made.results[0].condensed is not None
    told = {warning.partition(" is sent as its outline: ")[0] for warning in made.warnings}
    assert told == {"a.md", "b.md", made.results[0].id}
    assert Story(make_rules(budget=BUDGET)).ask(made).tokens.total <= BUDGET.own + 60


def test_pins_and_what_cannot_be_fetched_again_stand_as_they_are() -> None:
    for kept in (note("a.md", LONG, policy=Policy.PIN), selection("a.md", LONG)):
        turn = attaching(kept)
        assert outlined(turn) == Story().bind(turn)


def test_where_nothing_is_left_to_it_one_line_says_how_much_is_left_out() -> None:
    turn = replace(attaching(note("a.md", LONG)), text="x" * 4 * 900)
    (made,) = outlined(turn).attached
    told = f"[Made without a model: the beginning of each part. {len(LONG):,} characters are left out.]"
    assert made.condensed == told
    assert NOW.text not in told
