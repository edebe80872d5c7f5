"""Searches: which calls look for words, and which of them look for the same once more."""

import json
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import read_arguments
from lamella.core.search.terms import find_terms

# The parameter by which a tool is known to search: it takes the words that are looked for.
WORDS = "query"
# The share of the words of two searches, all of them together, that makes one the repetition of the other.
ALIKE = 0.6


class Search(Struct, frozen=True, kw_only=True):
    """A search by a tool for words, with what else it was told, such as a folder or a range of days."""

    tool: str
    query: str
    terms: frozenset[str]
    further: str

    def repeats(self, other: "Search") -> bool:
        """Whether this looks for the same in the same place: most words of both are the same."""
        if (self.tool, self.further) != (other.tool, other.further):
            return False
        every = self.terms | other.terms
        return not every or len(self.terms & other.terms) / len(every) >= ALIKE


def list_search_tools(told: Iterable[ToolDefinition]) -> frozenset[str]:
    """The tools among those a model was told of that search: they take words to look for."""
    return frozenset(tool.name for tool in told if _takes_words(tool))


def _takes_words(tool: ToolDefinition) -> bool:
    properties = read_arguments(tool.parameters).get("properties")
    words = properties.get(WORDS) if isinstance(properties, dict) else None
    return isinstance(words, dict) and words.get("type") == "string"


def read_search(call: ToolCall, searching: Collection[str]) -> Search | None:
    """The search that a call makes; none for a call that looks for no words."""
    given = read_arguments(call.arguments) if call.name in searching else {}
    query = given.pop(WORDS, None)
    if not isinstance(query, str):
        return None
    return Search(
        tool=call.name,
        query=query,
        terms=frozenset(find_terms(query.casefold())),
        further=json.dumps(given, sort_keys=True),
    )


def find_repeats(calls: Sequence[ToolCall], earlier: Sequence[Search], searching: Collection[str]) -> dict[str, str]:
    """Those of the calls that repeat a search, by their ids, each with the words of the search that it repeats."""
    known = list(earlier)
    repeats: dict[str, str] = {}
    for call in calls:
        search = read_search(call, searching)
        if search is None:
            continue
        before = next((one for one in known if search.repeats(one)), None)
        if before is None:
            known.append(search)
        else:
            repeats[call.id] = before.query
    return repeats
