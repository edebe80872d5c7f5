"""Memory: what conversations know of earlier ones, when each takes up what changed, and how something gets there."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from lamella.core.budget.counting import Measure
from lamella.core.compaction.asking import SummaryNeed, SummaryText, ask_alone, key_of, texts_of
from lamella.core.compaction.checking import check_summary
from lamella.core.compaction.fitting import Rules
from lamella.core.compaction.rules import SummaryRules
from lamella.core.prompt.layers.memory import MEMORY_HEADING, clean_fact, find_moved_fact, render_memory
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.errors import CallError, LamellaError
from lamella.holdings import FactKind
from lamella.ports import MemoryBook

# What the memory may take of a prompt: so many tokens, and no more than this part of what fits.
MOST_TOKENS = 1_500
_PART = 20
_NAME = "memory"
# What a summary of a whole conversation reads and writes, in tokens: a line is made of it.
_READS, _WRITES = 4_000, 120
_LINE = SummaryRules(form="one sentence")
_QUESTION = 160

# The part of the system prompt within so many tokens, as files have it now, for the conversation of a key.
MemoryPart = Callable[[Callable[[str], int], int, str], str]


def make_part(*books: MemoryBook) -> MemoryPart:
    """What a prompt has of these memories, the first one's lines first."""

    def render(count: Callable[[str], int], limit: int, chat: str) -> str:
        # What a conversation was about stands in its own prompt already.
        facts = [fact for book in books for fact in book.read() if fact.chat != chat]
        saved, noted, recent = ([fact.text for fact in facts if fact.kind is kind] for kind in FactKind)
        return render_memory(saved, noted, recent, count=count, limit=limit)

    return render


def no_part(_count: Callable[[str], int], _limit: int, _chat: str) -> str:
    """What a prompt has of the memory where it is switched off."""
    return ""


class MemoryWatch:
    """When a conversation takes up what changed: once after it was opened, was compacted, or was asked to.

    Else with a question that moves what was sent anyway.
    """

    def __init__(self, part: MemoryPart, *, reopens: bool = False) -> None:
        self._part = part
        # Where every question opens a conversation, only the first is a reason.
        self.is_due: bool | None = None if reopens else True

    def hold(self, asked: Ask, state: State, rules: Rules) -> Ask:
        """What is asked, with the memory as it is now where that is due; else only if this turn moves what was sent.

        A memory that a program gave in its own words is that program's.
        """
        held = state.system.memory
        if _NAME in asked.system or (held and not held.startswith(MEMORY_HEADING)):
            return asked
        due = (state.last is None if self.is_due is None else self.is_due) or asked.fold
        try:
            text = self._read(state, rules)
        except LamellaError as error:
            told = f"The memory stays as it is in this conversation: {error.message}"
            return replace(asked, warnings=(*asked.warnings, told)) if due else asked
        if due:
            return replace(asked, system={**asked.system, _NAME: text})
        return asked if text == held else replace(asked, upon={_NAME: text})

    def find_change(self, state: State, rules: Rules) -> str | None:
        """The first line that is not in the prompt as it is in the files, and what became of it."""
        return find_moved_fact(state.system.memory, self._read(state, rules))

    def _read(self, state: State, rules: Rules) -> str:
        limit = min(MOST_TOKENS, rules.budget.limit // _PART)
        return self._part(rules.measure.count, limit, state.conversation)


class TalkLine(NamedTuple):
    """What a conversation was about: the line, who wrote it, if a model did, and why the one that was asked did not."""

    text: str
    author: str = ""
    why: str = ""


def need_line(exchanges: Sequence[Exchange], *, measure: Measure) -> SummaryNeed:
    """What a model is asked for a conversation on one line: its last turns, as many as are read for that."""
    taken = _take_last(exchanges, measure)
    asked = ask_alone(taken, measure=measure, rules=_LINE, writes=_WRITES)
    return SummaryNeed(key=key_of(taken, [_NAME]), messages=asked, max_tokens=_WRITES)


def tell_talk(
    title: str, exchanges: Sequence[Exchange], *, day: datetime | None, measure: Measure, given: SummaryText | None
) -> TalkLine:
    """A conversation on one line: what a model wrote where it did as it should, else its beginning."""
    if not exchanges:
        raise CallError("Nothing was said yet.", hint="Ask something first.")
    when = f"{day:%Y-%m-%d}, " if day else ""
    why = "" if given is None else given.why or _find_wrong(given.text, _take_last(exchanges, measure), measure) or ""
    if given is not None and not why:
        signed = f" (summarised by {given.by})" if given.by else ""
        return TalkLine(clean_fact(f"{when}{title}{signed}: {given.text}"), author=given.by or "a model")
    first = " ".join(exchanges[0].user.text.split())
    cut = first if len(first) <= _QUESTION else f"{first[:_QUESTION].rstrip()} …"
    begins = first.startswith(title.rstrip(" …."))
    return TalkLine(clean_fact(f"{when}{cut}" if begins else f"{when}{title}: {cut}"), why=why)


def _take_last(exchanges: Sequence[Exchange], measure: Measure) -> list[Exchange]:
    """The last turns that a line is made from; the very last in any case."""
    taken: list[Exchange] = []
    room = _READS
    for one in reversed(exchanges):
        room -= sum(measure.count(said.text) for said in one.said)
        if room < 0 and taken:
            break
        taken.insert(0, one)
    return taken


def _find_wrong(text: str, taken: Sequence[Exchange], measure: Measure) -> str | None:
    """What keeps a summary of these turns from being taken; none as far as nothing can be told against it."""
    texts = texts_of(taken)
    return check_summary(
        text,
        replaced=texts,
        users=[one.user.text for one in taken],
        tokens=measure.count(text),
        replaced_tokens=sum(measure.count(one) for one in texts),
        max_tokens=2 * _WRITES,
    )
