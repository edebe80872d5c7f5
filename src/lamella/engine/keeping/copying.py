"""Copying a whole store into another."""

from collections.abc import Iterator

from lamella.engine.keeping.conversations import Conversations
from lamella.errors import CallError, DivergedError, ErasedError, StoreDamagedError
from lamella.ports import Clock, Store


def copy_store(source: Store, target: Store, clock: Clock) -> Iterator[tuple[str, str]]:
    """Each conversation and what became of it: new, extended, same, older, diverged, damaged, erased.

    Repeating it is safe. What was erased in either store is erased in the target: no copy brings it back.
    """
    theirs, ours = Conversations(source, clock), Conversations(target, clock)
    for listed in source.list_conversations():
        if listed.erased is not None:
            target.erase_conversation(listed.conversation, at=listed.erased)
            yield listed.conversation, "erased"
            continue
        try:
            yield listed.conversation, str(ours.take_in(theirs.take_out(listed.conversation)))
        except ErasedError:
            yield listed.conversation, "erased"
        except DivergedError:
            yield listed.conversation, "diverged"
        except (StoreDamagedError, CallError):
            yield listed.conversation, "damaged"
