"""Copying a whole store into another."""

from collections.abc import Iterator

from lamella.core.values import replace
from lamella.engine.keeping.conversations import Conversations
from lamella.errors import CallError, DivergedError, ErasedError, StoreDamagedError
from lamella.holdings import ChatListing
from lamella.ports import Clock, Store


def copy_store(source: Store, target: Store, clock: Clock) -> Iterator[tuple[str, str]]:
    """Each conversation by its name and what became of it: new, extended, same, older, diverged, damaged, erased.

    They are compared by their keys: two that happen to share a name have nothing to do with one another. Repeating it
    is safe. What was erased in either store is erased in the target: no copy brings it back.
    """
    theirs, ours = Conversations(source, clock), Conversations(target, clock)
    there = {listed.conversation: listed for listed in target.list_conversations()}
    for listed in source.list_conversations():
        if _is_another(listed, there.get(listed.conversation)):
            yield listed.name, "diverged"
            continue
        if listed.erased is not None and listed.version:
            # What is erased counts no events: this one says so falsely, and nothing is erased for that.
            yield listed.name, "damaged"
            continue
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


def _is_another(one: ChatListing, other: ChatListing | None) -> bool:
    """Whether a tombstone that has a conversation's key tells of another one, which began at another time.

    Keys of before there were names were chosen by people, so that two stores may have one key for two conversations.
    """
    if other is None or (one.erased is None) == (other.erased is None):
        return False
    tombstone = other if one.erased is None else one
    # Of a conversation that its store never held, a tombstone does not know when it began.
    return one.created != other.created and tombstone.created != tombstone.erased
