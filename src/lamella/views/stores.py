"""How much a store holds, as data."""

from lamella.core.log.records import StoreStats


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
