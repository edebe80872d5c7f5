"""A compaction for people: what each step takes out, a bar per layer of what stays and goes, and what it brings."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from rich.console import Console
from rich.text import Text

from lamella import Receipt, Told
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.proposal import Proposal
from lamella.engine.keeping.stored import StoredChat
from lamella.faces.cli.terminal.console import make_console
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.faces.cli.terminal.telling import tell
from lamella.views.amounts import plain
from lamella.views.words import cut_words

_BAR = 28
_STAYS, _GOES = "█", "░"
_NAMES_SHOWN = 2
_ID_SHOWN = 40
_QUESTION_SHOWN = 60
# What these take out has names that people gave; the others take out messages.
_KEEPS = "rules"
_NAMED = ("preview", "handle", "tool_results")


def lower_share(planned: Proposal) -> float:
    """A share of what fits that the next request is over: half of what it takes."""
    return max(planned.before.total / planned.before.limit / 2, 0.001)


def hint_unmoved(stored: StoredChat) -> str:
    """What to do where nothing may go: whatever is attached or pinned can be let go, the last exchange cannot."""
    if stored.library() or stored.preview(Ask(text="")).envelope.prompt.pinned:
        return "The system prompt, pins, selections and the last exchange stay. Drop or unpin something."
    return "The system prompt and the last turns always stay. There is something to compact once the talk is longer."


def find_waiting(told: Sequence[Told]) -> str | None:
    """The question that waits for its answer: where something is compacted or undone, it counts as stopped."""
    return told[-1].message.text if told and told[-1].reply is None else None


def tell_stopped(question: str | None, *, again: str) -> None:
    """Say of a question that it was left without an answer, and what asks it again."""
    if question is not None:
        left = show_line(cut_words(question, _QUESTION_SHOWN))
        tell(f"Left without an answer: {left} ({again} asks it again)", err=True)


def tell_planning(planned: Proposal) -> None:
    """Say what is to be told of planning it, of a summary that was asked for above all."""
    for warning in planned.warnings:
        tell(f"warning: {show_line(warning)}", err=True)


def print_planned(conversation: str, planned: Proposal, *, undo: str | None = None) -> None:
    """What goes, or went where there is a command to ``undo`` it, and what that brings."""
    console, receipt = make_console(), planned.receipt
    if receipt is None or planned.after is None:
        return
    before, after = planned.before, planned.after
    head = Text(f"{show_line(conversation)}  ", style="bold")
    head.append(f"{before.total:,} → {after.total:,} of {before.limit:,} tokens", style="default")
    head.append(f"  aimed at {receipt.target:,}  {_STAYS} stays  {_GOES} goes", style="dim")
    console.print(head)
    console.print()
    _print_bars(console, before.by_layer, after.by_layer)
    console.print()
    _print_steps(console, receipt)
    console.print()
    if planned.outlook is not None:
        moved, now, later = planned.outlook.moved, planned.outlook.cost_now, planned.outlook.saved_per_turn
        console.print(Text(_tell_outlook(moved, now=now, saved=later)))
    tell(_tell_next(receipt, undo))


def _print_bars(console: Console, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    largest = max(1, *before.values(), *after.values())
    for name, tokens in before.items():
        now = after[name]
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
        console.print(
            _row(step.name, f"{step.tokens_before:,} → {step.tokens_after:,}", _tell_removed(step.name, step.removed))
        )
    for skipped in receipt.skipped:
        console.print(_row(skipped.name, "skipped", show_line(skipped.why)))
    if told := _tell_certificate(receipt):
        console.print(Text(f"\n  {told}"))


def _tell_certificate(receipt: Receipt) -> str:
    """What became of the exact words and the wishes in what goes; nothing is ever gone, or there is no receipt."""
    certificate = receipt.certificate
    if certificate is None:
        return ""
    words, rules = certificate
    told = f"Of {sum(words):,} exact words in what goes {words[0]:,} stand, {words[1]:,} are one recall away"
    wishes = f"; of {sum(rules):,} standing wishes {rules[0]:,} stand, {rules[1]:,} are one recall away"
    return f"{told}{wishes if sum(rules) else ''}; {certificate.gone:,} are gone."


def _row(step: str, tokens: str, what: str) -> Text:
    return Text(f"  {step:<16}{tokens:<20}{what}")


def _tell_removed(step: str, removed: Sequence[str]) -> str:
    if step == _KEEPS and not removed:
        return "the oldest standing wishes, which have no room any more"
    if step == _KEEPS:
        return f"nothing; keeps what was wished for in {len(removed):,} message{'s' * (len(removed) > 1)}"
    if step not in _NAMED:
        return tell_count(len(removed), "message")
    names = [show_line(name if len(name) <= _ID_SHOWN else name[: _ID_SHOWN - 1] + "…") for name in removed]
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more


def _tell_outlook(moved: int, *, now: Decimal | None, saved: Decimal | None) -> str:
    told = f"{moved:,} cached tokens move"
    if now is None or saved is None:
        return f"{told}; no price is known."
    return f"{told}: the next request costs {_more_or_less(now)}, each later one {_more_or_less(-saved)}."


def _more_or_less(amount: Decimal) -> str:
    return f"${plain(abs(amount))} {'less' if amount < 0 else 'more'}"


def _tell_next(receipt: Receipt, undo: str | None) -> str:
    if undo is None:
        return "This is a plan; nothing has changed. Without --plan it is committed."
    return f"Committed as {receipt.id}. To take it back: {undo}"
