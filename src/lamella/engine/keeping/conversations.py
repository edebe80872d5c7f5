"""Keeping conversations: taking them out and in whole, searching, verifying and erasing them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate

from msgspec import Struct

from lamella.core.log.events.changes import ForkEvent, RenameEvent
from lamella.core.log.events.codec import read_event, write_erasure, write_event
from lamella.core.log.events.hashes import referenced_artifacts, retold_hashes
from lamella.core.log.events.kinds import Event
from lamella.core.log.ids import Voice
from lamella.core.log.log import Log
from lamella.core.log.nodes import damaged, find_results
from lamella.core.log.records import Record, Written
from lamella.engine.keeping.inspection import Inspection, fold_log
from lamella.engine.keeping.messages import miss_message
from lamella.engine.keeping.names import find_chat, find_erased, find_free_name, miss_chat
from lamella.engine.keeping.titles import read_given_title, read_title, tell_title
from lamella.errors import CallError, DivergedError, ErasedError, StoreDamagedError
from lamella.holdings import ChatListing, Chronicle, Damage, StoreStats
from lamella.ports import Clock, Store

_EXCERPT = 60
_BORDER = re.compile(r"\s+")


class ImportOutcome(StrEnum):
    """What became of a conversation that was brought in."""

    NEW = "new"
    EXTENDED = "extended"
    SAME = "same"
    OLDER = "older"


class Hit(Struct, frozen=True, kw_only=True):
    """A message that a search found: where, who said it, and the words around."""

    conversation: str
    name: str
    title: str
    message: str
    role: Voice
    excerpt: str


class Conversations:
    """What can be done with the conversations of a store as wholes."""

    def __init__(self, store: Store, clock: Clock, *, forget: Callable[[str], object] | None = None) -> None:
        """What tells of a conversation elsewhere is taken out by ``forget`` before it is erased."""
        self._forget = forget
        self._store = store
        self._clock = clock
        self._inspection = Inspection(store)

    def find(self, words: str, *, beginnings: bool = True) -> ChatListing:
        """The conversation that is meant: by its name, key or title, or by a beginning that no other has."""
        found = find_chat(self._store, words, beginnings=beginnings)
        if found is not None:
            return found
        erased = find_erased(self._store, words)
        if erased is not None:
            raise ErasedError(
                f"The conversation {words} was erased at {erased.erased}.",
                hint="Begin a new one; the name it had is free.",
            )
        raise miss_chat(words)

    def find_erasable(self, words: str) -> ChatListing:
        """The conversation that is to be erased, whole or in part; else its tombstone, to end what was interrupted."""
        found = find_chat(self._store, words, beginnings=False) or find_erased(self._store, words)
        if found is None:
            raise miss_chat(words)
        return found

    def find_erased(self, words: str) -> str:
        """The key of the tombstone that is meant, or of the conversation in which something was erased.

        Words that nobody knows are taken for a key: it is not erased here, and verifying says so.
        """
        tombstone = find_erased(self._store, words)
        if tombstone is not None and tombstone.conversation == words:
            return words
        found = find_chat(self._store, words, beginnings=False) or tombstone
        return words if found is None else found.conversation

    def name_of(self, conversation: str) -> str:
        """What a conversation is called here, by its key."""
        found = self._store.find_conversation(conversation)
        if found is None or found.conversation == conversation:
            return conversation if found is None else found.name
        # Another one is called by what is this one's key.
        return next(listed.name for listed in self.list_alive() if listed.conversation == conversation)

    def load_log(self, conversation: str) -> Log:
        """A conversation's log; an error if there is none."""
        return self._load(conversation)[1]

    def load_log_with(self, conversation: str, message: str) -> Log:
        """A conversation's log that has a message; an error if it has none."""
        log = self.load_log(conversation)
        if message not in log.nodes:
            raise miss_message(log, message, name=self.name_of(conversation))
        return log

    def _load(self, conversation: str) -> tuple[Sequence[Record], Log]:
        """A conversation's events, and what they fold to."""
        records = self._store.load(conversation)
        return records, fold_log(conversation, records)

    def take_out(self, conversation: str) -> Chronicle:
        """A whole conversation with all its contents."""
        records, log = self._load(conversation)
        hashes = tuple(dict.fromkeys(name for record in records for name in record.contents))
        name = self.name_of(conversation)
        return Chronicle(
            conversation=conversation,
            name=None if name == conversation else name,
            title=tell_title(log),
            created=log.created,
            records=tuple(records),
            contents=self._store.read_contents(conversation, hashes),
        )

    def read_contents(self, conversation: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        """Those of the contents that a conversation already holds here."""
        return self._store.read_contents(conversation, hashes)

    def take_in(self, chronicle: Chronicle) -> ImportOutcome:
        """Bring a conversation in, known by its key. One that is there already is extended, never doubled or cut.

        One that is new here keeps the name it had, with a number where another conversation is called so.
        """
        there = list(self._store.load(chronicle.conversation))
        ours = list(chronicle.records)
        shared = min(len(there), len(ours))
        if there[:shared] != ours[:shared]:
            raise DivergedError(
                f"The store has {self.name_of(chronicle.conversation)} with another history from event "
                f"{_parting(there, ours):,} on.",
                hint="Delete one of the two, or import into another store.",
            )
        if len(ours) <= len(there):
            return ImportOutcome.SAME if len(ours) == len(there) else ImportOutcome.OLDER
        missing = tuple(ours[shared:])
        named = {name for record in missing for name in record.contents}
        contents = {name: data for name, data in chronicle.contents.items() if name in named}
        self._store.append(
            chronicle.conversation,
            Written(records=missing, contents=contents),
            expected=len(there),
            title=read_given_title(missing) if there else read_title(missing),
            name=None if there else find_free_name(self._store, chronicle.name or chronicle.conversation),
        )
        return ImportOutcome.EXTENDED if there else ImportOutcome.NEW

    def search(self, words: str) -> Iterator[Hit]:
        """Every message of every branch that holds the words, whatever their case.

        A conversation that is damaged keeps nobody from the others: its error comes after all that was found.
        """
        wanted = words.casefold()
        damage: StoreDamagedError | None = None
        for listed in self.list_alive():
            log = Log(listed.conversation)
            try:
                log.extend(self._store.load(listed.conversation))
            except StoreDamagedError as error:
                damage = damage or error
                continue
            except ErasedError:
                # Somebody erased it since it was listed.
                continue
            for node in log.nodes.values():
                at = _find(node.text, wanted)
                if at is not None:
                    yield Hit(
                        conversation=listed.conversation,
                        name=listed.name,
                        title=listed.title,
                        message=node.id,
                        role=node.role,
                        excerpt=_cut_around(node.text, at, at + len(words)),
                    )
        if damage is not None:
            raise damage

    def fork(self, conversation: str, message: str) -> None:
        """Go on from a message; the branch left behind stays."""
        log = self.load_log_with(conversation, message)
        if message != log.head:
            self._append(log, write_event(ForkEvent(head=message), at=self.moment()))

    def rename(self, conversation: str, title: str) -> None:
        """Give a conversation a title."""
        log = self.load_log(conversation)
        self._append(log, write_event(RenameEvent(title=title), at=self.moment()), title=title)

    def _append(self, log: Log, written: Written, *, title: str | None = None) -> None:
        self._store.append(log.conversation, written, expected=log.version, title=title)

    def erase(self, conversation: str) -> None:
        """Remove a conversation's content for good; its tombstone stays. Repeating it ends what was interrupted."""
        if all(listed.conversation != conversation for listed in self._store.list_conversations()):
            raise miss_chat(conversation)
        self._forget_talk(conversation)
        self._store.erase_conversation(conversation, at=self.moment())

    def erase_artifact(self, conversation: str, artifact: str) -> int:
        """Remove an artifact from a conversation for good, and say how many contents went.

        That is every version of it, with its pictures, the instructions that drew it in, and every summary of talk,
        which may tell of it.
        """
        records, log = self._load(conversation)
        given = find_results(log.nodes.values(), log.rounds, artifact)
        own = dict.fromkeys((*_find_contents(records, lambda event: referenced_artifacts(event, artifact)), *given))
        if not own:
            name = self.name_of(conversation)
            raise CallError(
                f"{name} never had an artifact {artifact!r}.",
                hint=lambda door: f"See its attachments with {door.show_chat(name)}.",
            )
        contents = tuple({**own, **dict.fromkeys(_find_contents(records, retold_hashes))})
        self._forget_talk(conversation)
        written = write_erasure(artifact, contents, at=self.moment())
        self._store.erase_contents(conversation, contents, written, expected=log.version)
        return len(contents)

    def _forget_talk(self, conversation: str) -> None:
        """Whatever tells of it elsewhere goes first: once it is erased, nobody would look for that again."""
        if self._forget is not None:
            self._forget(conversation)

    def verify(self, conversation: str | None = None) -> Iterator[Damage]:
        """Every hash and id derived again, of one conversation or of all, and what lists show of them."""
        return self._inspection.verify(conversation)

    def verify_erased(self, conversation: str) -> Iterator[Damage]:
        """What is left of an erased conversation, or of what was erased in one that goes on."""
        return self._inspection.verify_erased(conversation)

    def repair(self, damages: Iterable[Damage]) -> list[str]:
        """Derive again what is damaged and can be derived from events; the keys of those that were repaired."""
        return self._inspection.repair(damages)

    def stats(self) -> StoreStats:
        return self._store.stats()

    def close(self) -> None:
        self._store.close()

    def list_alive(self) -> list[ChatListing]:
        """Every conversation that was not erased, the last changed first."""
        return [listed for listed in self._store.list_conversations() if listed.erased is None]

    def moment(self) -> str:
        """Now, as it is written down."""
        return self._clock.now().isoformat().replace("+00:00", "Z")


def _parting(there: Sequence[Record], ours: Sequence[Record]) -> int:
    return next(i for i, (one, other) in enumerate(zip(there, ours, strict=False), start=1) if one != other)


def _find_contents(records: Iterable[Record], find: Callable[[Event], Iterable[str]]) -> Iterator[str]:
    for number, record in enumerate(records, start=1):
        try:
            yield from find(read_event(record))
        except (LookupError, TypeError, ValueError) as error:
            raise damaged(f"Event {number}", error) from error


def _cut_around(text: str, first: int, last: int) -> str:
    """What was found and some words around it, on one line; no word is cut but one that is longer than that."""
    start, end = max(0, first - _EXCERPT), min(len(text), last + _EXCERPT)
    before, found, after = text[start:first], text[first:last], text[last:end]
    if start and not text[start - 1].isspace():
        before = _BORDER.split(before, maxsplit=1)[-1]
    if end < len(text) and not text[end].isspace():
        after = _BORDER.split(after[::-1], maxsplit=1)[-1][::-1]
    shown = " ".join(f"{before}{found}{after}".split())
    return f"{'… ' if start else ''}{shown}{' …' if end < len(text) else ''}"


def _find(text: str, wanted: str) -> int | None:
    """Where a text holds what is wanted, whatever the case; folding case can change how long a text is."""
    folded = text.casefold()
    at = folded.find(wanted)
    if at < 0 or len(folded) == len(text):
        return at if at >= 0 else None
    lengths = accumulate(len(character.casefold()) for character in text)
    return next(index for index, end in enumerate(lengths) if end > at) if text else 0
