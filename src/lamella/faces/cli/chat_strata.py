"""The strata of a turn: its layers as bars, filled as far as the provider says it had them cached."""

from rich.text import Text

from lamella.core.budget.counting import Measure
from lamella.core.ledger.cover import cover_layers
from lamella.engine.turn import TurnView
from lamella.faces.cli.console import make_console
from lamella.faces.cli.lines import show_line
from lamella.faces.cli.replay_table import draw_layer


def print_strata(turn: TurnView, measure: Measure) -> None:
    """The layers, then what was reported and what that says of the prefix."""
    console = make_console()
    calls = turn.ledger.calls
    usage = calls[-1].usage if calls else None
    read, prompt = (usage.read, usage.prompt) if usage is not None else (None, None)
    # The provider counts with its own vocabulary; its share is what can be drawn on our bars.
    known = round(turn.tokens.total * read / prompt) if read is not None and prompt else 0
    cached = cover_layers(turn.envelope, known, measure)
    largest = max(1, *(layer.tokens for layer in turn.envelope.layers))
    console.print()
    console.print(Text(f"turn {turn.number}  █ cached, as reported  ░ read anew", style="dim"))
    for layer in turn.envelope.layers:
        console.print(draw_layer(layer, cached.get(layer.id, 0), largest))
    if calls:
        console.print(Text(f"  {_tell_reported(read, prompt)} · {show_line(str(calls[-1].verdict))}", style="bold"))


def _tell_reported(read: int | None, prompt: int | None) -> str:
    if read is None or not prompt:
        return "reported: nothing about the cache"
    return f"reported: {read:,} of {prompt:,} tokens cached ({read / prompt:.0%})"
