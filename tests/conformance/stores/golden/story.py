"""The conversations of every golden store: written through the store, read back as plain data."""

from datetime import UTC, datetime

from tests.conformance.stores.material import attach, counted, erasure, say

from lamella.core.log.events.kinds import EventBatch, EventKind, EventRecord
from lamella.core.text.content import hash_bytes
from lamella.ports import Checkpoint, Store

NOTE = "# Budget\n\nRoof: 4,200 €\n".encode()
SECRET = b"a page that was erased again"
PICTURE = bytes(range(256))
# Since version 2; a store is to give them back and never looks inside.
COUNTS = bytes(range(44))
# Since version 3, likewise; what is apart from it since version 6.
CHECKPOINT = Checkpoint(
    version=1, data=b"what one event comes to \x00\xff", separate_data=b"and what is apart \x00\xff"
)
# Since version 4; what was written before is called by its key.
NAME = "the boat"
# Since version 5: a line that lasts, until something is erased in its conversation.
LINE = ("the tide", "at noon")
BEGINS, ENDS = datetime(2026, 1, 7, tzinfo=UTC), datetime(2126, 1, 7, tzinfo=UTC)
# The kinds of the first version. Kinds that came later are not in files that were written before them.
KINDS = "message reply attachment settings edit delete fork switch rename fold compaction undo stage erasure"


def write_story(store: Store) -> None:
    """Write the story: every kind of event, shared and erased contents, a tombstone, hard text."""
    store.append("house", attach(NOTE, PICTURE, text="What is missing?", at="2026-01-05T08:00:00Z"), expected=0)
    store.append("house", say("\u0000 '--' %s ? 🦉", at="2026-01-05T08:00:01Z"), expected=1, title="The house")
    store.append("house", attach(SECRET, at="2026-01-05T08:01:00Z"), expected=2)
    store.append("house", erasure(hash_bytes(SECRET), at="2026-01-05T08:02:00Z"), expected=3)
    every = tuple(
        EventRecord(kind=kind, at=f"2026-01-06T00:00:{number:02}Z", body=f'{{"number": {number}}}')
        for number, kind in enumerate(map(EventKind, KINDS.split()))
    )
    store.append("every kind of event", EventBatch(records=every), expected=0, title="Ünïcode")
    noted = attach(NOTE, text="Same note", at="2026-01-07T00:00:00Z")
    store.append("boat", counted(noted, COUNTS), expected=0, name=NAME)
    store.save_checkpoint("boat", CHECKPOINT)
    store.shared_table.set(*LINE, at=BEGINS, expires_at=ENDS, conversation_key="boat")
    store.append("gone", say("nothing", at="2026-01-08T00:00:00Z"), expected=0, title="Gone")
    store.erase_conversation("gone", at="2026-01-09T00:00:00Z")


def read_back(store: Store) -> dict[str, object]:
    """Everything a store holds, as plain data."""
    listed = store.list_conversations()
    return {
        "conversations": [
            [one.conversation, one.title, one.created, one.updated, one.event_count, one.erased_at] for one in listed
        ],
        "events": {
            one.conversation: [
                [record.kind.value, record.at, record.body, list(record.contents)]
                for record in store.load(one.conversation)
            ]
            for one in listed
            if one.erased_at is None
        },
        "contents": {
            one.conversation: sorted(
                store.read_contents(one.conversation, [hash_bytes(data) for data in (NOTE, SECRET, PICTURE)])
            )
            for one in listed
        },
    }
