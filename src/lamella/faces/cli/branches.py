"""Branches as they are listed: enough of each to tell it from the others."""

from collections.abc import Sequence

from lamella.core.log.nodes import Told
from lamella.faces.cli.lines import cut_words, show_line

_ROOM = 50


def tell_branch(head: str, turns: Sequence[Told], *, active: bool) -> str:
    """A branch in a line: its last message, how long it is, when it was last said something, question and answer."""
    mark = "*" if active else " "
    if not turns:
        return f"{mark} {head}  nothing was said"
    last = turns[-1]
    when = (last.reply or last.message).at[:16].replace("T", " ")
    length = "1 turn" if len(turns) == 1 else f"{len(turns):,} turns"
    answer = cut_words(last.reply.text, _ROOM) if last.reply else "no answer"
    return show_line(f"{mark} {head}  {length}  {when}  {cut_words(last.message.text, _ROOM)} → {answer}")
