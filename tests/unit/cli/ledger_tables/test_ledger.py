"""The printed ledger: its colours, and its sentences about turns without a call."""

import pytest

from lamella.cli import ledger_tables as ledger
from lamella.cli.ledger_tables import print_ledger
from lamella.core.log.call import CacheOutcome
from lamella.schemas.ledger import TurnLedgerRow


def test_verdict_colours_cover_only_outcomes() -> None:
    assert set(ledger._VERDICT_COLOURS) <= set(CacheOutcome)


def test_each_status_without_call_has_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    standings = list(ledger._STATUS_WITHOUT_CALL)
    rows = [
        TurnLedgerRow(number=number, message="m", at="", text=f"{name}\x1b[2J", status=name, calls=())
        for number, name in enumerate(standings, start=1)
    ]
    print_ledger("garden", rows)
    lines = capsys.readouterr().out.splitlines()
    for number, name in enumerate(standings, start=1):
        at = lines.index(f"turn {number}  {name}\\x1b[2J")
        assert lines[at + 1] == f"  {ledger._STATUS_WITHOUT_CALL[name]}"
    assert lines[-1] == "3 turns · 0 calls"
