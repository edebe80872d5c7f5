"""What was said, turn by turn, with the ids to fork at and the marks of compactions."""

from collections.abc import Sequence

from lamella.engine.keeping.marks import CompactionMark
from lamella.faces.cli.tables.receipts import tell_mark
from lamella.faces.cli.terminal.lines import show_line, show_lines
from lamella.views.chats import SaidBody

_INDENT = " " * 18


def tell_said(said: SaidBody, marks: Sequence[CompactionMark]) -> list[str]:
    """A turn in lines: question, what came with it, reply, and below each message what happened after it."""
    lines = [f"{said['message']}  user: {show_lines(said['text'])}"]
    lines += [f"{_INDENT}+ {show_line(name)}" for name in said["attached"]]
    lines += _tell_marks(said["message"], marks)
    reply = said["reply"]
    if reply is not None:
        lines.append(f"{reply['message']}  reply: {show_lines(reply['text'])}")
        lines += _tell_marks(reply["message"], marks)
    return lines


def _tell_marks(message: str, marks: Sequence[CompactionMark]) -> list[str]:
    return [f"{_INDENT}~ {tell_mark(mark)}" for mark in marks if mark.message == message]
