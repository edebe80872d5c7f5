"""Facts for people: numbered lines, and who each is from."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lamella.faces.cli.terminal.lines import show_line
from lamella.holdings import Fact, FactKind

if TYPE_CHECKING:
    from lamella.engine.memory import TalkLine

_FROM = {FactKind.SAVED: "", FactKind.NOTED: " (noted by a model)", FactKind.RECENT: " (a conversation)"}


def tell_facts(facts: Sequence[Fact], folder: str) -> Iterator[str]:
    """Each on a line with its number, then where they are kept."""
    for number, fact in enumerate(facts, start=1):
        yield f"{number:>3}  {show_line(fact.text)}{_FROM[fact.kind]}"
    if not facts:
        yield "Nothing is remembered yet."
    yield f"In {show_line(folder)}, for you to read and edit."


def tell_kept(line: "TalkLine", fact: Fact) -> str:
    """What is remembered of a conversation, in whose words, and why not in those of the model that was asked."""
    said = f"Remembered{f', in words of {show_line(line.author)}' if line.author else ''}: {show_line(fact.text)}"
    return f"{said}\nNo model wrote it: {show_line(line.why)}" if line.why else said
