"""Asking: a kind, what it is about and what else was said become the text and the attachments of a turn."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from lamella.attach import Attachment, Instruction, Selection, Unknown
from lamella.engine.checks import check_each, check_text
from lamella.errors import CallError
from lamella.runners.kinds.blocks import BLOCKS, PART, ChatKind, find_kind, make_instruction

_TICKS = re.compile(r"`{3,}")
_FENCE = "```"


class KindTurn(NamedTuple):
    """What a turn asks: ``chat.ask(turn.text, attach=turn.attach, system=turn.system)``; ``send`` takes the same."""

    text: str
    attach: tuple[Attachment, ...] = ()
    system: dict[str, str] | None = None


def make_turn(kind: str, *attachments: Attachment, text: str = "") -> KindTurn:
    """A turn of a kind, about what is attached; ``text`` is what else is to be said, or the question.

    Its block comes along each time: where it stands in the prompt already, that is a line which refers to it.
    """
    meant, given = find_kind(check_text(kind, "kind")), check_text(text, "text").strip()
    about = check_each(attachments, "attach", Attachment)
    if meant is ChatKind.REGULAR:
        return KindTurn(_need(given, meant), tuple(about), {PART: BLOCKS[meant].text})
    if not BLOCKS[meant].wish:
        return KindTurn(_need(given, meant), (make_instruction(meant), *about))
    if not about and not given:
        raise CallError(f"There is nothing to {meant}.", hint="Attach the code, or say what it is about.")
    return KindTurn(word_wish(meant, given, names=_name_all(about)), (make_instruction(meant), *about))


def word_wish(kind: ChatKind, said: str = "", *, names: Sequence[str] = ()) -> str:
    """How a function is asked for, of these files, and what else was said."""
    wish, named = BLOCKS[kind].wish, "; ".join(names)
    if kind is ChatKind.FIX:
        # What went wrong was piped in; files are beside it.
        wish = f"{wish}. Files that may matter: {named}." if names else f"{wish}."
    else:
        wish = f"{wish}: {named}." if names else f"{wish}."
    return f"{wish}\n\n{said}" if said else wish


def fence_code(code: str) -> str:
    """Code as it stands in a message: whatever it holds, its fence ends it."""
    longest = max((len(run) for run in _TICKS.findall(code)), default=len(_FENCE) - 1)
    fence = "`" * (longest + 1)
    return f"{fence}\n{code.removesuffix(chr(10))}\n{fence}"


def _need(text: str, kind: ChatKind) -> str:
    if not text:
        raise CallError("There is no question.", hint=f"A turn of kind {kind} asks what its text says.")
    return text


def _name_all(attachments: Sequence[Attachment]) -> list[str]:
    """What a wish is about, as it is called in the prompt."""
    named = [_name(one) for one in attachments if not isinstance(one, Instruction | Unknown)]
    return [name for name in dict.fromkeys(named) if name]


def _name(one: Attachment) -> str:
    if isinstance(one, Selection) and one.path and one.lines:
        return f"{one.path}, lines {one.lines[0]}-{one.lines[1]}"
    return str(getattr(one, "path", None) or getattr(one, "url", None) or getattr(one, "title", "") or "")
