"""JSON bodies of lists of conversations, of store statistics, and of commands on conversations and stores."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypedDict

from lamella.ports import ConversationSummary, StoreProblem, StoreStats


class ConversationSummaryBody(TypedDict):
    """A conversation in a list, with its key and its name."""

    conversation: str
    name: str
    title: str
    created: str
    updated: str
    events: int


def conversations_to_json(conversations: Sequence[ConversationSummary]) -> list[ConversationSummaryBody]:
    """Return the conversations in the given order."""
    return [
        ConversationSummaryBody(
            conversation=one.conversation,
            name=one.name,
            title=one.title,
            created=one.created,
            updated=one.updated,
            events=one.version,
        )
        for one in conversations
    ]


def stats_to_json(stats: StoreStats) -> dict[str, int]:
    """Return the totals of a store by name."""
    return {
        "schema": stats.schema,
        "conversations": stats.conversations,
        "erased": stats.erased,
        "events": stats.events,
        "contents": stats.contents,
        "content_bytes": stats.content_bytes,
    }


# Results of commands.

_FORMAT_VERSION = {"lamella": 1}


class HitShape(Protocol):
    """The properties of a message hit that the JSON body needs."""

    @property
    def conversation(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def excerpt(self) -> str: ...


def outcome_to_json(conversation_key: str, name: str, **more: object) -> dict[str, object]:
    """Return the result of a command on one conversation, with its key, its name and ``more`` fields."""
    return {**_FORMAT_VERSION, "conversation": conversation_key, "name": name, **more}


def batch_result_to_json(
    done: Sequence[Mapping[str, object]], failed: Sequence[Mapping[str, object]]
) -> dict[str, object]:
    """Return the results of a command on several objects: those that succeeded and those that failed."""
    return {**_FORMAT_VERSION, "done": list(done), "failed": list(failed)}


def hits_to_json(hits: Iterable[HitShape]) -> dict[str, object]:
    """Return the messages that a search found."""
    found = [
        {
            "conversation": hit.conversation,
            "name": hit.name,
            "title": hit.title,
            "message": hit.message,
            "role": str(hit.role),
            "excerpt": hit.excerpt,
        }
        for hit in hits
    ]
    return {**_FORMAT_VERSION, "hits": found}


def problems_to_json(
    problems: Sequence[StoreProblem], names: Mapping[str, str], *, repaired: Sequence[str]
) -> dict[str, object]:
    """Return the problems of a store that remain after a repair; ``names`` maps conversation keys to names."""
    found = [
        {
            "conversation": one.conversation,
            "name": None if one.conversation is None else names.get(one.conversation),
            "place": one.location,
            "what": one.description,
            "derived": one.is_repairable,
        }
        for one in problems
    ]
    return {**_FORMAT_VERSION, "verified": not problems, "damages": found, "repaired": list(repaired)}


def copy_results_to_json(outcomes: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Return the name and the result for each conversation copied to another store."""
    return {**_FORMAT_VERSION, "conversations": [{"name": name, "outcome": outcome} for name, outcome in outcomes]}
