"""The ledger for people: a bar per call, what came from the cache filled, and lines on why, money and time."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from rich.console import Console
from rich.text import Text

from lamella.faces.cli.terminal.console import make_console
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.views.amounts import plain
from lamella.views.caches.doubts import DoubtShape, write_facts
from lamella.views.ledger import (
    Call,
    Imprint,
    LedgerRow,
    LedgerSums,
    find_answers,
    find_unexplained,
    sum_rows,
    written,
)

_BAR = 28
_CACHED, _SENT = "█", "░"
_TYPED_SHOWN = 60
_LABEL = 10
_HASH_SHOWN = 8
# Keyed by the outcomes of docs/ledger.md.
_COLOURS = {
    "hit": "green",
    "first": "dim",
    "moved": "red",
    "unexplained": "bold red",
    "expired": "yellow",
    "evicted": "yellow",
}
_NO_CALL = {
    "waiting": "waits for its answer",
    "no_call": "answered without a call on record",
    "unanswered": "left without an answer",
}
_UNKNOWN = "unknown"


def print_ledger(conversation: str, rows: Sequence[LedgerRow], doubts: Sequence[DoubtShape] = ()) -> None:
    """Each turn, then the sums, then what providers reported against what is known of them."""
    console = make_console()
    head = Text(f"{show_line(conversation)}  ", style="bold")
    console.print(head.append(f"{_CACHED} read from the cache  {_SENT} not", style="dim"))
    largest = max((_prompt(call) for row in rows for call in row.calls), default=0)
    for row in rows:
        _print_row(console, row, largest)
    console.print()
    console.print(_sums(sum_rows(rows), turns=len(rows)))
    unexplained = find_unexplained(rows)
    if unexplained:
        numbers = ", ".join(str(number) for number in unexplained)
        told = f"warning: the prefix moved in turn {numbers}, and nothing on record says why. Please report this."
        console.print(Text(told, style="bold yellow"))
    for doubt in doubts:
        _print_doubt(console, doubt)


def _print_doubt(console: Console, doubt: DoubtShape) -> None:
    console.print()
    told = f"{show_line(doubt.model)} does not do what its profile says:"
    console.print(Text(told, style="bold yellow"))
    for one in doubt.seen:
        turns = ", ".join(str(number) for number in one.turns)
        console.print(Text(f"  turn {turns}: {one.says}"))
    console.print(Text("In the file that model_facts names, in the entry of this model or as a new one:", style="dim"))
    for line in write_facts(doubt):
        console.print(Text(show_line(line)), soft_wrap=True)


def _print_row(console: Console, row: LedgerRow, largest: int) -> None:
    typed = " ".join(row.text.split())
    shown = show_line(typed if len(typed) <= _TYPED_SHOWN else typed[: _TYPED_SHOWN - 1] + "…")
    console.print()
    console.print(Text(f"turn {row.number}  ", style="bold").append(shown, style="default"))
    if not find_answers(row.calls):
        console.print(Text(f"  {_NO_CALL[row.standing]}", style="dim"))
    for call in row.calls:
        for line in _call_lines(call, largest):
            console.print(line)
    if row.placement is not None:
        console.print(_line("plan", show_line(row.placement.why)))
    if row.imprint is not None:
        for line in _sent_lines(row.imprint):
            console.print(line)


def _call_lines(call: Call, largest: int) -> Iterator[Text]:
    yield _bar(call, largest)
    yield _line("predicted", f"{_count(None if call.predicted is None else call.predicted.read)} cached")
    yield _line("reported", _reported(call))
    yield _line("verdict", show_line(str(call.verdict)), style=_COLOURS.get(call.verdict.outcome, "default"))
    if call.diagnosis is not None:
        yield _line("provider", f"says: {show_line(call.diagnosis.reason or call.diagnosis.verdict)}")
    if call.by_layer:
        yield _line("layers", " · ".join(f"{name} {tokens:,}" for name, tokens in call.by_layer.items() if tokens))
    yield _line("money", _money(call))
    yield _line("time", _time(call))


def _sent_lines(imprint: Imprint) -> Iterator[Text]:
    named = zip(("L1", "L2", "prefix", "whole"), imprint.hashes, strict=True)
    hashes = " · ".join(f"{name} {digest.rpartition(':')[2][:_HASH_SHOWN]}" for name, digest in named)
    yield _line("hashes", f"{hashes} · renderer {imprint.renderer}")
    layers = zip(("L1", "L2", "L3", "L4", "L5"), imprint.segments, strict=False)
    told = [f"{name} {number:,}" for name, number in layers if number]
    told += [f"referred {imprint.dedup_ratio:.0%}"] if imprint.attached else []
    told += [f"compacted {imprint.compacted_share:.0%}"] if imprint.compacted else []
    told += [f"unparsed {imprint.unparsed:,}"] if imprint.unparsed else []
    yield _line("segments", " · ".join(told))


def _bar(call: Call, largest: int) -> Text:
    prompt = _prompt(call)
    length = min(_BAR, -(-prompt * _BAR // largest)) if largest else 0
    filled = min(length, round(length * (call.usage.read or 0) / prompt)) if prompt else 0
    bar = Text(f"  {_CACHED * filled}{_SENT * (length - filled)}{' ' * (_BAR - length)}")
    purpose = "" if find_answers([call]) else f", {show_line(call.purpose)}"
    return bar.append(f"{prompt:>8,}  {show_line(call.model or 'no model')}{purpose}")


def _prompt(call: Call) -> int:
    """The input as reported, or as predicted where nobody reports it."""
    if call.usage.prompt is not None:
        return call.usage.prompt
    return call.predicted.total if call.predicted is not None else sum(call.by_layer.values())


def _reported(call: Call) -> str:
    usage = call.usage
    if usage.fault is not None:
        return f"nothing usable: {show_line(usage.fault)}"
    counts = {"read": usage.read, "write": written(call), "plain": usage.plain, "output": usage.output}
    return " · ".join(f"{name} {_count(count)}" for name, count in counts.items())


def _money(call: Call) -> str:
    if call.cost is None and call.billed is None:
        return "no price known"
    billed = _UNKNOWN if call.billed is None else f"${plain(call.billed)}"
    if call.cost is None:
        return f"billed {billed}"
    cost = call.cost
    input_alone = f"predicted ${plain(cost.amount)}, naive ${plain(cost.naive)}, perfect cache ${plain(cost.limit)}"
    return f"billed {billed} · input alone: {input_alone}"


def _time(call: Call) -> str:
    timing = call.timing
    told = [
        f"{word} {seconds:.2f} s"
        for word, seconds in (("built in", timing.build), ("first word", timing.first), ("all", timing.total))
        if seconds is not None
    ]
    if call.retries:
        told.append(f"{call.retries} {'retry' if call.retries == 1 else 'retries'}")
    if call.stop not in ("", "end"):
        told.append(f"ended: {show_line(call.stop)}")
    return " · ".join(told) or _UNKNOWN


def _line(label: str, text: str, *, style: str = "default") -> Text:
    return Text(f"  {label:<{_LABEL}}", style="dim").append(text, style=style)


def _count(count: int | None) -> str:
    return _UNKNOWN if count is None else f"{count:,}"


def _sums(sums: LedgerSums, *, turns: int) -> Text:
    line = Text(tell_count(turns, "turn"), style="bold")
    asides = f", {sums.asides:,} of them on the way to an answer" if sums.asides else ""
    line.append(f" · {tell_count(sums.calls, 'call')}{asides}", style="default")
    if not sums.calls:
        return line
    share = "" if sums.read_share is None else f" ({sums.read_share:.0%} of the input)"
    line.append(f" · predicted {_count(sums.predicted)} cached · read {_count(sums.read)}{share}", style="default")
    line.append(f" · write {_count(sums.write)} · plain {_count(sums.plain)}", style="default")
    line.append(f" · output {_count(sums.output)}", style="default")
    line.append(f"\n{_sum_money(sums)}", style="default")
    seconds = "" if sums.seconds is None else f" · {sums.seconds:.1f} s"
    return line.append(f"{seconds} · {sums.retries:,} retries", style="default")


def _sum_money(sums: LedgerSums) -> str:
    if sums.billed is None and sums.amount is None:
        return "no price known"
    missing = f" (without {sums.unpriced:,} of no known price)" if sums.unpriced else ""
    amounts = (("predicted", sums.amount), ("naive", sums.naive), ("a perfect cache", sums.limit))
    compared = ", ".join(f"{word} {_dollars(amount)}" for word, amount in amounts)
    return f"billed {_dollars(sums.billed)}{missing} · input alone: {compared}"


def _dollars(amount: Decimal | None) -> str:
    return _UNKNOWN if amount is None else f"${plain(amount)}"
