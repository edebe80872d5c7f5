"""Copying a whole store into another."""

from collections.abc import Iterator

from lamella.core.values import replace
from lamella.engine.keeping.conversations import Conversations
from lamella.errors import CallError, DivergedError, ErasedError, StoreDamagedError
from lamella.holdings import ChatListing
from lamella.ports import Clock, Store


def copy_store(source: Store, target: Store, clock: Clock) -> Iterator[tuple[str, str]]:
    """Each conversation by its name there and what became of it: new, extended, same, older, diverged, damaged, erased.

    One that is not there is told by its key where another has its name. They are compared by their keys: two that
    happen to share a name have nothing to do with one another. Repeating it is safe. What was erased in either store is
    erased in the target: no copy brings it back.
    """
    theirs, ours = Conversations(source, clock), Conversations(target, clock)
    there = {listed.conversation: listed for listed in target.list_conversations()}
    found = list(source.list_conversations())
    called = {one.name: one.conversation for one in (*found, *there.values()) if one.erased is None}
    for listed in found:
        outcome = _copy_one(listed, there.get(listed.conversation), theirs=theirs, ours=ours, target=target)
        if outcome == "new":
            yield ours.name_of(listed.conversation), outcome
            continue
        known = there.get(listed.conversation)
        name = listed.name if known is None or known.erased is not None else known.name
        is_own = called.get(name, listed.conversation) == listed.conversation
        yield name if is_own else listed.conversation, outcome


def _copy_one(
    listed: ChatListing, there: ChatListing | None, *, theirs: Conversations, ours: Conversations, target: Store
) -> str:
    if _is_another(listed, there):
        return "diverged"
    if listed.erased is not None and listed.version:
        # What is erased counts no events: this one says so falsely, and nothing is erased for that.
        return "damaged"
    if listed.erased is not None:
        target.erase_conversation(listed.conversation, at=listed.erased)
        return "erased"
    try:
        return str(ours.take_in(replace(theirs.take_out(listed.conversation), name=listed.name)))
    except ErasedError:
        return "erased"
    except DivergedError:
        return "diverged"
    except (StoreDamagedError, CallError):
        return "damaged"


def _is_another(one: ChatListing, other: ChatListing | None) -> bool:
    """Whether a tombstone that has a conversation's key tells of another one, which began at another time.

    Keys of before there were names were chosen by people, so that two stores may have one key for two conversations.
    """
    if other is None or (one.erased is None) == (other.erased is None):
        return False
    tombstone = other if one.erased is None else one
    # Of a conversation that its store never held, a tombstone does not know when it began.
    return one.created != other.created and tombstone.created != tombstone.erased
