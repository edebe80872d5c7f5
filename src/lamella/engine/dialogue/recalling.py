"""Recalling: originals that the prompt no longer holds, found by their words, for people and for models.

And making room, which a model asks for as it asks for originals.
"""

import re
from abc import ABC
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from operator import is_not

from lamella.attach import Tool
from lamella.core.artifacts.make import make_tool_result
from lamella.core.compaction.fitting import Rules
from lamella.core.log.ids import Voice
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Terms
from lamella.core.log.turn import Turn
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.core.search.finding import Found, find_helpful, search
from lamella.core.search.index import Index, Passage
from lamella.core.search.passages import find_in_full, list_passages
from lamella.core.text.words import cut_words
from lamella.core.values import replace as struct_replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.past import Past
from lamella.engine.dialogue.reasons import Reason, explain, look_ahead
from lamella.errors import CallError, LamellaError

FOUND_AT_MOST = 5
# What a tool may answer at once, in characters: an original of any length must not be what bursts the window.
ANSWER_CHARACTERS = 20_000
# What the line above a stretch has beside the name of its original, and how much of a name, which has the arguments of
# a call in it.
_BESIDE, _NAME = 100, 200
# How many a model may ask for at once.
_MOST = 20

# What the lines that stand for replies name them by.
_TURN = re.compile(r"\s*turn (\d{1,9})\s*", re.IGNORECASE)
_EXCERPT = 300
RECALL = "recall"
# How many originals are held out unasked, what is said of them, and how much of the question the call is told with.
_HINTS = 2
_HINT = "Of what left the prompt, this may be meant; recall reads it whole."
_QUERY = 200

Recall = Callable[[str, int], Sequence[Found]]

_PARAMETERS: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": "Words, a path, a number or an id. What stands in double quotes must be there exactly.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": _MOST, "description": "How many to give at most."},
        "start": {
            "type": "integer",
            "minimum": 0,
            "description": "Read the one that fits best from this character on, to go on with a long one.",
        },
    },
    "required": ["query"],
}


class Recaller:
    """Searches a branch. Its index grows with the branch; of another branch it keeps what both begin with."""

    def __init__(self) -> None:
        self._index: Index | None = None
        self._past: Past | None = None
        # The turn that was entered last, which alone may have grown since: its place among the turns, that of its
        # question among the messages, and how many passages there were before it.
        self._last: tuple[Turn | None, int, int, int] = (None, 0, 0, 0)
        self._state: tuple[object, ...] = ()
        self._in_full: frozenset[str] = frozenset()

    def find(
        self, past: Past, query: str, *, sent: Callable[[], Prompt], state: tuple[object, ...], limit: int
    ) -> tuple[Found, ...]:
        """The originals that fit best and cannot be read off what is sent, which ``state`` alone decides on."""
        check_query(query, limit)
        excluded, named = self._list_in_full(sent, state), _TURN.fullmatch(query)
        if named is not None:
            there = list_passages(past.list_turns(), past.path)
            return _tell_times(_read_turn(there, named[1], without=excluded, limit=limit), past)
        return _tell_times(search(self.index(past), query, limit=limit, excluded=excluded), past)

    def find_helpful(
        self, past: Past, question: str, *, sent: Callable[[], Prompt], state: tuple[object, ...]
    ) -> tuple[Found, ...]:
        """The same for a question that nobody meant as a query: what speaks of it, if anything does."""
        excluded = self._list_in_full(sent, state)
        return _tell_times(find_helpful(self.index(past), question, limit=_HINTS, excluded=excluded), past)

    def _list_in_full(self, sent: Callable[[], Prompt], state: tuple[object, ...]) -> frozenset[str]:
        if len(state) != len(self._state) or any(map(is_not, state, self._state)):
            self._in_full, self._state = find_in_full(sent()), state
        return self._in_full

    def index(self, past: Past) -> Index:
        """The originals of a branch, ready to be searched."""
        if self._index is None:
            self._index = Index()
        if past is not self._past:
            self._begin_again(self._index, past)
        elif past.turns:
            self._go_on(self._index, past)
        self._past = past
        return self._index

    def _begin_again(self, index: Index, past: Past) -> None:
        before = past.list_turns()[:-1]
        index.renew(list_passages(before, past.path))
        answered = sum(turn.reply is not None for turn in before)
        self._last = (None, len(before), len(before) + answered, len(index))
        if past.turns:
            self._go_on(index, past)

    def _go_on(self, index: Index, past: Past) -> None:
        """Enter what was said since: of the last turn what it has more, then those after it."""
        known, first, message, size = self._last
        for number in range(first, past.number):
            turn = past.turns[number - past.number]
            if turn is not known:
                index.renew(list_passages([turn], past.path[message : message + 2], first=number + 1), since=size)
            self._last = (turn, number, message, size)
            known, message, size = None, message + (1 if turn.reply is None else 2), len(index)


class SearchedDialogue(ABC):
    """A conversation that is walked, searched for what its next request does not show."""

    _past: Past
    _state: State
    _terms: Terms
    _rules: Rules
    _recaller: Recaller

    def _with_hint(self, asked: Ask) -> Ask:
        """What is asked, with what left the prompt and speaks of the same; as it is, where nothing does."""
        if any(one.source.tool == RECALL for one in asked.results):
            return asked
        found = self._recaller.find_helpful(self._past, asked.text, sent=self._look_ahead, state=self._key)
        if not found:
            return asked
        told = "\n\n".join([_HINT, *(f"[{name_passage(one)[:_NAME]}]\n{one.excerpt}" for one in found)])
        hint = make_tool_result(RECALL, arguments={"query": cut_words(asked.text, _QUERY)}, output=told)
        return struct_replace(asked, results=(*asked.results, hint))

    @property
    def _key(self) -> tuple[object, ...]:
        """What decides on what is sent next."""
        return self._state, self._past.receipts

    def recall(self, query: str, *, limit: int = FOUND_AT_MOST, past: Past | None = None) -> Sequence[Found]:
        """Originals of this branch that cannot be read off the request; ``past`` is where the past is known better."""
        return self._recaller.find(past or self._past, query, sent=self._look_ahead, state=self._key, limit=limit)

    def receipts(self) -> Sequence[Receipt]:
        """The compactions in force, oldest first."""
        return self._past.committed()

    def find_undone(self, receipt: str | None = None) -> Sequence[Receipt]:
        """The compactions that an undo would void."""
        return self._past.find_undone(receipt)

    def why(self, name: str, *, erased: Collection[str] = (), said: Collection[str] = ()) -> Reason:
        """Why an artifact or a message is in the request that waits, or in the next, or is not."""
        return explain(name, self._past, self._look_ahead(), erased=erased, said=said)

    def _look_ahead(self) -> Prompt:
        """The request that waits for its reply, or the next one as far as it is known."""
        return look_ahead(self._state, Turn(text="", terms=self._terms, receipts=self._past.receipts), self._rules)


def _tell_times(found: Sequence[Found], past: Past) -> tuple[Found, ...]:
    return tuple(replace(one, at=past.find_time(one.passage.message)) for one in found)


def check_query(query: str, limit: object) -> None:
    """Refuses what asks for nothing, and what is no number of passages."""
    if not query.strip():
        raise CallError("There is nothing to look for.", hint="Give some words of what you want to read again.")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise CallError(f"{limit!r} is no number of passages.", hint="Give a whole number above 0.")


def _read_turn(passages: Sequence[Passage], turn: str, *, without: Set[str], limit: int) -> tuple[Found, ...]:
    """What was said and attached in a turn, the reply first: that is what a line in the prompt names by its turn."""
    there = [one for one in passages if one.place == f"turn {int(turn)}" and one.id not in without]
    there.sort(key=lambda one: one.role != Voice.REPLY)
    return tuple(Found(passage=one, score=1.0, excerpt=one.text[:_EXCERPT]) for one in there[:limit])


def make_recall_tool(recall: Recall, *, room: Callable[[], int] = lambda: ANSWER_CHARACTERS) -> Tool:
    """Recalling as a tool that a model may call; it answers in at most so many characters as ``room`` says then."""

    # On the loop, not beside it: what is searched belongs to whoever sends the turn.
    async def run(**arguments: object) -> str:
        return answer_recall(arguments, recall, room=room())

    return Tool(
        name=RECALL,
        description=(
            "Find earlier messages, notes and tool results of this conversation that no longer stand in the prompt, "
            "and read them word for word. Use it when something was left out, shortened or summarised."
        ),
        parameters=_PARAMETERS,
        run=run,
    )


def make_compact_tool(make_room: Callable[[], Receipt | None]) -> Tool:
    """Making room as a tool that a model may call: what may go goes at once, as it would when the window is full."""

    # On the loop, as recalling is. A summary is written by nobody meanwhile: who would write it waits for this.
    async def run() -> str:
        try:
            return tell_room(make_room())
        except LamellaError as error:
            return f"{error.message} {error.hint}"

    return Tool(
        name="compact",
        changes=True,
        description=(
            "Make room in this conversation: old tool results, notes and replies leave the prompt, and recall finds "
            "every word of them. Use it before work that will need much room, when one piece of work is done, or when "
            "the user asks for it."
        ),
        parameters={"type": "object", "properties": {}},
        run=run,
    )


def tell_room(receipt: Receipt | None) -> str:
    """What a compaction freed, for the model that asked for it."""
    if receipt is None:
        return "There is nothing to compact: the request is small enough, or nothing in it may go."
    steps = [f"{step.name.value} ({len(step.removed):,})" for step in receipt.steps] or ["attachments were folded"]
    freed = receipt.tokens_before - receipt.tokens_after
    return (
        f"Freed {freed:,} tokens: the request had {receipt.tokens_before:,} and has {receipt.tokens_after:,}, before "
        f"this result. What went: {', '.join(steps)}. Recall finds every word of it."
    )


def fit_answer(shown: int | None) -> int:
    """How long an answer may be where so much of a result is shown: one that is cut itself would lead in a circle."""
    return ANSWER_CHARACTERS if shown is None else min(ANSWER_CHARACTERS, shown)


def answer_recall(arguments: Mapping[str, object], recall: Recall, *, room: int = ANSWER_CHARACTERS) -> str:
    """What the tool answers to a call: each original word for word under its place, or why there is none."""
    query, limit, start = arguments.get("query"), arguments.get("limit", FOUND_AT_MOST), arguments.get("start")
    if not isinstance(query, str):
        return "recall takes a query, which is a text."
    if start is not None and (isinstance(start, bool) or not isinstance(start, int) or start < 0):
        return f"start is {start!r}, and no character to begin at."
    try:
        # A model wrote it: more than it may ask for is what it may have, and what is no number is told.
        wanted = limit if start is None else _MOST
        found = recall(query, min(wanted, _MOST) if isinstance(wanted, int) else wanted)  # type: ignore[arg-type]
    except CallError as error:
        return f"{error.message} {error.hint}"
    if not found:
        return f"Nothing that left the prompt fits {query!r}. What was not found may still stand in the prompt itself."
    if start is None:
        return "\n\n".join(_tell(found, room))
    # What was recalled before names the same id, and is not what is meant by it.
    return _read_on(next((one for one in found if one.passage.title.startswith(query)), found[0]), start, room=room)


def _read_on(one: Found, start: int, *, room: int) -> str:
    """A stretch of one original, and where the next begins."""
    text, named = one.passage.text, name_passage(one)[:_NAME]
    if start >= len(text):
        return f"{named} has {len(text):,} characters; there is nothing from {start} on."
    end = min(start + room - len(named) - _BESIDE, len(text))
    more = f"; go on with start {end}" if end < len(text) else ", to its end"
    return f"[{named}, characters {start} to {end} of {len(text)}{more}]\n{text[start:end]}"


def _tell(found: Sequence[Found], room: int) -> list[str]:
    """The originals while there is room for them; of the rest, where the words stand."""
    told: list[str] = []
    for number, one in enumerate(found):
        if room <= 0:
            told.append(f"{len(found) - number:,} more were found. Ask with words that fewer of them have.")
            break
        text = one.passage.text
        if len(text) <= room:
            told.append(f"[{name_passage(one)}, {len(text):,} characters]\n{text}")
        else:
            shown = f"an excerpt of {len(text):,} characters; start 0 reads it from its beginning"
            told.append(f"[{name_passage(one)}, {shown}]\n{one.excerpt}")
        room -= len(told[-1])
    return told


def name_passage(found: Found, *, tell: Callable[[str], str] | None = None) -> str:
    """Where an original stands, when that was, as ``tell`` tells times, and what it is."""
    passage = found.passage
    when = () if found.at is None else ((tell or _tell_minute)(found.at),)
    return ", ".join((passage.place, *when, f"{passage.role} {passage.title}"))


def _tell_minute(at: str) -> str:
    """A time for a model, which has no clock to compare seconds with."""
    return f"{at[:16].replace('T', ' ')} UTC"
