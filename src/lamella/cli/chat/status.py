"""Format the cost of a call and the status of a conversation."""

from collections.abc import Mapping
from decimal import Decimal

from rich.text import Text

from lamella import Turn
from lamella.cli.chat.opening import OpenedConversation
from lamella.cli.console import make_console, print_with_hanging_indent
from lamella.cli.output import escape_to_short_line
from lamella.cli.replay_tables import print_layer, print_parts_outside_layers
from lamella.conversation.conversation import Conversation
from lamella.conversation.runner_context import DEFAULT_RUNNER
from lamella.schemas.formatting import format_decimal
from lamella.schemas.ledger import ModelCall, answering_calls, build_ledger_rows, total_ledger_rows

# Keyed by the stop reasons of docs/reference/json-output.md.
_STOP_REASON_MESSAGES: Mapping[str, str] = {
    "length": "The answer was cut off at --max-tokens.",
    "window": "The answer was cut off: the context window is full. Use /compact or `lamella compact`.",
    "circles": "The answer was cut off: it repeated itself. Rephrase the question, or use a larger model.",
    "refused": "The model declined to answer or to continue.",
    "paused": "The model paused; ask it to continue.",
}


def format_model_call(call: ModelCall) -> str:
    """Return tokens, cost and time of a call on one line; values that the provider does not report are left out."""
    usage = call.usage
    parts = [escape_to_short_line(call.model or "no model")]
    if usage.prompt_tokens is not None:
        parts.append(f"{usage.prompt_tokens:,} tokens in")
    if usage.read is not None:
        parts.append(f"{usage.read:,} of them cached")
    if usage.output is not None:
        parts.append(f"{usage.output:,} out")
    if call.billed is not None:
        parts.append(f"${format_decimal(call.billed)}")
    if call.timing.total is not None:
        parts.append(f"{call.timing.total:.1f} s")
    return " · ".join(parts)


def format_requests_total(conversation_log: Conversation) -> str:
    """Return the totals of all requests for the last question; empty if there was only one."""
    turns = conversation_log.turns()
    sums = total_ledger_rows(build_ledger_rows(turns, conversation_log.ledger())[-1:])
    if not turns or not (turns[-1].completed_rounds or sums.auxiliary_calls):
        return ""
    parts = [f"{sums.calls:,} requests for this question"]
    if sums.plain_tokens is not None:
        parts.append(f"{(sums.plain_tokens or 0) + (sums.read_tokens or 0) + (sums.written_tokens or 0):,} tokens in")
    parts += [f"{sums.output_tokens:,} out"] if sums.output_tokens is not None else []
    parts += [f"${format_decimal(sums.billed)}"] if sums.billed is not None else []
    return " · ".join(parts)


def describe_stop_reason(call: ModelCall) -> str:
    """Return a message about why an answer stopped early; empty if it ended normally."""
    return _STOP_REASON_MESSAGES.get(call.stop, "")


def format_status(conversation_log: Conversation, model: str) -> str:
    """Return the status line: window use, cached share of the last turn, cost so far, model, unusual runner."""
    rows = build_ledger_rows(conversation_log.turns(), conversation_log.ledger())
    answers = answering_calls([call for row in rows for call in row.calls])
    last = answers[-1] if answers else None
    parts = [_format_window_use(conversation_log)]
    if last is not None:
        rate = last.usage.hit_rate
        parts.append("cache not reported" if rate is None else f"{rate:.0%} of the last turn cached")
        parts.append(_format_cost(total_ledger_rows(rows).billed))
    runner = (
        ()
        if conversation_log.default_runner == DEFAULT_RUNNER
        else (escape_to_short_line(conversation_log.default_runner),)
    )
    return " · ".join((*parts, escape_to_short_line(model), *runner))


def _format_window_use(conversation_log: Conversation) -> str:
    """Return how much of the window the next request uses before anything is typed.

    With an unanswered question there is no next request to count yet.
    """
    if any(turn.reply is None for turn in conversation_log.turns()[-1:]):
        return "no answer yet, /retry"
    counts = conversation_log.plan(to=1.0, summaries=False).before
    return f"{counts.total:,} of {counts.limit:,} tokens used ({counts.total / counts.limit:.0%})"


def _format_cost(cost: Decimal | None) -> str:
    return "no price" if cost is None else f"${format_decimal(cost)} so far"


# Print the layers of a turn as bars, filled as far as the provider reported them as cached.


def print_layers_and_cache(turn: Turn, opened: OpenedConversation) -> None:
    """Print the layers and the overhead, then their sum, the reported cache use and the verdict on the prefix."""
    console = make_console()
    calls = turn.ledger.calls
    usage = calls[-1].usage if calls else None
    read, prompt = (usage.read, usage.prompt_tokens) if usage is not None else (None, None)
    cached = opened.cached_tokens_by_layer(turn, reported_cached=read, prompt_tokens=prompt)
    largest = max(1, *(layer.tokens for layer in turn.envelope.layers))
    console.print()
    console.print(Text(f"turn {turn.number}  █ cached, as reported  ░ not cached", style="dim"))
    for layer in turn.envelope.layers:
        print_layer(console, layer, cached=cached.get(layer.id, 0), largest=largest)
    print_parts_outside_layers(console, turn)
    if calls:
        counted = f"counted {turn.tokens.total:,}"
        line = f"  {counted} · {_format_reported_cache(read, prompt)} · {escape_to_short_line(str(calls[-1].verdict))}"
        print_with_hanging_indent(console, Text(line, style="bold"))


def _format_reported_cache(cached_tokens: int | None, prompt_tokens: int | None) -> str:
    if cached_tokens is None or not prompt_tokens:
        return "cache not reported"
    return f"reported: {cached_tokens:,} of {prompt_tokens:,} tokens cached ({cached_tokens / prompt_tokens:.0%})"
