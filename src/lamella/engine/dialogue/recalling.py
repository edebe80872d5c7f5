"""Recalling: originals that the prompt no longer holds, found by their words, for people and for models."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence, Set

from lamella.attach import Tool
from lamella.core.log.ids import Voice
from lamella.core.prompt.prompt import Prompt
from lamella.core.search.index import Found, Index, Passage, build_index, search
from lamella.core.search.passages import find_in_full, list_passages
from lamella.engine.dialogue.past import Past
from lamella.errors import CallError

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
    """Searches a branch. Its index is kept until there is something else to search."""

    def __init__(self, key: Callable[[str], str] | None = None) -> None:
        self._key = key or spell
        self._passages: tuple[Passage, ...] = ()
        self._index: Index | None = None

    def find(self, past: Past, query: str, *, sent: Prompt, limit: int) -> tuple[Found, ...]:
        """The originals that fit best and cannot be read off what is sent."""
        if not query.strip():
            raise CallError("There is nothing to look for.", hint="Give some words of what you want to read again.")
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise CallError(f"{limit!r} is no number of passages.", hint="Give a whole number above 0.")
        excluded = find_in_full(sent)
        named = _TURN.fullmatch(query)
        if named is not None:
            return _read_turn(list_passages(past.turns, past.path), named[1], without=excluded, limit=limit)
        return search(self._indexed(past), query, limit=limit, excluded=excluded)

    def _indexed(self, past: Past) -> Index:
        passages = list_passages(past.turns, past.path)
        if self._index is None or passages != self._passages:
            self._passages, self._index = passages, build_index(passages, key=self._key)
        return self._index


def _read_turn(passages: Sequence[Passage], turn: str, *, without: Set[str], limit: int) -> tuple[Found, ...]:
    """What was said and attached in a turn, the reply first: that is what a line in the prompt names by its turn."""
    there = [one for one in passages if one.place == f"turn {int(turn)}" and one.id not in without]
    there.sort(key=lambda one: one.role != Voice.REPLY)
    return tuple(Found(passage=one, score=1.0, excerpt=one.text[:_EXCERPT]) for one in there[:limit])


def spell(text: str) -> str:
    """A text as it is compared: compatible characters are one, and so are upper and lower case."""
    return unicodedata.normalize("NFKC", text).casefold()


def make_recall_tool(recall: Recall, *, room: Callable[[], int] = lambda: ANSWER_CHARACTERS) -> Tool:
    """Recalling as a tool that a model may call; it answers in at most so many characters as ``room`` says then."""

    # On the loop, not beside it: what is searched belongs to whoever sends the turn.
    async def run(**arguments: object) -> str:
        return answer_recall(arguments, recall, room=room())

    return Tool(
        name="recall",
        description=(
            "Find earlier messages, notes and tool results of this conversation that no longer stand in the prompt, "
            "and read them word for word. Use it when something was left out, shortened or summarised."
        ),
        parameters=_PARAMETERS,
        run=run,
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


def name_passage(found: Found) -> str:
    """Where an original stands and what it is."""
    passage = found.passage
    return f"{passage.place}, {passage.role} {passage.title}"
