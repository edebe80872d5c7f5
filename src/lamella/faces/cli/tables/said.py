"""What was said, turn by turn, with the ids to fork at and the marks of compactions."""

from collections.abc import Sequence

from lamella.engine.keeping.marks import CompactionMark
from lamella.faces.cli.tables.receipts import tell_mark
from lamella.faces.cli.terminal.lines import show_line, show_lines
from lamella.faces.cli.terminal.telling import tell
from lamella.views.chats import CallBody, RoundBody, SaidBody, SourceBody
from lamella.views.words import cut_words

_INDENT = " " * 18
# Of a call and of what it gave, in characters: enough to know which it is.
_GLANCE = 100


def tell_waiting(resume: str) -> str:
    """What becomes of a question that was left before it was answered; ``resume`` goes on with it."""
    return f"`{resume}` goes on from there; a new message gives that up."


def tell_said(said: SaidBody, marks: Sequence[CompactionMark], rounds: Sequence[RoundBody] = ()) -> list[str]:
    """A turn in lines: question, what came with it, rounds of tools, reply, and below each message what came after."""
    lines = [f"{said['message']}  user: {show_lines(said['text'])}"]
    lines += [f"{_INDENT}+ {show_line(name)}" for name in said["attached"]]
    lines += _tell_marks(said["message"], marks)
    lines += [f"{_INDENT}{line}" for one in rounds for line in tell_round(one)]
    reply = said["reply"]
    if reply is not None:
        lines.append(f"{reply['message']}  reply: {show_lines(reply['text'])}")
        lines += _tell_marks(reply["message"], marks)
    return lines


def tell_round(made: RoundBody) -> list[str]:
    """What the model said before it called, each call, and what that gave."""
    said = [f"… {line}" for line in show_lines(made["text"]).splitlines()]
    return [*said, *(f"> {_tell_call(call)}" for call in made["calls"])]


def tell_source(source: SourceBody) -> list[str]:
    """What a number in a reply points to: where it stands, and below that the passage itself."""
    place = " > ".join(filter(None, (source["path"] or source["id"], source["place"].replace("#", " > "))))
    text = "erased since" if source["text"] is None else source["text"]
    passage = [f"{_INDENT}  | {line}".rstrip() for line in show_lines(text).splitlines()]
    return [f"{_INDENT}[^{source['number']}] {show_line(place)}", *passage]


def _tell_call(call: CallBody) -> str:
    called = tell_called(call["name"], call["arguments"])
    if call["output"] is None:
        return f"{called} waits for its result"
    return f"{called} {tell_given(call['output'], failed=call['failed'])}"


def tell_called(name: str, arguments: str) -> str:
    """A call on a line."""
    return show_line(f"{name}({cut_words(arguments, _GLANCE)})")


def tell_given(output: str, *, failed: bool) -> str:
    """What came back, on the same line."""
    return f"{'failed' if failed else 'gave'}: {show_line(cut_words(output, _GLANCE))}"


def _tell_marks(message: str, marks: Sequence[CompactionMark]) -> list[str]:
    return [f"{_INDENT}~ {tell_mark(mark)}" for mark in marks if mark.message == message]


def tell_uncited(*, wanted: bool, cited: bool) -> None:
    """Say that there are no sources, to those who asked for them."""
    if wanted and not cited:
        tell("No reply here cites a source.")
