"""Print the ledger: a bar per call with the cached part filled, and lines on verdict, money and time."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from rich.console import Console
from rich.text import Text

from lamella.cli.console import make_console
from lamella.cli.output import escape_to_short_line, format_cache_miss, format_count, print_text
from lamella.clocks import PHASES
from lamella.conversation.expired_cache import CacheExpiry, KeepAlivePlan, ProfileMismatch
from lamella.conversation.shared_prefixes import SharedPrefix
from lamella.schemas.formatting import format_decimal
from lamella.schemas.ledger import (
    LedgerTotals,
    ModelCall,
    RequestFingerprint,
    TurnLedgerRow,
    answering_calls,
    count_cache_write_tokens,
    render_model_facts,
    total_ledger_rows,
    unexplained_turns,
)

_BAR_WIDTH = 28
_CACHED_CHAR, _UNCACHED_CHAR = "█", "░"
_MAX_QUESTION_LENGTH = 60
_LABEL_WIDTH = 10
_HASH_LENGTH = 8
# Colours by verdict; docs/reference/json-output.md defines the outcomes.
_VERDICT_COLOURS = {
    "hit": "green",
    "first": "dim",
    "moved": "red",
    "unexplained": "bold red",
    "expired": "yellow",
    "evicted": "yellow",
}
_STATUS_WITHOUT_CALL = {
    "waiting": "no answer yet",
    "no_call": "answered without a recorded request",
    "unanswered": "not answered",
}
_UNKNOWN_TEXT = "unknown"


def print_ledger(
    conversation_name: str, rows: Sequence[TurnLedgerRow], mismatches: Sequence[ProfileMismatch] = ()
) -> None:
    """Print each turn, then the totals, then where reports of a provider contradict its model profile."""
    console = make_console()
    head = Text(f"{escape_to_short_line(conversation_name)}  ", style="bold")
    console.print(head.append(f"{_CACHED_CHAR} cached  {_UNCACHED_CHAR} not cached", style="dim"))
    largest = max((_prompt_tokens(call) for row in rows for call in row.calls), default=0)
    for row in rows:
        _print_row(console, row, largest)
    console.print()
    console.print(_render_totals(total_ledger_rows(rows), turns=len(rows)))
    unexplained = unexplained_turns(rows)
    if unexplained:
        numbers = ", ".join(str(number) for number in unexplained)
        warning = f"warning: The prefix changed in turn {numbers} for an unknown reason. Please report this."
        console.print(Text(warning, style="bold yellow"))
    for doubt in mismatches:
        _print_profile_mismatch(console, doubt)


def _print_profile_mismatch(console: Console, mismatch: ProfileMismatch) -> None:
    console.print()
    heading = f"{escape_to_short_line(mismatch.model)} differs from its profile:"
    console.print(Text(heading, style="bold yellow"))
    for one in mismatch.contradictions:
        turns = ", ".join(str(number) for number in one.turns)
        console.print(Text(f"  turn {turns}: {one.description}"))
    console.print(Text("To correct it, add this to the file of the setting `model_facts`:", style="dim"))
    for line in render_model_facts(mismatch):
        console.print(Text(escape_to_short_line(line)), soft_wrap=True)


def _print_row(console: Console, row: TurnLedgerRow, largest: int) -> None:
    typed = " ".join(row.text.split())
    shown = escape_to_short_line(
        typed if len(typed) <= _MAX_QUESTION_LENGTH else typed[: _MAX_QUESTION_LENGTH - 1] + "…"
    )
    console.print()
    console.print(Text(f"turn {row.number}  ", style="bold").append(shown, style="default"))
    if not answering_calls(row.calls):
        console.print(Text(f"  {_STATUS_WITHOUT_CALL[row.status]}", style="dim"))
    for call in row.calls:
        for line in _render_call_lines(call, largest):
            console.print(line)
    if row.cache_miss is not None:
        console.print(_labelled_line("miss", format_cache_miss(row.cache_miss.tokens, row.cache_miss.cost)))
    if row.layout_plan is not None:
        console.print(_labelled_line("plan", escape_to_short_line(row.layout_plan.why)))
    for cut in row.cuts:
        console.print(_labelled_line("cut", escape_to_short_line(cut.why)))
    if row.fingerprint is not None:
        for line in _render_fingerprint_lines(row.fingerprint):
            console.print(line)


def print_shared_prefixes(prefixes: Sequence[SharedPrefix]) -> None:
    """Print the system prompts that conversations share: how often each is used again, and how long it is cached."""
    if not prefixes:
        print_text("No system prompt is shared yet, or no model has a second cache lifetime.")
        return
    console = make_console()
    for prefix in prefixes:
        last = "" if prefix.uses.last is None else f", last used {prefix.uses.last:%Y-%m-%d %H:%M}"
        head = Text(f"{escape_to_short_line(prefix.key.rpartition(':')[2][:_HASH_LENGTH])}  ", style="bold")
        console.print(
            head.append(f"{escape_to_short_line(prefix.model)}, {prefix.tokens:,} tokens{last}", style="default")
        )
        limits = (prefix.lifetime, prefix.long_lifetime)
        short, long = (f"{seconds / 60:g} min" for seconds in limits)
        counts = prefix.gap_counts
        gaps = f"{counts[0]:,} within {short} · {counts[1]:,} within {long} · {counts[2]:,} longer"
        console.print(_labelled_line("gaps", gaps))
        lasts = long if prefix.keeps_longer else short
        console.print(_labelled_line("cached", f"for {lasts}"))


def _render_call_lines(call: ModelCall, largest: int) -> Iterator[Text]:
    yield _render_bar(call, largest)
    yield _labelled_line(
        "predicted", f"{_format_token_count(None if call.predicted is None else call.predicted.read)} cached"
    )
    yield _labelled_line("reported", _format_reported_usage(call))
    yield _labelled_line(
        "verdict", escape_to_short_line(str(call.verdict)), style=_VERDICT_COLOURS.get(call.verdict.outcome, "default")
    )
    if call.diagnosis is not None:
        yield _labelled_line(
            "provider", f"says: {escape_to_short_line(call.diagnosis.reason or call.diagnosis.verdict)}"
        )
    if call.by_layer:
        yield _labelled_line(
            "layers", " · ".join(f"{name} {tokens:,}" for name, tokens in call.by_layer.items() if tokens)
        )
    yield _labelled_line("money", _format_cost(call))
    yield _labelled_line("time", _format_duration(call))
    if call.timing.phases:
        phases = (f"{phase} {call.timing.phases.get(phase, 0.0):.3f} s" for phase in PHASES)
        yield _labelled_line("build", " · ".join(phases))


def _render_fingerprint_lines(fingerprint: RequestFingerprint) -> Iterator[Text]:
    named = zip(("L1", "L2", "prefix", "whole"), fingerprint.hashes, strict=True)
    hashes = " · ".join(f"{name} {digest.rpartition(':')[2][:_HASH_LENGTH]}" for name, digest in named)
    yield _labelled_line("hashes", f"{hashes} · renderer {fingerprint.renderer}")
    layers = zip(("L1", "L2", "L3", "L4", "L5"), fingerprint.segments, strict=False)
    lines = [f"{name} {number:,}" for name, number in layers if number]
    lines += [f"referred {fingerprint.dedup_ratio:.0%}"] if fingerprint.attached else []
    lines += [f"compacted {fingerprint.compacted_share:.0%}"] if fingerprint.compacted else []
    lines += [f"unparsed {fingerprint.unparsed:,}"] if fingerprint.unparsed else []
    yield _labelled_line("segments", " · ".join(lines))


def _render_bar(call: ModelCall, largest: int) -> Text:
    prompt = _prompt_tokens(call)
    length = min(_BAR_WIDTH, -(-prompt * _BAR_WIDTH // largest)) if largest else 0
    filled = min(length, round(length * (call.usage.read or 0) / prompt)) if prompt else 0
    bar = Text(f"  {_CACHED_CHAR * filled}{_UNCACHED_CHAR * (length - filled)}{' ' * (_BAR_WIDTH - length)}")
    purpose = "" if answering_calls([call]) else f", {escape_to_short_line(call.purpose)}"
    return bar.append(f"{prompt:>8,}  {escape_to_short_line(call.model or 'no model')}{purpose}")


def _prompt_tokens(call: ModelCall) -> int:
    """Return the input tokens as reported, or as predicted if the provider reports none."""
    if call.usage.prompt_tokens is not None:
        return call.usage.prompt_tokens
    return call.predicted.total if call.predicted is not None else sum(call.by_layer.values())


def _format_reported_usage(call: ModelCall) -> str:
    usage = call.usage
    if usage.fault is not None:
        return f"invalid: {escape_to_short_line(usage.fault)}"
    counts = {"read": usage.read, "write": count_cache_write_tokens(call), "plain": usage.plain, "output": usage.output}
    return " · ".join(f"{name} {_format_token_count(count)}" for name, count in counts.items())


def _format_cost(call: ModelCall) -> str:
    if call.cost is None and call.billed is None:
        return "no price known"
    billed = _UNKNOWN_TEXT if call.billed is None else f"${format_decimal(call.billed)}"
    if call.cost is None:
        return f"billed {billed}"
    cost = call.cost
    amounts = [format_decimal(amount) for amount in (cost.amount, cost.naive, cost.limit)]
    input_alone = f"predicted ${amounts[0]}, naive ${amounts[1]}, perfect cache ${amounts[2]}"
    return f"billed {billed} · input alone: {input_alone}"


def _format_duration(call: ModelCall) -> str:
    timing = call.timing
    parts = [
        f"{word} {seconds:.2f} s"
        for word, seconds in (("built in", timing.build), ("first word", timing.first), ("all", timing.total))
        if seconds is not None
    ]
    if call.retries:
        parts.append(f"{call.retries} {'retry' if call.retries == 1 else 'retries'}")
    if call.stop not in ("", "end"):
        parts.append(f"ended: {escape_to_short_line(call.stop)}")
    return " · ".join(parts) or _UNKNOWN_TEXT


def _labelled_line(label: str, text: str, *, style: str = "default") -> Text:
    return Text(f"  {label:<{_LABEL_WIDTH}}", style="dim").append(text, style=style)


def _format_token_count(count: int | None) -> str:
    return _UNKNOWN_TEXT if count is None else f"{count:,}"


def _render_totals(totals: LedgerTotals, *, turns: int) -> Text:
    line = Text(format_count(turns, "turn"), style="bold")
    auxiliary = f", {totals.auxiliary_calls:,} of them auxiliary" if totals.auxiliary_calls else ""
    line.append(f" · {format_count(totals.calls, 'call')}{auxiliary}", style="default")
    if not totals.calls:
        return line
    share = "" if totals.read_share is None else f" ({totals.read_share:.0%} of the input)"
    line.append(
        f" · predicted {_format_token_count(totals.predicted_tokens)} cached · read {_format_token_count(totals.read_tokens)}{share}",
        style="default",
    )
    line.append(
        f" · write {_format_token_count(totals.written_tokens)} · plain {_format_token_count(totals.plain_tokens)}",
        style="default",
    )
    line.append(f" · output {_format_token_count(totals.output_tokens)}", style="default")
    line.append(f"\n{_format_total_cost(totals)}", style="default")
    seconds = "" if totals.seconds is None else f" · {totals.seconds:.1f} s"
    line.append(f"{seconds} · {totals.retries:,} retries", style="default")
    if totals.cache_miss is not None:
        misses = format_cache_miss(totals.cache_miss.tokens, totals.cache_miss.cost)
        line.append(f"\ncache misses: {misses}", style="default")
    return line


def _format_total_cost(totals: LedgerTotals) -> str:
    if totals.billed is None and totals.estimated_cost is None:
        return "no price known"
    missing = f" (without {totals.unpriced_calls:,} calls of unknown price)" if totals.unpriced_calls else ""
    amounts = (
        ("predicted", totals.estimated_cost),
        ("naive", totals.naive_cost),
        ("perfect cache", totals.perfect_cache_cost),
    )
    compared = ", ".join(f"{word} {_format_dollars(amount)}" for word, amount in amounts)
    return f"billed {_format_dollars(totals.billed)}{missing} · input alone: {compared}"


def _format_dollars(amount: Decimal | None) -> str:
    return _UNKNOWN_TEXT if amount is None else f"${format_decimal(amount)}"


# a line that appears only if the next message costs more than the last one.

_COST_DIGITS = 6


def format_cost_after_cache_expiry(expired: CacheExpiry | None, *, now: datetime, max_keep_alives: int = 0) -> str:
    """Return what the next message costs once the cache has expired, as is and folded; empty while it is cached.

    If a keep-alive would pay, its price is added: as an offer, or as a fact if ``max_keep_alives`` keep-alives are
    configured.
    """
    if expired is None:
        return ""
    return _format_expiry(expired, now=now) + _format_keep_alive(
        expired.keep_alive, now=now, max_keep_alives=max_keep_alives
    )


def _format_keep_alive(keep_alive: KeepAlivePlan | None, *, now: datetime, max_keep_alives: int) -> str:
    if keep_alive is None:
        return ""
    price = _format_amount(keep_alive.cost, keep_alive.tokens)
    left = max(0.0, (keep_alive.due_at - now).total_seconds())
    if max_keep_alives:
        return f"; keep-alive in {left:.0f} s for {price}"
    return f"; keep_alive = 1 would prevent that for {price}"


def _format_expiry(expired: CacheExpiry, *, now: datetime) -> str:
    left = max(0.0, (expired.expires_at - now).total_seconds())
    when = "the cache has expired" if expired.expired else f"the cache expires in {left:.0f} s"
    as_is = _format_amount(expired.cost, expired.tokens)
    if expired.folded_tokens >= expired.tokens:
        return f"{when}; next message: {as_is}"
    folded = _format_amount(expired.folded_cost, expired.folded_tokens)
    if expired.will_fold:
        return f"{when}; next message: {folded} (Lamella removes unused text first; {as_is} otherwise)"
    return f"{when}; next message: {as_is} ({folded} without unused text)"


def print_cache_expiry(expired: CacheExpiry | None, *, now: datetime) -> None:
    """Print the same text as a sentence; print nothing while the prompt is cached."""
    line = format_cost_after_cache_expiry(expired, now=now)
    if line:
        print_text(f"{line[0].upper()}{line[1:]}.")


def _format_amount(cost: Decimal | None, tokens: int) -> str:
    return f"{tokens:,} tokens" if cost is None else f"${format_decimal(round(cost, _COST_DIGITS))}"
