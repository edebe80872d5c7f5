"""Copying a whole store into another."""

from collections.abc import Iterator

from lamella.core.values import replace
from lamella.engine.keeping.conversations import Conversations
from lamella.errors import CallError, DivergedError, ErasedError, StoreDamagedError
from lamella.ports import Clock, Store


def copy_store(source: Store, target: Store, clock: Clock) -> Iterator[tuple[str, str]]:
    """Each conversation by its name and what became of it: new, extended, same, older, diverged, damaged, erased.

    They are compared by their keys: two that happen to share a name have nothing to do with one another. Repeating it
    is safe. What was erased in either store is erased in the target: no copy brings it back.
    """
    theirs, ours = Conversations(source, clock), Conversations(target, clock)
    for listed in source.list_conversations():
        if listed.erased is not None:
            target.erase_conversation(listed.conversation, at=listed.erased)
            yield listed.name, "erased"
            continue
        try:
            outcome = ours.take_in(replace(theirs.take_out(listed.conversation), name=listed.name))
            yield listed.name, str(outcome)
        except ErasedError:
            yield listed.name, "erased"
        except DivergedError:
            yield listed.name, "diverged"
        except (StoreDamagedError, CallError):
            yield listed.name, "damaged"
