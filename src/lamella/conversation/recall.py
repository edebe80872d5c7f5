"""Search a branch for originals that are no longer in its prompt, for users and for the model.

It also builds the tools ``recall`` and ``compact`` that a model may call.
"""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from operator import is_not
from typing import TypeVar

from lamella.attach import Tool
from lamella.conversation.past_turns import BranchHistory
from lamella.conversation.turn import TurnRequest
from lamella.core.artifacts.kinds import make_tool_result
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import MessageAuthor, Turn
from lamella.core.prompt.prompt import Prompt
from lamella.core.search.index import Passage, PassageIndex, list_passages, passage_ids_in_prompt
from lamella.core.search.recall import (
    RECALL_TOKENS,
    RecalledMessage,
    RecallHit,
    fit_hits_and_neighbours_to_budget,
    recall_passages,
)
from lamella.core.search.search import SearchHit, search_for_question
from lamella.core.text.content import truncate_words
from lamella.core.values import replace as struct_replace
from lamella.errors import InvalidOperationError, LamellaError

# The tokens that one recall returns, unless the caller says otherwise.
DEFAULT_RECALL_TOKENS = RECALL_TOKENS
# The maximum length of an answer that reads one long original, in characters: it must not overflow the window.
MAX_ANSWER_CHARS = 20_000
# The characters that the header of a passage needs besides its name, and the maximum length of that name. A name may
# contain the arguments of a tool call.
_NOTICE_CHARS, _MAX_LABEL_CHARS = 100, 200
# How many hits a model may ask for at once.
_MAX_HITS = 20

# How placeholders in the prompt refer to removed replies, and the digest and summaries to messages.
_TURN_QUERY = re.compile(r"\s*turn (\d{1,9})\s*", re.IGNORECASE)
_MESSAGE_QUERY = re.compile(r"\s*(?:message (\d{1,9})|\[(\d{1,9})\])\s*", re.IGNORECASE)
_EXCERPT_CHARS = 300
RECALL_TOOL = "recall"
# Recall hints that are added to a question unasked: how many, their introduction, and the length of the recorded query.
_MAX_HINTS = 2
_HINT_HEADING = "Of what left the prompt, this may be meant."
_MAX_QUERY_CHARS = 200

Hit = TypeVar("Hit", bound=SearchHit)
SearchFunction = Callable[[str, int | None], Sequence[RecallHit]]

_RECALL_PARAMETERS: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": "Words, a path, a number or an id. What stands in double quotes must be there exactly.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": _MAX_HITS, "description": "How many to give at most."},
        "start": {
            "type": "integer",
            "minimum": 0,
            "description": "Read the one that fits best from this character on, to go on with a long one.",
        },
    },
    "required": ["query"],
}


class BranchSearch:
    """Searches the messages and attachments of a branch.

    The index grows with the branch. For another branch it keeps what both have in common from the start.
    """

    def __init__(self) -> None:
        self._index: PassageIndex | None = None
        self._indexed_history: BranchHistory | None = None
        # The turn that was indexed last, the only one that may have grown since: the turn, its index among the turns,
        # the index of its question among the message ids, and the number of passages before it.
        self._last_indexed: tuple[Turn | None, int, int, int] = (None, 0, 0, 0)
        self._state_key: tuple[object, ...] = ()
        self._full_ids: frozenset[str] = frozenset()

    def search(
        self,
        history: BranchHistory,
        query: str,
        *,
        get_prompt: Callable[[], Prompt],
        state_key: tuple[object, ...],
        count: Callable[[str], int],
        limit: int | None = None,
        max_tokens: int = RECALL_TOKENS,
    ) -> tuple[RecallHit, ...]:
        """Return the best matching originals that are not in the request in full, up to the budget.

        ``get_prompt`` builds that request. It is called again only if ``state_key`` contains other objects than in the
        last call.
        """
        check_query(query, limit, max_tokens)
        excluded = self._list_ids_in_prompt_in_full(get_prompt, state_key)
        turn, message = _TURN_QUERY.fullmatch(query), _MESSAGE_QUERY.fullmatch(query)
        index = self.get_index(history)
        if turn is not None or message is not None:
            there = list_passages(history.list_turns(), history.message_ids)
            hits = (
                _turn_to_hits(there, int(turn[1]), without=excluded, limit=limit)
                if turn is not None
                else _message_to_hits(there, int(message[1] or message[2]), without=excluded)
                if message is not None
                else ()
            )
            names = [hit.passage.id for hit in hits]
            found = fit_hits_and_neighbours_to_budget(
                index, hits, query, count=count, max_tokens=max_tokens, named=names
            )
        else:
            found = recall_passages(index, query, count=count, limit=limit, max_tokens=max_tokens, excluded=excluded)
        return _with_message_times(found, history)

    def search_for_question(
        self, history: BranchHistory, question: str, *, get_prompt: Callable[[], Prompt], state_key: tuple[object, ...]
    ) -> tuple[SearchHit, ...]:
        """Return originals that are relevant to a question which was not written as a search query."""
        excluded = self._list_ids_in_prompt_in_full(get_prompt, state_key)
        found = search_for_question(self.get_index(history), question, limit=_MAX_HINTS, excluded=excluded)
        return _with_message_times(found, history)

    def _list_ids_in_prompt_in_full(
        self, get_prompt: Callable[[], Prompt], state_key: tuple[object, ...]
    ) -> frozenset[str]:
        # Compare by identity: states and receipts are immutable, so a change always gives new objects.
        if len(state_key) != len(self._state_key) or any(map(is_not, state_key, self._state_key)):
            self._full_ids, self._state_key = passage_ids_in_prompt(get_prompt()), state_key
        return self._full_ids

    def get_index(self, history: BranchHistory) -> PassageIndex:
        """Return the index of a branch after an update."""
        if self._index is None:
            self._index = PassageIndex()
        if history is not self._indexed_history:
            self._reindex(self._index, history)
        elif history.turns:
            self._index_new_turns(self._index, history)
        self._indexed_history = history
        return self._index

    def _reindex(self, index: PassageIndex, history: BranchHistory) -> None:
        before = history.list_turns()[:-1]
        index.replace_from(list_passages(before, history.message_ids))
        answered = sum(turn.reply is not None for turn in before)
        self._last_indexed = (None, len(before), len(before) + answered, len(index))
        if history.turns:
            self._index_new_turns(index, history)

    def _index_new_turns(self, index: PassageIndex, history: BranchHistory) -> None:
        """Index what was added since: the new part of the last indexed turn, then the turns after it."""
        known, first, message, size = self._last_indexed
        for number in range(first, history.turn_count):
            turn = history.turns[number - history.turn_count]
            if turn is not known:
                index.replace_from(
                    list_passages([turn], history.message_ids[message : message + 2], first_turn_number=number + 1),
                    start=size,
                )
            self._last_indexed = (turn, number, message, size)
            known, message, size = None, message + (1 if turn.reply is None else 2), len(index)


def with_recall_hint(
    turn_request: TurnRequest, search_for_question: Callable[[str], Sequence[SearchHit]]
) -> TurnRequest:
    """Return the request with relevant passages that left the prompt, or unchanged if there are none."""
    if any(one.source.tool == RECALL_TOOL for one in turn_request.results):
        return turn_request
    found = search_for_question(turn_request.text)
    if not found:
        return turn_request
    output = "\n\n".join(
        [_HINT_HEADING, *(f"[{describe_passage(one)[:_MAX_LABEL_CHARS]}]\n{one.excerpt}" for one in found)]
    )
    hint = make_tool_result(
        RECALL_TOOL, arguments={"query": truncate_words(turn_request.text, _MAX_QUERY_CHARS)}, output=output
    )
    return struct_replace(turn_request, results=(*turn_request.results, hint))


def _with_message_times(hits: Sequence[Hit], history: BranchHistory) -> tuple[Hit, ...]:
    return tuple(replace(one, at=history.message_time(one.passage.message)) for one in hits)


def check_query(query: str, limit: object, max_tokens: object = RECALL_TOKENS) -> None:
    """Raise ``InvalidOperationError`` for an empty query, or for a number that is not a whole one above 0."""
    if not query.strip():
        raise InvalidOperationError(
            "There is nothing to look for.", hint="Give some words of what you want to read again."
        )
    if limit is not None and not _is_positive_integer(limit):
        raise InvalidOperationError(f"{limit!r} is no number of passages.", hint="Give a whole number above 0.")
    if not _is_positive_integer(max_tokens):
        raise InvalidOperationError(f"{max_tokens!r} is no number of tokens.", hint="Give a whole number above 0.")


def _is_positive_integer(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0


def _turn_to_hits(
    passages: Sequence[Passage], turn: int, *, without: Set[str], limit: int | None
) -> tuple[SearchHit, ...]:
    """Return the messages and attachments of a turn, the reply first.

    Placeholders in the prompt name a removed reply by its turn, so the reply is most likely meant.
    """
    there = [one for one in passages if one.place == f"turn {turn}" and one.id not in without]
    there.sort(key=lambda one: one.role != MessageAuthor.REPLY)
    return tuple(SearchHit(passage=one, score=1.0, excerpt=one.text[:_EXCERPT_CHARS]) for one in there[:limit])


def _message_to_hits(passages: Sequence[Passage], number: int, *, without: Set[str]) -> tuple[SearchHit, ...]:
    """Return the message with this number: questions are odd, replies even. Tool results and notes have none."""
    turn, role = (number + 1) // 2, MessageAuthor.USER if number % 2 else MessageAuthor.REPLY
    return tuple(
        SearchHit(passage=one, score=1.0, excerpt=one.text[:_EXCERPT_CHARS])
        for one in passages
        if one.place == f"turn {turn}" and one.role == role and one.id == one.message and one.id not in without
    )


def make_recall_tool(
    recall: SearchFunction,
    *,
    max_chars: Callable[[], int] = lambda: MAX_ANSWER_CHARS,
) -> Tool:
    """Build the ``recall`` tool; each answer has at most as many characters as ``max_chars`` returns at that time."""

    # Runs on the event loop and not in a thread: the searched data belongs to the task that sends the turn.
    async def run(**arguments: object) -> str:
        return answer_recall(arguments, recall, max_chars=max_chars())

    return Tool(
        name=RECALL_TOOL,
        description=(
            "Find earlier messages, notes and tool results of this conversation that no longer stand in the prompt, "
            "and read them word for word. Use it when something was left out, shortened or summarised. Whatever stands "
            "in its place names it: give that name as the query, such as turn 12, [23] for a message, a path or an id."
        ),
        parameters=_RECALL_PARAMETERS,
        run=run,
    )


def make_compact_tool(compact: Callable[[], CompactionReceipt | None]) -> Tool:
    """Build the ``compact`` tool, with which a model compacts the conversation at once.

    It removes the same things as the automatic compaction of a full window.
    """

    # Runs on the event loop, like recall. It writes no summary: the model that would write it waits for this result.
    async def run() -> str:
        try:
            return describe_freed_space(compact())
        except LamellaError as error:
            return f"{error.message} {error.hint}"

    return Tool(
        name="compact",
        has_side_effects=True,
        description=(
            "Make room in this conversation: old tool results, notes and replies leave the prompt, and recall finds "
            "every word of them. Use it before work that will need much room, when one piece of work is done, or when "
            "the user asks for it."
        ),
        parameters={"type": "object", "properties": {}},
        run=run,
    )


def describe_freed_space(receipt: CompactionReceipt | None) -> str:
    """Describe what a compaction freed, for the model that asked for it."""
    if receipt is None:
        return "There is nothing to compact: the request is small enough, or nothing in it may go."
    steps = [f"{step.name.value} ({len(step.removed):,})" for step in receipt.steps] or ["attachments were folded"]
    freed = receipt.tokens_before - receipt.tokens_after
    return (
        f"Freed {freed:,} tokens: the request had {receipt.tokens_before:,} and has {receipt.tokens_after:,}, before "
        f"this result. What went: {', '.join(steps)}. Recall finds every word of it."
    )


def max_answer_chars(max_result_chars: int | None) -> int:
    """Return the maximum length of a recall answer if only ``max_result_chars`` characters of a tool result are sent.

    A longer answer would itself be cut, and the model would recall it again in a circle.
    """
    return MAX_ANSWER_CHARS if max_result_chars is None else min(MAX_ANSWER_CHARS, max_result_chars)


def answer_recall(arguments: Mapping[str, object], recall: SearchFunction, *, max_chars: int = MAX_ANSWER_CHARS) -> str:
    """Return the recall tool's answer: each original word for word with its position, or why there is none."""
    query, limit, start = arguments.get("query"), arguments.get("limit"), arguments.get("start")
    if not isinstance(query, str):
        return "recall takes a query, which is a text."
    if start is not None and (isinstance(start, bool) or not isinstance(start, int) or start < 0):
        return f"start is {start!r}, and no character to begin at."
    try:
        # The model wrote the limit. A number that is too large is reduced; anything else is reported by ``recall``.
        wanted = limit if start is None else _MAX_HITS
        found = recall(query, min(wanted, _MAX_HITS) if isinstance(wanted, int) else wanted)  # type: ignore[arg-type]
    except InvalidOperationError as error:
        return f"{error.message} {error.hint}"
    if not found:
        return (
            f"Nothing found: nothing that left the prompt fits {query!r}. What was not found may still stand in the "
            "prompt itself."
        )
    if start is None and any(_is_id_of_tool_result(query, one) for one in found):
        # A placeholder names a cleared result by its id. A model that asks for this id wants the whole result.
        start = 0
    if start is None:
        return "\n\n".join(_render_hits(found, max_chars))
    # Earlier recall results contain the same id. The passage whose title starts with the query is the one meant.
    return _render_hit_from(
        next((one for one in found if one.passage.title.startswith(query)), found[0]), start, max_chars=max_chars
    )


def _is_id_of_tool_result(query: str, hit: SearchHit) -> bool:
    return query.startswith("tool:") and hit.passage.title.partition(" ")[0] == query.strip()


def _render_hit_from(hit: SearchHit, start: int, *, max_chars: int) -> str:
    """Return a part of one original from ``start`` on, and where the next part starts."""
    text, named = hit.passage.text, describe_passage(hit)[:_MAX_LABEL_CHARS]
    if start >= len(text):
        return f"{named} has {len(text):,} characters; there is nothing from {start} on."
    end = min(start + max_chars - len(named) - _NOTICE_CHARS, len(text))
    more = f"; go on with start {end}" if end < len(text) else ", to its end"
    return f"[{named}, characters {start} to {end} of {len(text)}{more}]\n{text[start:end]}"


def _render_hits(hits: Sequence[RecallHit], max_chars: int) -> list[str]:
    """Return the hits in order while they fit into ``max_chars`` characters; the first one in any case."""
    results: list[str] = []
    for number, one in enumerate(hits):
        rendered = "\n".join([_render_text(one), *_render_neighbours(one)])
        if len(rendered) > max_chars:
            rendered = _render_text(one)
        if len(rendered) > max_chars and results:
            results.append(f"{len(hits) - number:,} more were found. Ask with words that fewer of them have.")
            break
        if len(rendered) > max_chars:
            return [_render_hit_from(one, 0, max_chars=max_chars)]
        results.append(rendered)
        max_chars -= len(rendered)
    return results


def _render_text(hit: RecallHit) -> str:
    size, named = f"{len(hit.passage.text):,} characters", describe_passage(hit)[:_MAX_LABEL_CHARS]
    if hit.is_whole:
        return f"[{named}, {size}]\n{hit.text}"
    return f"[{named}, a part of {size}; start 0 reads it from its beginning]\n{hit.text}"


def _render_neighbours(hit: RecallHit) -> list[str]:
    beside = (("before it", hit.before), ("after it", hit.after))
    return [f"[{where}, {_describe_message(one)}] {one.text}" for where, one in beside if one is not None]


def _describe_message(message: RecalledMessage) -> str:
    part = "" if message.text == message.passage.text else ", a part"
    return f"{message.passage.role} {message.passage.title}{part}"


def describe_passage(hit: SearchHit, *, format_time: Callable[[str], str] | None = None) -> str:
    """Describe a hit by its position, its time and its title; ``format_time`` formats the time."""
    passage = hit.passage
    when = () if hit.at is None else ((format_time or _format_minute)(hit.at),)
    return ", ".join((passage.place, *when, f"{passage.role} {passage.title}"))


def _format_minute(at: str) -> str:
    """Format a time for a model; minutes are enough, because a model has no clock to compare seconds with."""
    return f"{at[:16].replace('T', ' ')} UTC"
