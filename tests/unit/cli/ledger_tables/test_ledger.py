"""The printed ledger: its colours, and its sentences about turns without a call."""

import pytest

from lamella.cli import ledger_tables as ledger
from lamella.cli.ledger_tables import print_ledger
from lamella.core.log.call import (
    CacheOutcome,
    CacheUsage,
    CacheVerdict,
    CallTiming,
    ModelCall,
    PrefixChange,
    PrefixChangeCause,
)
from lamella.core.messages import CacheDiagnosis, Usage
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


def row(outcome: CacheOutcome, **fields: object) -> TurnLedgerRow:
    verdict = CacheVerdict(outcome=outcome, prefix_change=PrefixChange(cause=PrefixChangeCause.NONE))
    call = ModelCall(model="m", verdict=verdict, usage=Usage(plain=10, read=30, output=5), **fields)  # type: ignore[arg-type]
    return TurnLedgerRow(number=1, message="m", at="", text="Hi", status="called", calls=(call,))


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (CacheOutcome.HIT, "2;32"),
        (CacheOutcome.FIRST, "2"),
        (CacheOutcome.PREFIX_CHANGED, "2;31"),
        (CacheOutcome.UNEXPLAINED, "1;2;31"),
        (CacheOutcome.EXPIRED, "2;33"),
        (CacheOutcome.EVICTED, "2;33"),
        (CacheOutcome.UNKNOWN, "2;39"),
    ],
)
def test_verdict_has_the_colour_of_its_outcome(
    outcome: CacheOutcome, code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    print_ledger("garden", [row(outcome)])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "verdict" in line]
    assert line.startswith(f"\x1b[2m  verdict   \x1b[0m\x1b[{code}m")


def test_unusual_calls_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        row(
            CacheOutcome.UNEXPLAINED,
            retries=2,
            stop="length",
            timing=CallTiming(build=0.5, first=1.25, total=2.0),
            diagnosis=CacheDiagnosis(verdict="miss", reason="the tools changed"),
            predicted=CacheUsage(read=32, write=0, uncached=8),
            by_layer={"L1_SYSTEM": 30, "L3_TURN": 0, "L5_USER": 10},
        ),
        row(CacheOutcome.HIT, retries=1, diagnosis=CacheDiagnosis(verdict="hit")),
    ]
    print_ledger("garden", rows)
    assert capsys.readouterr().out.splitlines() == [
        "garden  █ cached  ░ not cached",
        "",
        "turn 1  Hi",
        "  █████████████████████░░░░░░░      40  m",
        "  predicted 32 cached",
        "  reported  read 30 · write unknown · plain 10 · output 5",
        "  verdict   the prefix changed for an unknown reason: a bug, please report it",
        "  provider  says: the tools changed",
        "  layers    L1_SYSTEM 30 · L5_USER 10",
        "  money     no price known",
        "  time      built in 0.50 s · first word 1.25 s · all 2.00 s · 2 retries · ended: length",
        "",
        "turn 1  Hi",
        "  █████████████████████░░░░░░░      40  m",
        "  predicted unknown cached",
        "  reported  read 30 · write unknown · plain 10 · output 5",
        "  verdict   hit",
        "  provider  says: hit",
        "  money     no price known",
        "  time      1 retry",
        "",
        "2 turns · 2 calls · predicted 32 cached · read 60 (75% of the input) · write unknown · plain 20 · output 10",
        "no price known · 2.0 s · 3 retries",
        "warning: The prefix changed in turn 1 for an unknown reason. Please report this.",
    ]
