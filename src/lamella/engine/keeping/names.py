"""Names: which conversation somebody means, and what one that is brought in can be called."""

from collections.abc import Iterator, Sequence
from itertools import chain, count

from lamella.commands import quote_word
from lamella.errors import CallError
from lamella.holdings import ChatListing
from lamella.ports import Store

# Of a key nobody chose so many characters are meant as a key, also where a name could be.
_KEY_BEGINNING = 6
_TOLD = 5


def find_chat(store: Store, words: str, *, beginnings: bool = True) -> ChatListing | None:
    """The conversation that is meant: by its name or key, else by its title, else by how one of them begins.

    Whoever would begin a new one, or erase one, takes no ``beginnings`` of names: `notes` is not `notes-2`.
    """
    found = store.find_conversation(words)
    if found is not None:
        return found
    alive = [listed for listed in store.list_conversations() if listed.erased is None]
    titled = [listed for listed in alive if listed.title == words]
    if titled:
        return _choose(titled, f"have the title {words!r}")
    begun = [listed for listed in alive if _is_begun(listed, words, beginnings=beginnings)]
    return _choose(begun, f"begin with {words!r}") if begun else None


def find_erased(store: Store, words: str) -> ChatListing | None:
    """The tombstone that is meant, by its key or by the name that was erased with it, the last one."""
    erased = [listed for listed in store.list_conversations() if listed.erased is not None]
    keyed = next((listed for listed in erased if listed.conversation == words), None)
    return keyed or next((listed for listed in erased if listed.name == words), None)


def find_free_name(store: Store, wished: str) -> str:
    """A name as it was wished, with a number where another conversation has it."""
    return next(name for name in _number(wished) if store.find_conversation(name) is None)


def miss_chat(words: str) -> CallError:
    """Nobody knows which conversation is meant."""
    return CallError(
        f"There is no conversation {words!r}.", hint=lambda door: f"See {door.list_chats()} for those there are."
    )


def _is_begun(listed: ChatListing, words: str, *, beginnings: bool) -> bool:
    if beginnings and listed.name.startswith(words):
        return True
    chosen = listed.conversation == listed.name
    long = beginnings or len(words) >= _KEY_BEGINNING
    return long and not chosen and listed.conversation.startswith(words)


def _choose(found: Sequence[ChatListing], what: str) -> ChatListing:
    if len(found) == 1:
        return found[0]
    names = ", ".join(quote_word(listed.name) for listed in found[:_TOLD])
    more = f" and {len(found) - _TOLD:,} more" if len(found) > _TOLD else ""
    raise CallError(f"{len(found):,} conversations {what}: {names}{more}.", hint="Say which, by its name.")


def _number(name: str) -> Iterator[str]:
    return chain((name,), (f"{name}-{number}" for number in count(2)))
