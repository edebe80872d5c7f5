"""A compaction for people: what each step takes out, a bar per layer of what stays and goes, and what it brings."""

from decimal import Decimal

from rich.console import Console
from rich.text import Text

from lamella.core.ledger.outlook import Outlook
from lamella.core.log.receipt import Receipt, Step, StepName
from lamella.core.prompt.envelope import TokenCounts
from lamella.engine.world import Proposal
from lamella.faces.cli.console import make_console
from lamella.faces.cli.lines import show_line
from lamella.faces.cli.totals import plain

_BAR = 28
_STAYS, _GOES = "█", "░"
_NAMES_SHOWN = 2
_ID_SHOWN = 40
# What these take out has names that people gave; the others take out messages.
_NAMED = (StepName.PREVIEW, StepName.HANDLE, StepName.TOOL_RESULTS)


def lower_share(planned: Proposal) -> float:
    """A share of what fits that the next request is over: half of what it takes."""
    return max(planned.before.total / planned.before.limit / 2, 0.001)


def print_planned(conversation: str, planned: Proposal, *, committed: bool) -> None:
    """What goes or went, and what that brings."""
    console, receipt = make_console(), planned.receipt
    if receipt is None or planned.after is None:
        return
    before, after = planned.before, planned.after
    head = Text(f"{show_line(conversation)}  ", style="bold")
    head.append(f"{before.total:,} → {after.total:,} of {before.limit:,} tokens", style="default")
    head.append(f"  aimed at {receipt.target:,}  {_STAYS} stays  {_GOES} goes", style="dim")
    console.print(head)
    console.print()
    _print_bars(console, before, after)
    console.print()
    _print_steps(console, receipt)
    console.print()
    if planned.outlook is not None:
        console.print(Text(_tell_outlook(planned.outlook)))
    console.print(Text(_tell_next(conversation, receipt, committed=committed), style="bold"))


def _print_bars(console: Console, before: TokenCounts, after: TokenCounts) -> None:
    largest = max(1, *before.by_layer.values(), *after.by_layer.values())
    for name, tokens in before.by_layer.items():
        now = after.by_layer[name]
        if tokens or now:
            length = -(-max(tokens, now) * _BAR // largest)
            stays = -(-now * _BAR // largest)
            bar = _STAYS * stays + _GOES * (length - stays)
            console.print(Text(f"  {name:<12}{bar:<{_BAR}}  {tokens:>9,} → {now:,}"))


def _print_steps(console: Console, receipt: Receipt) -> None:
    console.print(_row("step", "tokens", "takes out"), style="dim")
    folded = receipt.steps[0].tokens_before if receipt.steps else receipt.tokens_after
    if folded < receipt.tokens_before:
        tokens = f"{receipt.tokens_before:,} → {folded:,}"
        console.print(_row("(fold)", tokens, "nothing; attachments of earlier messages go into the library"))
    for step in receipt.steps:
        console.print(_row(step.name, f"{step.tokens_before:,} → {step.tokens_after:,}", _tell_removed(step)))
    for skipped in receipt.skipped:
        console.print(_row(skipped.name, "skipped", show_line(skipped.why)))


def _row(step: str, tokens: str, what: str) -> Text:
    return Text(f"  {step:<16}{tokens:<20}{what}")


def _tell_removed(step: Step) -> str:
    if step.name not in _NAMED:
        return "1 message" if len(step.removed) == 1 else f"{len(step.removed):,} messages"
    names = [show_line(name if len(name) <= _ID_SHOWN else name[: _ID_SHOWN - 1] + "…") for name in step.removed]
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more


def _tell_outlook(outlook: Outlook) -> str:
    moved = f"{outlook.moved:,} cached tokens move"
    if outlook.cost_now is None or outlook.saved_per_turn is None:
        return f"{moved}; no price is known."
    now, later = _more_or_less(outlook.cost_now), _more_or_less(-outlook.saved_per_turn)
    return f"{moved}: the next request costs {now}, each later one {later}."


def _more_or_less(amount: Decimal) -> str:
    return f"${plain(abs(amount))} {'less' if amount < 0 else 'more'}"


def _tell_next(conversation: str, receipt: Receipt, *, committed: bool) -> str:
    if not committed:
        return "This is a plan; nothing has changed. Without --plan it is committed."
    return f"Committed as {receipt.id}. To take it back: lamella compact {show_line(conversation)} --undo"
