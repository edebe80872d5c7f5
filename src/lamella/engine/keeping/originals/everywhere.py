"""Every conversation of a store, searched at once: the originals of their active branches, whatever prompts hold."""

from collections.abc import Iterator
from dataclasses import replace

from lamella.core.log.branch import path_hashes, read_turns
from lamella.core.log.log import Log
from lamella.core.log.nodes import name_messages
from lamella.core.log.terms import Terms
from lamella.core.search.finding import Found, search
from lamella.core.search.index import Index, Passage
from lamella.core.search.passages import list_passages
from lamella.engine.dialogue.recalling import FOUND_AT_MOST, check_query
from lamella.errors import ErasedError, StoreDamagedError
from lamella.holdings import ChatListing
from lamella.ports import Store

# Between the key of a conversation and the id of a passage in it.
_BORDER = "\n"


class StoreRecaller:
    """Searches all conversations of a store. What was read for one search is kept until one of them changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: tuple[tuple[str, int], ...] | None = None
        self._index = Index()
        self._times: dict[str, str | None] = {}
        self._damage: StoreDamagedError | None = None

    def find(self, query: str, *, limit: int = FOUND_AT_MOST) -> Iterator[tuple[ChatListing, Found]]:
        """The originals that fit best, best first, each with the conversation that it is of.

        A conversation that is damaged keeps nobody from the others: its error comes after all that was found.
        """
        check_query(query, limit)
        listed = {one.conversation: one for one in self._store.list_conversations() if one.erased is None}
        self._read(list(listed.values()))
        return self._tell(search(self._index, query, limit=limit), listed)

    def _tell(self, found: tuple[Found, ...], listed: dict[str, ChatListing]) -> Iterator[tuple[ChatListing, Found]]:
        for one in found:
            key, _, name = one.passage.id.partition(_BORDER)
            passage = replace(one.passage, id=name)
            yield listed[key], replace(one, passage=passage, at=self._times[one.passage.id])
        if self._damage is not None:
            raise self._damage

    def _read(self, listed: list[ChatListing]) -> None:
        """Read every conversation, unless they are those that were read before."""
        # Sorted by their keys, not by when each was changed last: that equals come in one order.
        seen = tuple(sorted((one.conversation, one.version) for one in listed))
        if seen == self._seen:
            return
        self._index, self._times, self._damage = Index(), {}, None
        for key, _ in seen:
            try:
                self._enter(key)
            except StoreDamagedError as error:
                self._damage = self._damage or error
            except ErasedError:
                # Somebody erased it since it was listed.
                continue
        self._seen = seen

    def _enter(self, key: str) -> None:
        log = Log(key)
        log.extend(self._store.load(key))
        told = log.path()
        hashes = path_hashes(told)
        contents = self._store.read_contents(key, hashes) if hashes else {}
        path = name_messages(told)
        for passage in list_passages(read_turns(told, contents, usual=Terms()), path):
            known = _in_conversation(passage, key)
            self._index.extend([known])
            node = log.nodes.get(passage.message)
            self._times[known.id] = None if node is None else node.at or None


def _in_conversation(passage: Passage, key: str) -> Passage:
    """A passage under an id that it has nowhere else: two conversations may hold the same note."""
    return replace(passage, id=f"{key}{_BORDER}{passage.id}")
