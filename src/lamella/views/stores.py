"""What a store holds: its conversations, and how much there is of everything."""

from collections.abc import Sequence
from typing import TypedDict

from lamella.holdings import ChatListing, StoreStats


class ChatBody(TypedDict):
    """A conversation in a list: its key, and the name that people call it by."""

    conversation: str
    name: str
    title: str
    created: str
    updated: str
    events: int


def view_chats(listed: Sequence[ChatListing]) -> list[ChatBody]:
    """Every conversation, in the order given."""
    return [
        ChatBody(
            conversation=one.conversation,
            name=one.name,
            title=one.title,
            created=one.created,
            updated=one.updated,
            events=one.version,
        )
        for one in listed
    ]


def view_stats(stats: StoreStats) -> dict[str, int]:
    """Counts, each by its name."""
    return {
        "schema": stats.schema,
        "conversations": stats.conversations,
        "erased": stats.erased,
        "events": stats.events,
        "contents": stats.contents,
        "content_bytes": stats.content_bytes,
    }
