"""The chain: each event's hash covers the one before it, so that no event can change, move or vanish unseen."""

from collections.abc import Mapping, Sequence
from secrets import token_hex

from lamella.core.log.records import EventKind, Record, Written
from lamella.core.text.content import encode_text, hash_bytes
from lamella.errors import CallError, ErasedError, TextError

FIRST = ""
# 80 bits: of a million million keys one pair would be the same with a chance of less than one in two.
_KEY_BYTES = 10


def link(previous: str, conversation: str, *, seq: int, record: Record) -> str:
    """The hash of an event: over the hash before it, where it stands, and all that it says."""
    fields = (previous, conversation, str(seq), record.kind, record.at, record.body, *record.contents)
    encoded = [field.encode() for field in fields]
    # Each field after its length: no two different events can give the same bytes.
    return hash_bytes(b"".join([b"%d:%b" % (len(field), field) for field in encoded]))


def link_all(previous: str, conversation: str, *, after: int, records: Sequence[Record]) -> list[str]:
    """The hashes of events that follow one another."""
    hashes: list[str] = []
    for seq, record in enumerate(records, start=after + 1):
        previous = link(previous, conversation, seq=seq, record=record)
        hashes.append(previous)
    return hashes


def make_key(name: str) -> str:
    """A key that nobody has chosen and nobody has had, in whatever store, whatever the conversation is called."""
    return token_hex(_KEY_BYTES)


def check_name(conversation: str) -> None:
    """Refuse an id that not every store could keep."""
    if not conversation:
        raise CallError("A conversation needs an id that is not empty.", hint="Give it one.")
    _check_texts(conversation)


def _check_texts(*texts: str) -> None:
    for text in texts:
        if not text.isascii():
            encode_text(text)
        if "\0" in text:
            raise TextError(
                f"The text {text[:40]!r} holds a NUL, which not every store can keep.",
                hint="Write bodies as JSON, which escapes it.",
            )


def check_written(conversation: str, written: Written) -> None:
    """Refuse what a store could not give back exactly, before anything is touched."""
    check_name(conversation)
    if not written.records:
        raise CallError("There is no event to append.", hint="Give at least one.")
    _check_texts(*[text for record in written.records for text in (record.at, record.body)])
    if not written.contents:
        return
    if loose := set(written.contents).difference(*(record.contents for record in written.records)):
        raise CallError(
            f"The content {min(loose)} is brought by no event.", hint="Name its hash in the contents of its event."
        )


def refuse_erased(conversation: str, erased: str | None) -> None:
    """Only a tombstone is left of an erased conversation."""
    if erased is not None:
        raise ErasedError(
            f"The conversation {conversation} was erased at {erased}.",
            hint="Begin a new one; the name it had is free.",
        )


def check_contents(contents: Mapping[str, bytes]) -> None:
    """Refuse contents that do not have the hash they are filed under."""
    for name, data in contents.items():
        if hash_bytes(data) != name:
            raise CallError(
                f"The content filed under {name} has the hash {hash_bytes(data)}.", hint="File contents by their hash."
            )


def check_known(missing: set[str], erased: set[str]) -> None:
    """Refuse events that refer to contents which are neither brought, nor held, nor known to be erased."""
    if unknown := missing - erased:
        raise CallError(
            f"An event refers to the content {min(unknown)}, which the conversation does not hold.",
            hint="Bring its bytes with the event.",
        )


def find_erased(records: Sequence[Record]) -> set[str]:
    """The contents that erasure events name: each such event lists what it removed."""
    return {name for record in records if record.kind is EventKind.ERASURE for name in record.contents}


def check_named(hashes: Sequence[str], written: Written) -> None:
    """Refuse to erase what no erasure event would explain."""
    if unnamed := set(hashes) - find_erased(written.records):
        raise CallError(
            f"No erasure event names the content {min(unnamed)}.", hint="List it in the contents of the event."
        )


def clean_title(title: str) -> str:
    """A title as every store can keep it."""
    encode_text(title)
    return title.replace("\0", "\ufffd")
