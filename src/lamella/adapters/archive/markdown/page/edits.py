"""Edits by hand: what people changed in a file's visible text becomes events, after the ones it was made from.

Nothing that was said is taken back. The branch as it was stays in the log, and the one people wrote is the active one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from lamella.adapters.archive.markdown.page.context import parse_context
from lamella.adapters.archive.markdown.page.messages import (
    MessagePair,
    ShownMessage,
    VisiblePage,
    pair_messages,
    reads_same,
    show_log,
    typed_text,
)
from lamella.adapters.archive.markdown.page.stamps import read_time, show_time
from lamella.adapters.archive.markdown.scribe import Scribe
from lamella.core.log.events.changes import ForkEvent, SwitchEvent
from lamella.core.log.events.message import MessageEvent, make_open_message
from lamella.core.log.log import Log
from lamella.core.log.nodes import Node, Told
from lamella.core.log.records import Record
from lamella.core.log.turn import Turn
from lamella.core.values import replace

# How many pairs of questions are compared between the first and the last that differ. Of more than that only questions
# that were asked once are told apart: an exact comparison takes far longer than reading the file.
_COMPARED = 1_000_000


def fold_edits(log: Log, page: VisiblePage) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """The events that turn what the log shows into what the page shows, none where both are the same; and warnings.

    A message that is still recognisable, by its text or else by its place, keeps what was attached to it.
    """
    warnings = _aside(log, page)
    pairs, paired = pair_messages(page.messages)
    told = log.path()
    first = next((i for i, (old, new) in enumerate(zip(told, pairs, strict=False)) if not _same(old, new)), None)
    if first is None and len(told) == len(pairs):
        return (), tuple(warnings)
    warnings += [
        "The messages were edited by hand; the file's text is used, and the branch as it was is kept beside it.",
        *paired,
    ]
    start = min(len(told), len(pairs)) if first is None else first
    editor = _Editor(Scribe(log=log), told, matched=_match(told, pairs), warnings=warnings)
    editor.edit(pairs, start)
    return tuple(editor.scribe.records), tuple(warnings)


def _aside(log: Log, page: VisiblePage) -> list[str]:
    """What was changed in places that say nothing to anybody but people."""
    warnings = []
    for number, (old, new) in enumerate(zip(show_log(log), page.messages, strict=False), start=1):
        same = old.role is new.role and reads_same(old.text, new.text)
        if same and (old.context.rstrip(), old.stamp) != (new.context, new.stamp):
            warnings.append(f"The context or time of message {number} was changed by hand; that changes nothing.")
    return warnings


def _same(told: Told, pair: MessagePair) -> bool:
    return reads_same(typed_text(told.message), pair.user.text) and _same_reply(told.reply, pair.reply)


def _same_reply(node: Node | None, shown: ShownMessage | None) -> bool:
    return reads_same(node.text if node else "", shown.text if shown else "")


def _match(told: Sequence[Told], pairs: Sequence[MessagePair]) -> dict[int, Told]:
    """Which turn each turn of the file was: those of the same question, and between them those at the same place."""
    old = [typed_text(turn.message).strip() for turn in told]
    new = [pair.user.text.strip() for pair in pairs]
    first = _count_same(old, new)
    last = _count_same(old[first:][::-1], new[first:][::-1])
    places = {at: at for at in range(first)} | {len(new) - at: len(old) - at for at in range(1, last + 1)}
    middle, edited = old[first : len(old) - last], new[first : len(new) - last]
    compare = _compare if len(middle) * len(edited) <= _COMPARED else _compare_lone
    places |= {first + new_at: first + old_at for new_at, old_at in compare(middle, edited).items()}
    return {new_at: told[old_at] for new_at, old_at in places.items()}


def _count_same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many texts two lists have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (this, that) in enumerate(pairs) if this != that), min(len(one), len(other)))


def _compare(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    matched: dict[int, int] = {}
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("equal", "replace"):
            matched.update(zip(range(j1, j2), range(i1, i2), strict=False))
    return matched


def _compare_lone(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Those that both have exactly once."""
    counts = Counter(old), Counter(new)
    places = {text: at for at, text in enumerate(old) if counts[0][text] == counts[1][text] == 1}
    return {at: places[text] for at, text in enumerate(new) if text in places}


class _Editor:
    """Writes the turns of a file that are not in the log."""

    def __init__(
        self, scribe: Scribe, told: Sequence[Told], *, matched: Mapping[int, Told], warnings: list[str]
    ) -> None:
        self.scribe = scribe
        self._told = told
        self._matched = matched
        self._warnings = warnings
        self._at = _last_time(scribe.log, told)

    def edit(self, pairs: Sequence[MessagePair], start: int) -> None:
        """Write the turns from the first that differs on."""
        if start == len(pairs):
            self._leave(start)
            return
        old = self._told[start] if start < len(self._told) else None
        if old is not None and reads_same(typed_text(old.message), pairs[start].user.text):
            self._answer_again(old, pairs[start])
        else:
            self._ask(start, pairs[start], edits=old.message if old else None)
        for place in range(start + 1, len(pairs)):
            self._ask(place, pairs[place])

    def _leave(self, start: int) -> None:
        """The file ends earlier: so does its branch."""
        last = self._told[start - 1] if start else None
        head = "" if last is None else (last.reply or last.message).id
        self.scribe.go(ForkEvent(head=head), at=self._at)

    def _answer_again(self, old: Told, pair: MessagePair) -> None:
        if self.scribe.log.head != old.message.id:
            self.scribe.go(SwitchEvent(head=old.message.id), at=self._at)
        self._reply(pair, old)

    def _ask(self, place: int, pair: MessagePair, *, edits: Node | None = None) -> None:
        old = self._matched.get(place)
        node = old.message if old else None
        self.scribe.ask(self._asked(place, pair.user, node), at=self._time(pair.user, node), edits=edits)
        self._reply(pair, old)

    def _reply(self, pair: MessagePair, old: Told | None) -> None:
        if pair.reply is None:
            return
        node = old.reply if old else None
        same = node is not None and _same_reply(node, pair.reply)
        text = node.text if node is not None and same else pair.reply.text
        rounds = node.rounds if node is not None and same else ()
        self.scribe.reply(text, at=self._time(pair.reply, node), rounds=rounds)

    def _asked(self, place: int, shown: ShownMessage, node: Node | None) -> MessageEvent:
        """What is asked now, with the context of the message it was."""
        if node is not None and node.question is not None:
            same = reads_same(typed_text(node), shown.text)
            return node.question if same else replace(node.question, text=shown.text, typed=None)
        if shown.context:
            names = ", ".join(name for group in parse_context(shown.context).values() for name in group)
            self._warnings.append(f"Turn {place + 1} is new in the file; its context is not attached: {names}.")
        return make_open_message(Turn(text=shown.text, typed=shown.text))

    def _time(self, shown: ShownMessage, node: Node | None) -> str:
        """When it was said: exactly as before unless the file says otherwise."""
        if node is not None and show_time(node.at) == shown.stamp:
            self._at = node.at
        else:
            self._at = read_time(shown.stamp) or self._at
        return self._at


def _last_time(log: Log, told: Sequence[Told]) -> str:
    return max([log.created, *((turn.reply or turn.message).at for turn in told)])
