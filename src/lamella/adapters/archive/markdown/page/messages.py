"""The visible text: the messages of the active branch, as people read and edit them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lamella.adapters.archive.markdown.page.context import is_context, render_context
from lamella.adapters.archive.markdown.page.lines import escape_text, unescape_text
from lamella.adapters.archive.markdown.page.stamps import show_time
from lamella.adapters.archive.markdown.refs import list_refs
from lamella.core.log.ids import Voice
from lamella.core.log.log import Log
from lamella.core.log.nodes import Node, Told

_SPEAKERS = {Voice.USER: "user", Voice.REPLY: "ai"}
_ROLES = {speaker: role for role, speaker in _SPEAKERS.items()}
_START = re.compile(r"^\*\*(user|ai)\*\*:(?: |$)", re.MULTILINE)
_STAMP = re.compile(r"\[Timestamp: (.*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    """One message as a file shows it: its text, its context line and its time, each as it stands there."""

    role: Voice
    text: str
    context: str = ""
    stamp: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePair:
    """A question and its answer, if there is one."""

    user: ShownMessage
    reply: ShownMessage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VisiblePage:
    """What a file shows: its messages, and the text before the first of them, which belongs to none."""

    messages: tuple[ShownMessage, ...]
    preface: str


def show_log(log: Log) -> tuple[ShownMessage, ...]:
    """The messages of the active branch; a question as it was typed."""
    return tuple(message for told in log.path() for message in _show_told(told))


def typed_text(node: Node) -> str:
    """A message as the user typed it, before its templates."""
    return node.typed


def _show_told(told: Told) -> list[ShownMessage]:
    question = ShownMessage(
        role=Voice.USER,
        text=typed_text(told.message),
        context=render_context(list_refs(told.message.question)) if told.message.question else "",
        stamp=show_time(told.message.at),
    )
    if told.reply is None:
        return [question]
    return [question, ShownMessage(role=Voice.REPLY, text=told.reply.text, stamp=show_time(told.reply.at))]


def render_page(messages: Iterable[ShownMessage]) -> str:
    """Messages as text, each followed by its context, its time and a blank line."""
    return "".join(_render_message(message) for message in messages)


def _render_message(message: ShownMessage) -> str:
    context = f"{message.context}\n" if message.context else ""
    text = escape_text(message.text)
    return f"**{_SPEAKERS[message.role]}**: {text}\n{context}[Timestamp: {message.stamp}]\n\n"


def parse_page(text: str, *, escaped: bool = True) -> VisiblePage:
    """The messages a text shows. Where nothing was escaped, blank lines around a message are not part of it."""
    starts = list(_START.finditer(text))
    ends = [*(start.start() for start in starts), len(text)][1:]
    messages = [
        _parse_message(_ROLES[start[1]], text[start.end() : end], escaped=escaped)
        for start, end in zip(starts, ends, strict=True)
    ]
    preface = text[: starts[0].start()] if starts else text
    return VisiblePage(messages=tuple(messages), preface=preface.strip())


def _parse_message(role: Voice, block: str, *, escaped: bool) -> ShownMessage:
    lines = block.split("\n")
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    stamp = _STAMP.fullmatch(lines[-1].rstrip()) if len(lines) > 1 else None
    if stamp is not None:
        lines.pop()
    has_context = role is Voice.USER and len(lines) > 1 and is_context(lines[-1])
    context = lines.pop().rstrip() if has_context else ""
    text = "\n".join(lines)
    return ShownMessage(
        role=role,
        text=unescape_text(text) if escaped else text.strip(),
        context=context,
        stamp=stamp[1] if stamp else "",
    )


def pair_messages(messages: Sequence[ShownMessage]) -> tuple[list[MessagePair], list[str]]:
    """Messages as questions with their answers: every question a turn of its own, answers in a row as one answer."""
    turns: list[tuple[ShownMessage, list[ShownMessage]]] = []
    warnings: list[str] = []
    for number, message in enumerate(messages, start=1):
        if message.role is Voice.USER:
            turns.append((message, []))
            continue
        if not turns:
            warnings.append("The file begins with an answer; it stands after an empty question.")
            turns.append((ShownMessage(role=Voice.USER, text="", stamp=message.stamp), []))
        if turns[-1][1]:
            warnings.append(f"Message {number} follows another answer; the two are one answer now.")
        turns[-1][1].append(message)
    pairs = [MessagePair(user=user, reply=_join_answers(answers)) for user, answers in turns]
    return pairs, warnings


def _join_answers(answers: Sequence[ShownMessage]) -> ShownMessage | None:
    if len(answers) < 2:
        return answers[0] if answers else None
    return replace(answers[0], text="\n\n".join(answer.text for answer in answers))


def reads_same(one: str, other: str) -> bool:
    """Whether two texts differ at most in blanks that editors take away: at line ends, and around the whole."""
    return one == other or _settled(one) == _settled(other)


def _settled(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
