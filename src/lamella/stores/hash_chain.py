"""The hash chain of events, and the checks that every store makes before it writes.

Each hash covers the one before it, so no event can be changed, moved or removed unnoticed.
"""

from collections.abc import Mapping, Sequence
from secrets import token_hex

from lamella.core.log.events.kinds import EventBatch, EventKind, EventRecord
from lamella.core.text.content import encode_text, hash_bytes
from lamella.errors import ConversationErasedError, InvalidOperationError, TextError

# The "previous hash" of the first event.
EMPTY_HASH = ""
# 80 bits: among a million million keys, the probability that any two are equal is below one half.
_KEY_BYTES = 10


def chain_hash(previous: str, conversation_key: str, *, seq: int, record: EventRecord) -> str:
    """Return the hash of an event: over the previous hash, the conversation's key, its number and its fields.

    The token counts are not included, because they are derived and may be removed.
    """
    fields = (previous, conversation_key, str(seq), record.kind, record.at, record.body, *record.contents)
    encoded = [field.encode() for field in fields]
    # Each field is preceded by its length, so that different events never give the same bytes.
    return hash_bytes(b"".join([b"%d:%b" % (len(field), field) for field in encoded]))


def chain_hashes(previous: str, conversation_key: str, *, after: int, records: Sequence[EventRecord]) -> list[str]:
    """Return the hashes of consecutive events."""
    hashes: list[str] = []
    for seq, record in enumerate(records, start=after + 1):
        previous = chain_hash(previous, conversation_key, seq=seq, record=record)
        hashes.append(previous)
    return hashes


def generate_key(name: str) -> str:
    """Return a random key for a new conversation, unique across stores and independent of its name."""
    return token_hex(_KEY_BYTES)


def check_name(conversation_key: str) -> None:
    """Raise an error for a key or name that not every store can keep."""
    if not conversation_key:
        raise InvalidOperationError("A conversation needs an id that is not empty.", hint="Give it one.")
    _check_texts(conversation_key)


def _check_texts(*texts: str) -> None:
    """Raise an error for texts that are no valid Unicode or contain a NUL, which PostgreSQL cannot store."""
    for text in texts:
        if not text.isascii():
            encode_text(text)
        if "\0" in text:
            raise TextError(
                f"The text {text[:40]!r} holds a NUL, which not every store can keep.",
                hint="Write bodies as JSON, which escapes it.",
            )


def check_batch(conversation_key: str, batch: EventBatch) -> None:
    """Raise an error for events that a store could not return exactly; called before anything is written."""
    check_name(conversation_key)
    if not batch.records:
        raise InvalidOperationError("There is no event to append.", hint="Give at least one.")
    _check_texts(*[text for record in batch.records for text in (record.at, record.body)])
    if not batch.contents:
        return
    if loose := set(batch.contents).difference(*(record.contents for record in batch.records)):
        raise InvalidOperationError(
            f"The content {min(loose)} is brought by no event.", hint="Name its hash in the contents of its event."
        )


def check_not_erased(conversation_key: str, erased: str | None) -> None:
    """Raise ``ConversationErasedError`` if a conversation was erased; ``erased`` is the time, or None."""
    if erased is not None:
        raise ConversationErasedError(
            f"The conversation {conversation_key} was erased at {erased}.",
            hint="Begin a new one; the name it had is free.",
        )


def check_contents(contents: Mapping[str, bytes]) -> None:
    """Raise an error for contents whose bytes do not have the hash they are named by."""
    for name, data in contents.items():
        if hash_bytes(data) != name:
            raise InvalidOperationError(
                f"The content filed under {name} has the hash {hash_bytes(data)}.", hint="File contents by their hash."
            )


def check_hashes_known(missing: set[str], erased: set[str]) -> None:
    """Raise an error if an event names contents that the conversation does not have and never erased."""
    if unknown := missing - erased:
        raise InvalidOperationError(
            f"An event refers to the content {min(unknown)}, which the conversation does not hold.",
            hint="Bring its bytes with the event.",
        )


def erased_hashes(records: Sequence[EventRecord]) -> set[str]:
    """Return the hashes that erasure events list."""
    return {name for record in records if record.kind is EventKind.ERASURE for name in record.contents}


def check_erasure_listed(hashes: Sequence[str], batch: EventBatch) -> None:
    """Raise an error if a hash to be erased is not listed in an erasure event of the batch."""
    if unnamed := set(hashes) - erased_hashes(batch.records):
        raise InvalidOperationError(
            f"No erasure event names the content {min(unnamed)}.", hint="List it in the contents of the event."
        )


def clean_title(title: str) -> str:
    """Return a title that every store can keep: a NUL is replaced, invalid Unicode raises an error."""
    encode_text(title)
    return title.replace("\0", "\ufffd")
