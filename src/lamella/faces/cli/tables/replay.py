"""The replay for people: a bar per layer, the cached part of it filled, and a line on what moved and what it cost."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from lamella import Layer, Segment, Turn
from lamella.faces.cli.tables.receipts import tell_receipt
from lamella.faces.cli.terminal.console import make_console, print_hanging
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.faces.cli.terminal.telling import write_exactly
from lamella.views.amounts import plain
from lamella.views.totals import Totals

_BAR = 28
_NAMES_SHOWN = 3
# Columns before the names of a layer's artifacts: its own name, the bar, its tokens, and what stands between them.
_NAMES_AT = 14 + _BAR + 10
_TYPED_SHOWN = 60
_ID_SHOWN = 40
_CACHED, _SENT = "█", "░"
# Keyed by the words of docs/replay.md: a layer's id, a segment's form and kind, a cause.
_COLOURS = {"L1_SYSTEM": "blue", "L2_PREVIOUS": "cyan", "L3_TURN": "green", "L4_STRIP": "magenta", "L5_USER": "yellow"}
_MARKS = {"full": "+", "reference": "→", "update": "±", "preview": "…", "handle": "-", "summary": "≈"}
_LEGEND = "+ in full  → reference  ± update  … preview  - one line  ≈ summary"
# What belongs to no layer, and is sent and counted all the same.
_BESIDE = ("tools", "overhead")
_SAID = ("user", "reply")
# These stand for messages that were taken out; their ids say nothing to people.
_STAND_INS = ("left_out", "summary", "digest", "rules")


def print_table(conversation: str, turns: Iterable[Turn], totals: Totals) -> None:
    """Each turn as it is built, then the sums. Where not even the first can be built, nothing is printed."""
    console = make_console()
    for turn in turns:
        if turn.number == 1:
            _print_head(console, conversation)
        print_turn(console, turn)
    if not totals.turns:
        _print_head(console, conversation)
    console.print(_sums(totals))


def print_messages(turns: Iterable[Turn]) -> None:
    """The messages of each turn, exactly as sent, under headings."""
    console = make_console()
    for turn in turns:
        console.print(Text(f"═══ turn {turn.number}", style="bold"))
        for message in turn.messages:
            console.print(Text(f"─── {message.role}", style="dim"))
            write_exactly(f"{message.text}\n")
            for call in message.calls:
                write_exactly(f"{call.name}({call.arguments})\n")
            for image in message.images:
                console.print(Text(f"[{image.media_type}, {image.width}x{image.height}]", style="dim"))


def _print_head(console: Console, conversation: str) -> None:
    head = Text(f"{show_line(conversation)}  ", style="bold")
    console.print(head.append(f"{_CACHED} cached  {_SENT} sent anew", style="dim"))
    console.print(Text(_LEGEND, style="dim"))


def print_turn(console: Console, turn: Turn) -> None:
    """A turn: its layers as bars, what moved, what is cached and what it costs."""
    typed = " ".join(turn.envelope.layers[-1].text.split())
    shown = show_line(typed if len(typed) <= _TYPED_SHOWN else typed[: _TYPED_SHOWN - 1] + "…")
    console.print()
    console.print(Text(f"turn {turn.number}  ", style="bold").append(shown, style="default"))
    largest = max(1, *(layer.tokens for layer in turn.envelope.layers))
    cached = turn.ledger.cached_by_layer
    for layer in turn.envelope.layers:
        print_layer(console, layer, cached=cached.get(layer.id, 0), largest=largest)
    for name in _BESIDE:
        if turn.tokens.by_layer[name]:
            console.print(Text(f"  {name:<12}{'':<{_BAR}}{turn.tokens.by_layer[name]:>8,}"))
    print_hanging(console, _summary(turn))
    if turn.envelope.prompt.placement.priced:
        print_hanging(console, Text(f"  plan: {show_line(turn.why)}", style="dim"))
    if turn.compaction is not None:
        print_hanging(console, Text(f"  compacted: {tell_receipt(turn.compaction)}", style="magenta"))
    for warning in turn.envelope.warnings:
        print_hanging(console, Text(f"  warning: {show_line(warning)}", style="yellow"))


def print_layer(console: Console, layer: Layer, *, cached: int, largest: int) -> None:
    """A layer in a line; names for which it is too narrow stand below the first of them."""
    print_hanging(console, draw_layer(layer, cached, largest), under=_NAMES_AT)


def draw_layer(layer: Layer, cached: int, largest: int) -> Text:
    """A layer as a bar, the cached part of it filled, with its tokens and the artifacts in it."""
    length = min(_BAR, -(-layer.tokens * _BAR // largest))
    filled = min(length, round(length * cached / layer.tokens)) if layer.tokens else 0
    colour = _COLOURS[layer.id]
    line = Text(f"  {layer.id:<12}")
    line.append(_CACHED * filled, style=colour).append(_SENT * (length - filled), style=colour)
    line.append(" " * (_BAR - length) + f"{layer.tokens:>8,}  ")
    return line.append(_named(layer), style="dim")


def _named(layer: Layer) -> str:
    """The artifacts of a layer, or what stands in it for messages, each with its tokens where there are several."""
    named = [segment for segment in layer.segments if segment.kind not in _SAID]
    more = f" and {len(named) - _NAMES_SHOWN} more" if len(named) > _NAMES_SHOWN else ""
    alone = len(layer.segments) == 1
    return ", ".join(_name(segment, alone=alone) for segment in named[:_NAMES_SHOWN]) + more


def _name(segment: Segment, *, alone: bool) -> str:
    stands_in = segment.kind in _STAND_INS
    name = segment.kind if stands_in else _short(segment.id)
    if segment.form == "reference" and not segment.tokens:
        # Nothing was sent for it: the model has it, and no line had to say so.
        return f"{_MARKS[segment.form]}{name} known"
    return f"{_MARKS[segment.form]}{name}" + ("" if alone else f" {segment.tokens:,}")


def _short(name: str) -> str:
    """An id that fits a line: a picture's or unknown block's is a long hash."""
    return show_line(name if len(name) <= _ID_SHOWN else name[: _ID_SHOWN - 1] + "…")


def _summary(turn: Turn) -> Text:
    tokens, read = turn.tokens, turn.cache.read if turn.cache else 0
    share = read / tokens.total if tokens.total else 0
    line = Text(f"  {tokens.total:,} of {tokens.limit:,} tokens · {read:,} cached ({share:.0%})", style="dim")
    line.append(f" · {_money(turn)}", style="dim")
    cause = turn.prefix.cause
    if cause == "none":
        kept = line.append(" · prefix kept", style="green")
        return kept if turn.prefix.segment is None else kept.append(f", {turn.prefix.segment} changed", style="red")
    if cause == "first_turn":
        return line.append(" · first turn", style="dim")
    return line.append(f" · moved: {show_line(str(turn.prefix.movement))}", style="red")


def _money(turn: Turn) -> str:
    cost = turn.cost
    return "no price known" if cost is None else f"${plain(cost.amount)} (naive ${plain(cost.naive)})"


def _sums(totals: Totals) -> Text:
    line = Text("\n")
    line.append(tell_count(totals.turns, "turn"), style="bold")
    line.append(f" · {totals.tokens:,} tokens sent · {totals.cache_read_share:.0%} cached")
    line.append(f" · prefix moved {tell_count(totals.prefix_breaks, 'time')}")
    if totals.compactions:
        line.append(f" · compacted {tell_count(totals.compactions, 'time')}")
    if totals.priced and totals.turns:
        line.append(f"\ncost ${plain(totals.cost)} · naive ${plain(totals.naive)}{_ratio(totals)}")
        line.append(f" · a perfect cache ${plain(totals.limit)}")
    return line


def _ratio(totals: Totals) -> str:
    return "" if totals.naive_ratio is None else f" ({totals.naive_ratio:.2f}x)"
