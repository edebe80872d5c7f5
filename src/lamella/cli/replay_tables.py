"""Print a replay: a bar per layer with its cached part filled, and a line on prefix changes and cost."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from lamella import Layer, Segment, Turn
from lamella.cli.console import make_console, print_with_hanging_indent
from lamella.cli.output import escape_to_short_line, format_count, write_unwrapped
from lamella.cli.prompt_tables import format_receipt
from lamella.schemas.formatting import format_decimal
from lamella.schemas.ledger import ReplayTotals

_BAR_WIDTH = 28
_MAX_SHOWN_NAMES = 3
# The column where artifact names begin: after the layer's name, the bar, the token count and the gaps.
_NAMES_COLUMN = 14 + _BAR_WIDTH + 10
_MAX_QUESTION_LENGTH = 60
_MAX_ID_LENGTH = 40
_CACHED_CHAR, _UNCACHED_CHAR = "█", "░"
# Keyed by the words of docs/reference/json-output.md: a layer's id, and a segment's form.
_LAYER_COLOURS = {
    "L1_SYSTEM": "blue",
    "L2_PREVIOUS": "cyan",
    "L3_TURN": "green",
    "L4_STRIP": "magenta",
    "L5_USER": "yellow",
}
_FORM_SYMBOLS = {"full": "+", "reference": "→", "update": "±", "preview": "…", "handle": "-", "summary": "≈"}
_LEGEND = "+ in full  → reference  ± update  … preview  - one line  ≈ summary"
# Parts of a request that belong to no layer but count all the same.
_PARTS_OUTSIDE_LAYERS = ("tools", "overhead")
_MESSAGE_KINDS = ("user", "reply")
# Placeholders for removed messages. They are shown by kind, because their ids mean nothing to users.
_PLACEHOLDER_KINDS = ("left_out", "summary", "digest", "rules")


def print_replay(conversation_key: str, turns: Iterable[Turn], totals: ReplayTotals) -> None:
    """Print each turn as it is built, then the totals; nothing is printed if the first turn cannot be built."""
    console = make_console()
    for turn in turns:
        if turn.number == 1:
            _print_header(console, conversation_key)
        print_turn(console, turn)
    if not totals.turns:
        _print_header(console, conversation_key)
    console.print(_render_totals(totals))


def print_messages(turns: Iterable[Turn]) -> None:
    """Print the messages of each turn exactly as sent, under headings."""
    console = make_console()
    for turn in turns:
        console.print(Text(f"═══ turn {turn.number}", style="bold"))
        if turn.check is not None and turn.check.warning:
            console.print(Text(escape_to_short_line(turn.check.warning), style="red"))
        for message in turn.messages:
            console.print(Text(f"─── {message.role}", style="dim"))
            write_unwrapped(f"{message.text}\n")
            for call in message.calls:
                write_unwrapped(f"{call.name}({call.arguments})\n")
            for image in message.images:
                console.print(Text(f"[{image.media_type}, {image.width}x{image.height}]", style="dim"))


def _print_header(console: Console, conversation_key: str) -> None:
    head = Text(f"{escape_to_short_line(conversation_key)}  ", style="bold")
    console.print(head.append(f"{_CACHED_CHAR} cached  {_UNCACHED_CHAR} not cached", style="dim"))
    console.print(Text(_LEGEND, style="dim"))


def print_turn(console: Console, turn: Turn) -> None:
    """Print a turn: its layers as bars, its prefix change, cached tokens and cost."""
    typed = " ".join(turn.envelope.layers[-1].text.split())
    shown = escape_to_short_line(
        typed if len(typed) <= _MAX_QUESTION_LENGTH else typed[: _MAX_QUESTION_LENGTH - 1] + "…"
    )
    console.print()
    console.print(Text(f"turn {turn.number}  ", style="bold").append(shown, style="default"))
    largest = max(1, *(layer.tokens for layer in turn.envelope.layers))
    cached = turn.ledger.cached_by_layer
    for layer in turn.envelope.layers:
        print_layer(console, layer, cached=cached.get(layer.id, 0), largest=largest)
    print_parts_outside_layers(console, turn)
    print_with_hanging_indent(console, _render_cost_and_cache_line(turn))
    if turn.envelope.prompt.layout_plan.priced:
        print_with_hanging_indent(console, Text(f"  plan: {escape_to_short_line(turn.layout_reason)}", style="dim"))
    if turn.compaction is not None:
        print_with_hanging_indent(console, Text(f"  compacted: {format_receipt(turn.compaction)}", style="magenta"))
    if turn.check is not None and turn.check.warning:
        print_with_hanging_indent(console, Text(f"  {escape_to_short_line(turn.check.warning)}", style="red"))
    for warning in turn.envelope.warnings:
        print_with_hanging_indent(console, Text(f"  warning: {escape_to_short_line(warning)}", style="yellow"))


def print_layer(console: Console, layer: Layer, *, cached: int, largest: int) -> None:
    """Print a layer on one line; artifact names that do not fit go below the first of them."""
    print_with_hanging_indent(console, render_layer_bar(layer, cached, largest), indent=_NAMES_COLUMN)


def print_parts_outside_layers(console: Console, turn: Turn) -> None:
    """Print the tokens of tool definitions and of the message format, which are part of no layer."""
    for name in _PARTS_OUTSIDE_LAYERS:
        if turn.tokens.by_layer[name]:
            console.print(Text(f"  {name:<12}{'':<{_BAR_WIDTH}}{turn.tokens.by_layer[name]:>8,}"))


def render_layer_bar(layer: Layer, cached: int, largest: int) -> Text:
    """Return a layer as a bar with its cached part filled, its tokens and its artifacts."""
    length = min(_BAR_WIDTH, -(-layer.tokens * _BAR_WIDTH // largest))
    filled = min(length, round(length * cached / layer.tokens)) if layer.tokens else 0
    colour = _LAYER_COLOURS[layer.id]
    line = Text(f"  {layer.id:<12}")
    line.append(_CACHED_CHAR * filled, style=colour).append(_UNCACHED_CHAR * (length - filled), style=colour)
    line.append(" " * (_BAR_WIDTH - length) + f"{layer.tokens:>8,}  ")
    return line.append(_format_artifacts(layer), style="dim")


def _format_artifacts(layer: Layer) -> str:
    """Return the artifacts and placeholders of a layer, each with its tokens if there are several."""
    named = [segment for segment in layer.segments if segment.kind not in _MESSAGE_KINDS]
    more = f" and {len(named) - _MAX_SHOWN_NAMES} more" if len(named) > _MAX_SHOWN_NAMES else ""
    alone = len(layer.segments) == 1
    return ", ".join(_segment_label(segment, is_only=alone) for segment in named[:_MAX_SHOWN_NAMES]) + more


def _segment_label(segment: Segment, *, is_only: bool) -> str:
    is_placeholder = segment.kind in _PLACEHOLDER_KINDS
    # The id of an image or an unknown block contains a long hash.
    is_long = len(segment.id) > _MAX_ID_LENGTH
    shown_id = escape_to_short_line(segment.id[: _MAX_ID_LENGTH - 1] + "…" if is_long else segment.id)
    name = segment.kind if is_placeholder else shown_id
    if segment.form == "reference" and not segment.tokens:
        # A reference without tokens: the model already has the text, and no line was needed to say so.
        return f"{_FORM_SYMBOLS[segment.form]}{name} known"
    return f"{_FORM_SYMBOLS[segment.form]}{name}" + ("" if is_only else f" {segment.tokens:,}")


def _render_cost_and_cache_line(turn: Turn) -> Text:
    """Return the line about a turn's tokens, its cost, and what the cache kept."""
    tokens, read = turn.tokens, turn.cache.read if turn.cache else 0
    share = read / tokens.total if tokens.total else 0
    line = Text(f"  {tokens.total:,} of {tokens.limit:,} tokens · {read:,} cached ({share:.0%})", style="dim")
    line.append(f" · {_format_cost(turn)}", style="dim")
    cause = turn.prefix_change.cause
    if cause == "none":
        kept = line.append(" · prefix unchanged", style="green")
        return (
            kept
            if turn.prefix_change.segment is None
            else kept.append(f", {turn.prefix_change.segment} changed", style="red")
        )
    if cause == "first_turn":
        return line.append(" · first turn", style="dim")
    return line.append(f" · prefix changed: {escape_to_short_line(str(turn.prefix_change.prefix_change))}", style="red")


def _format_cost(turn: Turn) -> str:
    cost = turn.cost
    return "no price known" if cost is None else f"${format_decimal(cost.amount)} (naive ${format_decimal(cost.naive)})"


def _render_totals(totals: ReplayTotals) -> Text:
    line = Text("\n")
    line.append(format_count(totals.turns, "turn"), style="bold")
    # A turn with tools sends several requests.
    requests = "" if totals.requests == totals.turns else f" · {format_count(totals.requests, 'request')}"
    line.append(f"{requests} · {totals.tokens:,} tokens sent · {totals.cache_read_share:.0%} cached")
    line.append(f" · prefix changed {format_count(totals.prefix_breaks, 'time')}")
    if totals.compactions:
        line.append(f" · compacted {format_count(totals.compactions, 'time')}")
    if totals.is_priced and totals.turns:
        ratio = "" if totals.naive_ratio is None else f" ({totals.naive_ratio:.2f}x)"
        line.append(f"\ncost ${format_decimal(totals.cost)} · naive ${format_decimal(totals.naive_cost)}{ratio}")
        line.append(f" · perfect cache ${format_decimal(totals.perfect_cache_cost)}")
    return line
