"""Keeping conversations: taking them out and in whole, searching, verifying and erasing them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lamella.core.history.chronicle import Chronicle
from lamella.core.history.events import Body, parse_body, referenced_artifacts, write_erasure, write_event
from lamella.core.history.log import Log, derive_id
from lamella.core.history.records import Damage, EventKind, Listed, Record, StoreStats, Written
from lamella.core.layers.model import Role
from lamella.errors import CallError, StoreDamagedError
from lamella.ports import Clock, Store

_EXCERPT = 60


class Taken(StrEnum):
    """What became of a conversation that was brought in."""

    NEW = "new"
    EXTENDED = "extended"
    SAME = "same"
    OLDER = "older"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A message that a search found: where, who said it, and the words around."""

    conversation: str
    title: str
    message: str
    role: Role
    excerpt: str


class Keeper:
    """What can be done with the conversations of a store as wholes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def load_log(self, conversation: str) -> Log:
        """A conversation's log; an error if there is none."""
        log = Log(conversation)
        log.extend(self._store.load(conversation))
        if not log.version:
            raise CallError(
                f"There is no conversation {conversation!r}.", hint="See `lamella chats list` for those there are."
            )
        return log

    def take_out(self, conversation: str) -> Chronicle:
        """A whole conversation with all its contents."""
        log = self.load_log(conversation)
        records = tuple(self._store.load(conversation))
        hashes = tuple(dict.fromkeys(name for record in records for name in record.contents))
        return Chronicle(
            conversation=conversation,
            title=log.title,
            created=log.created,
            records=records,
            contents=self._store.read_contents(conversation, hashes),
        )

    def take_in(self, chronicle: Chronicle) -> Taken:
        """Bring a conversation in. One that is there already is extended, never doubled and never cut."""
        there = list(self._store.load(chronicle.conversation))
        ours = list(chronicle.records)
        shared = min(len(there), len(ours))
        if there[:shared] != ours[:shared]:
            raise CallError(
                f"The store has {chronicle.conversation} with another history from event {_parting(there, ours):,} on.",
                hint="Delete one of the two, or import into another store.",
            )
        if len(ours) <= len(there):
            return Taken.SAME if len(ours) == len(there) else Taken.OLDER
        missing = tuple(ours[shared:])
        named = {name for record in missing for name in record.contents}
        contents = {name: data for name, data in chronicle.contents.items() if name in named}
        self._store.append(
            chronicle.conversation,
            Written(records=missing, contents=contents),
            expected=len(there),
            title=chronicle.title or None,
        )
        return Taken.EXTENDED if there else Taken.NEW

    def search(self, words: str) -> Iterator[Hit]:
        """Every message of every branch that holds the words, whatever their case."""
        wanted = words.casefold()
        for listed in self.list_alive():
            for node in self.load_log(listed.conversation).nodes.values():
                at = node.text.casefold().find(wanted)
                if at >= 0:
                    excerpt = " ".join(node.text[max(0, at - _EXCERPT) : at + len(words) + _EXCERPT].split())
                    yield Hit(
                        conversation=listed.conversation,
                        title=listed.title,
                        message=node.id,
                        role=node.role,
                        excerpt=excerpt,
                    )

    def fork(self, conversation: str, message: str) -> None:
        """Go on from a message; the branch left behind stays."""
        log = self.load_log(conversation)
        if message not in log.nodes:
            raise CallError(
                f"{conversation} has no message {message!r}.", hint="See its messages with `lamella chats show`."
            )
        self._append(log, write_event(EventKind.FORK, self._moment(), head=message))

    def rename(self, conversation: str, title: str) -> None:
        """Give a conversation a title."""
        log = self.load_log(conversation)
        self._append(log, write_event(EventKind.RENAME, self._moment(), title=title), title=title)

    def _append(self, log: Log, written: Written, *, title: str | None = None) -> None:
        self._store.append(log.conversation, written, expected=log.version, title=title)

    def erase(self, conversation: str) -> None:
        """Remove a conversation's content for good; its tombstone stays."""
        self._store.erase_conversation(conversation, at=self._moment())

    def erase_artifact(self, conversation: str, artifact: str) -> int:
        """Remove every version of an artifact from a conversation for good, and say how many there were."""
        log = self.load_log(conversation)
        records = self._store.load(conversation)
        versions = tuple(dict.fromkeys(_versions(map(parse_body, records), artifact)))
        if not versions:
            raise CallError(
                f"{conversation} never had an artifact {artifact!r}.", hint="See its attachments with `chats show`."
            )
        written = write_erasure(artifact, versions, at=self._moment())
        self._store.erase_contents(conversation, versions, written, expected=log.version)
        return len(versions)

    def verify(self, conversation: str | None = None) -> Iterator[Damage]:
        """The store's own hashes, then every message id derived again from what the message says."""
        yield from self._store.verify(conversation)
        names = [conversation] if conversation else [listed.conversation for listed in self.list_alive()]
        for name in names:
            yield from self._verify_log(name)

    def _verify_log(self, conversation: str) -> Iterator[Damage]:
        try:
            log = self.load_log(conversation)
        except StoreDamagedError as error:
            yield Damage(conversation=conversation, place="log", what=error.message)
            return
        for node in log.nodes.values():
            if derive_id(conversation, node.parent, node) != node.id:
                yield Damage(
                    conversation=conversation, place=f"message {node.id}", what="its id does not follow from its text"
                )

    def verify_erased(self, conversation: str) -> Iterator[Damage]:
        """What is left of an erased conversation, if anything."""
        return self._store.verify_erased(conversation)

    def stats(self) -> StoreStats:
        return self._store.stats()

    def close(self) -> None:
        self._store.close()

    def list_alive(self) -> list[Listed]:
        """Every conversation that was not erased, the last changed first."""
        return [listed for listed in self._store.list_conversations() if listed.erased is None]

    def _moment(self) -> str:
        return self._clock.now().isoformat().replace("+00:00", "Z")


def _parting(there: Sequence[Record], ours: Sequence[Record]) -> int:
    return next(i for i, (one, other) in enumerate(zip(there, ours, strict=False), start=1) if one != other)


def _versions(bodies: Iterable[Body], artifact: str) -> Iterator[str]:
    for body in bodies:
        yield from referenced_artifacts(body, artifact)
