"""Branches as they are listed: enough of each to tell it from the others."""

from lamella.faces.cli.terminal.lines import show_line, tell_count, tell_time
from lamella.views.chats import BranchBody
from lamella.views.words import cut_words

_ROOM = 50


def tell_branch(branch: BranchBody) -> str:
    """A branch in a line: its last message, how long it is, when it was last said something, question and answer."""
    mark = "*" if branch["active"] else " "
    last = branch["last"]
    if last is None:
        return f"{mark} {branch['branch']}  nothing was said"
    reply = last["reply"]
    when = tell_time((reply or last)["at"])[:16]
    length = tell_count(branch["turns"], "turn")
    answer = cut_words(reply["text"], _ROOM) if reply else "no answer"
    return show_line(f"{mark} {branch['branch']}  {length}  {when}  {cut_words(last['text'], _ROOM)} → {answer}")
