"""An owner's store: the conversations of one owner out of a store that many share.

Whose a conversation is stands in its name, ``~ana/garden``; its owner calls it ``garden``. So it needs no table of its
own, copies and archives keep it, and whoever runs the store sees it in every list.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from lamella.adapters.stores.database import Result
from lamella.core.log.records import Record, Written
from lamella.core.values import replace
from lamella.errors import CallError
from lamella.holdings import ChatListing, Checkpoint, Damage, StoreStats
from lamella.ports import Store


class OwnedStore:
    """What is one owner's in a store. A key that is somebody else's is one that is not there."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self.shelf = store.shelf
        self._prefix = f"~{owner}/"
        self._own: set[str] = set()

    def append(
        self, conversation: str, written: Written, *, expected: int, title: str | None = None, name: str | None = None
    ) -> int:
        """Append to a conversation of this owner, or begin one."""
        self._check(conversation)
        return self._store.append(
            conversation, written, expected=expected, title=title, name=self._prefix + (name or conversation)
        )

    def load(self, conversation: str, *, after: int = 0) -> Sequence[Record]:
        return self._store.load(conversation, after=after) if self._sees(conversation) else ()

    def keep_checkpoint(self, conversation: str, checkpoint: Checkpoint, *, instead_of: Collection[int] = ()) -> bool:
        self._check(conversation)
        return self._store.keep_checkpoint(conversation, checkpoint, instead_of=instead_of)

    def read_checkpoints(
        self, conversation: str, read: Callable[[Checkpoint], Result], *, apart: bool = False
    ) -> Sequence[Result]:
        return self._store.read_checkpoints(conversation, read, apart=apart) if self._sees(conversation) else ()

    def read_contents(self, conversation: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        return self._store.read_contents(conversation, hashes) if self._sees(conversation) else {}

    def list_conversations(self) -> Sequence[ChatListing]:
        """Those of this owner, tombstones included, by the names that the owner knows."""
        return [own for one in self._store.list_conversations() if (own := self._unveil(one)) is not None]

    def find_conversation(self, name: str) -> ChatListing | None:
        named = self._store.find_conversation(self._prefix + name)
        if named is not None and named.name == self._prefix + name:
            return self._unveil(named)
        keyed = self._store.find_conversation(name)
        return self._unveil(keyed) if keyed is not None and keyed.conversation == name else None

    def erase_conversation(self, conversation: str, *, at: str) -> None:
        self._check(conversation)
        self._store.erase_conversation(conversation, at=at)

    def erase_contents(self, conversation: str, hashes: Sequence[str], written: Written, *, expected: int) -> int:
        self._check(conversation)
        return self._store.erase_contents(conversation, hashes, written, expected=expected)

    def verify(self, conversation: str | None = None) -> Iterator[Damage]:
        """What is damaged in one conversation of this owner, or in all of them."""
        keys = [one.conversation for one in self.list_conversations() if one.erased is None]
        for key in keys if conversation is None else [one for one in keys if one == conversation]:
            yield from self._store.verify(key)

    def verify_erased(self, conversation: str) -> Iterator[Damage]:
        return self._store.verify_erased(conversation) if self._sees(conversation) else iter(())

    def repair(self, conversation: str, tell_title: Callable[[Sequence[Record]], str]) -> None:
        self._check(conversation)
        self._store.repair(conversation, tell_title)

    def stats(self) -> StoreStats:
        """How much of the store is this owner's; contents may be shared with others, so nobody counts them here."""
        listed = self.list_conversations()
        alive = [one for one in listed if one.erased is None]
        return StoreStats(
            schema=self._store.stats().schema,
            conversations=len(alive),
            erased=len(listed) - len(alive),
            events=sum(one.version for one in alive),
            contents=0,
            content_bytes=0,
        )

    def close(self) -> None:
        """Nothing: the store is shared, and whoever opened it closes it."""

    def _unveil(self, listed: ChatListing) -> ChatListing | None:
        """A conversation as its owner knows it; none if it is somebody else's."""
        if not listed.name.startswith(self._prefix):
            return None
        self._own.add(listed.conversation)
        return replace(listed, name=listed.name.removeprefix(self._prefix))

    def _sees(self, conversation: str) -> bool:
        """Whether a key is this owner's, or nobody's yet."""
        if conversation in self._own:
            return True
        found = self._store.find_conversation(conversation)
        if found is None or found.conversation != conversation:
            # Only a conversation that is somebody's can be taken from them; what nobody has yet is not remembered.
            return not any(one.conversation == conversation for one in self._find_all(found))
        return self._unveil(found) is not None

    def _find_all(self, named: ChatListing | None) -> Sequence[ChatListing]:
        """Every conversation of others, where the name of one is the key that is looked for; rarely anything."""
        listed = () if named is None else self._store.list_conversations()
        return [one for one in listed if not one.name.startswith(self._prefix)]

    def _check(self, conversation: str) -> None:
        if not self._sees(conversation):
            raise CallError(
                f"There is no conversation {conversation!r}.",
                hint=lambda door: f"See {door.list_chats()} for those there are.",
            )
