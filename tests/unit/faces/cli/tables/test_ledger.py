"""The ledger for people: words it colours, and what it says of turns that nobody sent."""

import re

import pytest
from tests.contracts.places import doc

from lamella.core.log.call import Outcome
from lamella.faces.cli.tables import ledger
from lamella.faces.cli.tables.ledger import print_ledger
from lamella.views.ledger import LedgerRow


def test_what_is_coloured_is_an_outcome() -> None:
    assert set(ledger._COLOURS) <= set(Outcome)


def test_each_standing_without_a_call_has_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = (line for line in doc("ledger.md").splitlines() if line.startswith("| `standing` |"))
    standings = [word for word in re.findall(r"`(\w+)`", line) if word not in ("standing", "called")]
    rows = [
        LedgerRow(number=number, message="m", at="", text=f"{name}\x1b[2J", standing=name, calls=())
        for number, name in enumerate(standings, start=1)
    ]
    print_ledger("garden", rows)
    lines = capsys.readouterr().out.splitlines()
    for number, name in enumerate(standings, start=1):
        at = lines.index(f"turn {number}  {name}\\x1b[2J")
        assert lines[at + 1] == f"  {ledger._NO_CALL[name]}"
    assert lines[-1] == "3 turns · 0 calls"
