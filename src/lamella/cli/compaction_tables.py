"""Print a compaction: the steps and what they remove, a bar per layer, and the cost estimate."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from rich.console import Console
from rich.text import Text

from lamella import CompactionReceipt, TurnRecord
from lamella.cli.console import make_console
from lamella.cli.output import escape_to_short_line, format_count, print_text
from lamella.conversation.compaction import CompactionProposal
from lamella.conversation.conversation import Conversation
from lamella.conversation.turn import TurnRequest
from lamella.schemas.formatting import format_decimal, truncate_words

_BAR_WIDTH = 28
_KEPT_CHAR, _REMOVED_CHAR = "█", "░"
_MAX_SHOWN_NAMES = 2
_MAX_ID_LENGTH = 40
_MAX_QUESTION_LENGTH = 60
# The step that preserves user rules instead of removing something.
_RULES_STEP = "rules"
# Steps that remove attachments, which have names; the other steps remove messages.
_ATTACHMENT_STEPS = ("preview", "handle", "tool_results")


def half_of_current_share(proposal: CompactionProposal) -> float:
    """Return a target share that the next request exceeds: half of its current share of the limit."""
    return max(proposal.before.total / proposal.before.limit / 2, 0.001)


def cannot_shrink_hint(conversation_log: Conversation) -> str:
    """Return a hint for a prompt that cannot shrink: the user may drop or unpin something, if there is anything."""
    if conversation_log.library() or conversation_log.preview(TurnRequest(text="")).envelope.prompt.pinned:
        return "The system prompt, pinned items, selections and the last exchange are never removed. Drop or unpin something."
    return "The system prompt and the last turns are never removed. A longer conversation can be compacted."


def find_unanswered_question(records: Sequence[TurnRecord]) -> str | None:
    """Return the text of the unanswered last question; None if it was answered.

    Compacting or undoing gives up an unanswered question.
    """
    return records[-1].message.text if records and records[-1].reply is None else None


def print_stopped_question(question: str | None, *, retry_command: str) -> None:
    """Print that a question was left without an answer, and the command ``retry_command`` that asks it again."""
    if question is not None:
        left = escape_to_short_line(truncate_words(question, _MAX_QUESTION_LENGTH))
        print_text(f"No answer yet: {left} ({retry_command} asks it again)", err=True)


def print_plan_warnings(proposal: CompactionProposal) -> None:
    """Print the warnings of planning, mostly about a summary that could not be written."""
    for warning in proposal.warnings:
        print_text(f"warning: {escape_to_short_line(warning)}", err=True)


def print_compaction(conversation_name: str, proposal: CompactionProposal, *, undo_command: str | None = None) -> None:
    """Print what a compaction removes and what that costs or saves; ``undo_command`` is None for a mere plan."""
    console, receipt = make_console(), proposal.receipt
    if receipt is None or proposal.after is None:
        return
    before, after = proposal.before, proposal.after
    head = Text(f"{escape_to_short_line(conversation_name)}  ", style="bold")
    head.append(f"{before.total:,} → {after.total:,} of {before.limit:,} tokens", style="default")
    head.append(f"  target {receipt.target:,}  {_KEPT_CHAR} kept  {_REMOVED_CHAR} removed", style="dim")
    console.print(head)
    console.print()
    _print_bars(console, before.by_layer, after.by_layer)
    console.print()
    _print_steps(console, receipt)
    console.print()
    if proposal.cost_estimate is not None:
        moved, now, later = (
            proposal.cost_estimate.changed_tokens,
            proposal.cost_estimate.cost_now,
            proposal.cost_estimate.saved_per_turn,
        )
        console.print(Text(_format_cost_estimate(moved, cost_change=now, saved=later)))
    print_text(_format_undo_hint(receipt, undo_command))


def _print_bars(console: Console, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    largest = max(1, *before.values(), *after.values())
    for name, tokens in before.items():
        now = after[name]
        if tokens or now:
            length = -(-max(tokens, now) * _BAR_WIDTH // largest)
            stays = -(-now * _BAR_WIDTH // largest)
            bar = _KEPT_CHAR * stays + _REMOVED_CHAR * (length - stays)
            console.print(Text(f"  {name:<12}{bar:<{_BAR_WIDTH}}  {tokens:>9,} → {now:,}"))


def _print_steps(console: Console, receipt: CompactionReceipt) -> None:
    console.print(_step_row("step", "tokens", "removes"), style="dim")
    folded = receipt.steps[0].tokens_before if receipt.steps else receipt.tokens_after
    if folded < receipt.tokens_before:
        tokens = f"{receipt.tokens_before:,} → {folded:,}"
        console.print(_step_row("(fold)", tokens, "nothing; attachments of earlier messages move into the library"))
    for step in receipt.steps:
        console.print(
            _step_row(
                step.name, f"{step.tokens_before:,} → {step.tokens_after:,}", _format_removed(step.name, step.removed)
            )
        )
    for skipped in receipt.skipped:
        console.print(_step_row(skipped.name, "skipped", escape_to_short_line(skipped.why)))
    if certificate := _format_certificate(receipt):
        console.print(Text(f"\n  {certificate}"))


def _format_certificate(receipt: CompactionReceipt) -> str:
    """Return what happened to the exact tokens and user rules in the removed text; empty without a certificate.

    A compaction that would lose one of them for good is not committed, so none is ever gone.
    """
    certificate = receipt.certificate
    if certificate is None:
        return ""
    words, rules = certificate
    parts = [(words, "names, numbers and paths in the removed text")]
    parts += [(rules, "rules")] if sum(rules) else []
    lines = [f"{sum(n):,} {what}: {n[0]:,} still in the prompt, {n[1]:,} recallable" for n, what in parts]
    return f"{'; '.join(lines)}, {certificate.lost_count:,} lost."


def _step_row(step: str, tokens: str, description: str) -> Text:
    return Text(f"  {step:<16}{tokens:<20}{description}")


def _format_removed(step: str, removed: Sequence[str]) -> str:
    if step == _RULES_STEP and not removed:
        return "the oldest rules, which no longer fit"
    if step == _RULES_STEP:
        return f"nothing; keeps the rules from {format_count(len(removed), 'message')}"
    if step not in _ATTACHMENT_STEPS:
        return format_count(len(removed), "message")
    names = [
        escape_to_short_line(name if len(name) <= _MAX_ID_LENGTH else name[: _MAX_ID_LENGTH - 1] + "…")
        for name in removed
    ]
    more = f" and {len(names) - _MAX_SHOWN_NAMES:,} more" if len(names) > _MAX_SHOWN_NAMES else ""
    return ", ".join(names[:_MAX_SHOWN_NAMES]) + more


def _format_cost_estimate(moved_tokens: int, *, cost_change: Decimal | None, saved: Decimal | None) -> str:
    text = f"{moved_tokens:,} cached tokens will be sent again."
    if cost_change is None or saved is None:
        return f"{text} No price known for this model."
    now, later = _format_cost_change(cost_change), _format_cost_change(-saved)
    return f"{text} The next request costs {now}, each later one {later}."


def _format_cost_change(amount: Decimal) -> str:
    return f"${format_decimal(abs(amount))} {'less' if amount < 0 else 'more'}"


def _format_undo_hint(receipt: CompactionReceipt, undo_command: str | None) -> str:
    if undo_command is None:
        return "Preview only. Run without --plan to apply."
    return f"Compacted (receipt {receipt.id}). To undo: {undo_command}"
