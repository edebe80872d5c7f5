"""The strata of a turn: its layers as bars, filled as far as the provider says it had them cached."""

from rich.text import Text

from lamella import Turn
from lamella.faces.cli.chat.opening import OpenChat
from lamella.faces.cli.tables.replay import print_layer
from lamella.faces.cli.terminal.console import make_console, print_hanging
from lamella.faces.cli.terminal.lines import show_line


def print_strata(turn: Turn, opened: OpenChat) -> None:
    """The layers, then what was reported and what that says of the prefix."""
    console = make_console()
    calls = turn.ledger.calls
    usage = calls[-1].usage if calls else None
    read, prompt = (usage.read, usage.prompt) if usage is not None else (None, None)
    cached = opened.cover(turn, read=read, prompt=prompt)
    largest = max(1, *(layer.tokens for layer in turn.envelope.layers))
    console.print()
    console.print(Text(f"turn {turn.number}  █ cached, as reported  ░ read anew", style="dim"))
    for layer in turn.envelope.layers:
        print_layer(console, layer, cached=cached.get(layer.id, 0), largest=largest)
    if calls:
        told = f"  {_tell_reported(read, prompt)} · {show_line(str(calls[-1].verdict))}"
        print_hanging(console, Text(told, style="bold"))


def _tell_reported(read: int | None, prompt: int | None) -> str:
    if read is None or not prompt:
        return "reported: nothing about the cache"
    return f"reported: {read:,} of {prompt:,} tokens cached ({read / prompt:.0%})"
