"""Ports: what Lamella needs from the world, as small protocols.

Adapters satisfy them by shape. Core never sees a port: it gets values, and plain callables such as ``count``.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from lamella.core.artifacts.kinds import KINDS, Medium
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.artifacts.wanted import Wanted
from lamella.core.budget.counting import Measure
from lamella.core.ledger.cache import CacheProfile
from lamella.core.log.call import CacheUse
from lamella.core.log.records import Record, Written
from lamella.core.messages.delta import Delta, Reply
from lamella.core.messages.model import Message
from lamella.core.messages.request import Request
from lamella.errors import NotAvailableError, SourceMissingError
from lamella.holdings import (
    ChatListing,
    Checkpoint,
    Chronicle,
    Damage,
    Fact,
    FactKind,
    IndexReport,
    NoteChange,
    NoteHit,
    NoteList,
    StoreStats,
)
from lamella.profiles import ModelProfile

Result = TypeVar("Result")

# Those of a conversation's contents that a store has, by their hashes.
Held = Callable[[str, Sequence[str]], Mapping[str, bytes]]


class TokenCounter(Protocol):
    """Counts tokens offline, and says how sure it is."""

    def measure(self, model: str | None) -> Measure:
        """How this model counts: exactly where its vocabulary is known, else the best estimate with its error."""


class Reader(Protocol):
    """Reads one medium, such as files of text, pictures or web pages."""

    def read(self, wanted: Wanted) -> Artifact:
        """What is wanted, as it is now; a child of ``bad_input`` says why it cannot be had."""


class CodeReader(Protocol):
    """Chooses from the files of a codebase."""

    def choose(
        self, wanted: Wanted, *, question: str, touched: Collection[str]
    ) -> tuple[Sequence[Artifact], Sequence[str]]:
        """What stands for the choice, then the files that are in it in full; and what is to be said of it.

        ``touched`` are paths that the conversation knows already.
        """


class Catalog(Protocol):
    """Lists and finds what readers read, as it was at one moment: what was listed once is not listed again."""

    def list_notes(self, kind: Kind, name: str) -> NoteList:
        """The notes in a folder or with a tag, and below it, and what is not among them although it is there."""

    def find_note(self, name: str) -> Sequence[str]:
        """The paths a link can mean: the exact path, else every note of that name, else of that alias."""

    def find_file(self, target: str, *, beside: str) -> str:
        """The path of the file that a note embeds: beside the note, else from the root, else of a unique name."""

    def find_copies(self, artifact: Artifact) -> Sequence[str]:
        """The paths of files of its kind that have the very text of an artifact."""

    def has_folder(self, path: str) -> bool: ...

    def has_file(self, path: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where a turn reads from: a reader per medium; where there is a vault, a catalog, and what chooses from code.

    ``told`` is what readers have to say of what they gave, such as that it could not be read anew.
    """

    readers: Mapping[Medium, Reader] = field(default_factory=dict)
    catalog: Catalog | None = None
    code: CodeReader | None = None
    told: list[str] = field(default_factory=list)

    def read(self, wanted: Wanted) -> Artifact:
        """What is wanted, by the reader for its medium."""
        reader = self.readers.get(KINDS[wanted.kind].medium)
        if reader is not None:
            return reader.read(wanted)
        if self.catalog is None and not is_fetched(wanted.kind):
            raise no_vault(wanted.name)
        raise NotAvailableError(f"Nothing here reads {wanted.kind}: {wanted.name}.", hint="Attach its text instead.")


def is_fetched(kind: Kind) -> bool:
    """Whether something of a kind is read from the web."""
    return KINDS[kind].medium in (Medium.PAGE, Medium.VIDEO)


# A look at the sources as they are now. Each turn takes one, so that it sees one state of them.
Look = Callable[[], Sources]


# What is said of something that only a vault could give; faces know by it to say how one is named.
NO_VAULT = "there is no vault to read it from."


def no_vault(name: str) -> SourceMissingError:
    """The error for what only a vault could give."""
    return SourceMissingError(
        f"{name} has no text, and {NO_VAULT}",
        hint="Give the attachment its `text`, or name a `vault` folder.",
    )


# Whether a change to a note or to the memory may be written. Whoever is asked may take their time.
AllowWrite = Callable[[NoteChange], bool | Awaitable[bool]]


class Retriever(Protocol):
    """Finds passages of a vault. What it knows of the vault lasts, and is as new as its last refreshing."""

    def refresh(
        self, *, tell: Callable[[int, int], None] | None = None, only: Collection[str] | None = None, anew: bool = False
    ) -> IndexReport:
        """Take in what changed in the vault since the last time; ``tell`` hears how many of how many files are done.

        ``only`` names the files that can have changed. ``anew`` forgets everything first.
        """

    def search(self, query: str, *, now: datetime, limit: int = 10) -> Sequence[NoteHit]:
        """The passages that fit best, best first: one of every note that fits before the second of any.

        ``now`` is what words such as "last week" are meant from, with its zone.
        """

    def rank_notes(self, question: str, *, among: Sequence[str]) -> Sequence[str]:
        """All of these paths, those first that fit the question best; those that do not fit come last, in order."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretWatch:
    """What looks like a secret in a text, and which models are asked in this process, so that nothing leaves.

    A text without any of the ``anchors`` has none. ``find`` takes a text and its hash, and gives each line that looks
    like a secret, counted from 1, with what kind of one.
    """

    anchors: tuple[str, ...]
    find: Callable[[str, str], Sequence[tuple[int, str]]]
    stays_here: Callable[[str], bool]


class PriceBook(Protocol):
    """What tokens cost on a day."""

    def price(self, model: str, use: CacheUse, at: datetime | None, *, output: int = 0) -> Decimal | None:
        """The cost in US dollars of input and so much output, or none where the model has no known price."""


class ProfileBook(Protocol):
    """What each provider's prefix cache does."""

    def profile(self, model: str | None) -> CacheProfile: ...


class Clock(Protocol):
    """What time it is."""

    def now(self) -> datetime: ...


class Shelf(Protocol):
    """What processes of one store tell one another: lines by name until they end, or their conversation is erased."""

    def put(self, name: str, text: str, *, at: datetime, ends: datetime, conversation: str = "") -> None: ...

    def find(self, *names: str, at: datetime) -> Mapping[str, str]: ...

    def remove(self, name: str) -> None: ...


class Store(Protocol):
    """Where conversations last. Appending is durable before it returns, all or nothing, and never interleaves.

    ``conversation`` is a key: one that was erased is never used again. A name belongs to one that is not erased.
    """

    @property
    def shelf(self) -> Shelf: ...

    def append(
        self, conversation: str, written: Written, *, expected: int, title: str | None = None, name: str | None = None
    ) -> int:
        """Append after exactly ``expected`` events and give the new number of events.

        Raises ``conflict`` if the conversation has another number of events, ``erased`` if it was erased. A title
        other than none becomes the conversation's title in lists. One that begins gets the ``name``, by default its
        key; where another has that, it is a ``conflict``. Each content is named by one of the events that
        bring it; an event may name contents without bringing them if the conversation holds them already. An event
        of kind ``erasure`` removes the contents it names, unless the same append brings them.
        """

    def load(self, conversation: str, *, after: int = 0) -> Sequence[Record]:
        """The events after a number of events, in order; none for a conversation that does not exist.

        Raises ``erased`` for one that was erased.
        """

    def keep_checkpoint(self, conversation: str, checkpoint: Checkpoint, *, instead_of: Collection[int] = ()) -> bool:
        """Keep what all events up to now come to, and say whether it was kept: not if there are more by now.

        It is derived: copies leave it out, and any erasure in the conversation removes it. Those of the versions that
        it is kept ``instead_of`` are removed.
        """

    def read_checkpoints(
        self, conversation: str, read: Callable[[Checkpoint], Result], *, apart: bool = False
    ) -> Sequence[Result]:
        """What ``read`` makes of each that was kept, oldest first, where the events it was made of are still those.

        It is given one after another, so that the bytes of all need not be held at once, and may be given some again;
        it must not use the store. What is kept ``apart`` of them comes only where it is asked for.
        """

    def read_contents(self, conversation: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        """The contents this conversation holds, by hash; what was erased is left out."""

    def list_conversations(self) -> Sequence[ChatListing]:
        """Every conversation, the last changed first; erased ones as their tombstones.

        What is damaged in a row of the list is left out of it, and keeps no other row from being read.
        """

    def find_conversation(self, name: str) -> ChatListing | None:
        """The conversation of that name, else of that key; none if there is none or it was erased."""

    def erase_conversation(self, conversation: str, *, at: str) -> None:
        """Remove the events and all contents that no other conversation holds; a tombstone stays.

        One that is not there gets its tombstone too, so that no copy of it is taken in later.
        """

    def erase_contents(self, conversation: str, hashes: Sequence[str], written: Written, *, expected: int) -> int:
        """Remove contents from one conversation; what others hold stays theirs.

        ``written`` has an event of kind ``erasure`` that lists the hashes in its ``contents``: that is how the log
        tells contents that were erased from contents that are missing.
        """

    def verify(self, conversation: str | None = None) -> Iterator[Damage]:
        """Every hash derived again, for one conversation or all: what is damaged, precisely."""

    def verify_erased(self, conversation: str) -> Iterator[Damage]:
        """What is left of an erased conversation, if anything."""

    def repair(self, conversation: str, tell_title: Callable[[Sequence[Record]], str]) -> None:
        """Derive a conversation's row in the list again from its events, and its title by ``tell_title``.

        Raises ``store_damaged`` where events are damaged or missing: what they said nobody can derive.
        """

    def stats(self) -> StoreStats: ...

    def close(self) -> None: ...


class ModelBook(Protocol):
    """What is known of each model."""

    def model(self, model: str | None) -> ModelProfile: ...


class ChatProvider(Protocol):
    """A model that answers, piece by piece."""

    def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer as it arrives; its last delta is a ``Stop``, and a usage comes before it where one is reported.

        Closing the iterator, or cancelling the task that reads it, closes the connection. Raises a child of
        ``provider_refused`` for what the caller can mend, of ``provider_retry`` for what may work later (``wait`` says
        when, if the provider did), and of ``provider_error`` for everything else the provider does wrong. Deltas that
        came before an error stay true. Nothing is tried twice: whether to is the caller's decision.
        """

    async def close(self) -> None:
        """Give back connections; the provider may be used again and opens new ones."""


@runtime_checkable
class Foresight(Protocol):
    """A provider that knows its own cache, token by token."""

    async def foresee(self, request: Request) -> CacheUse | None:
        """What the cache would serve of a request if it were sent now; none where even it cannot be sure."""


class Archive(Protocol):
    """Conversations as files that people can read."""

    def save(self, chronicle: Chronicle, folder: Path, *, file: str | None = None, vault: Path | None = None) -> Path:
        """Write a conversation; its id decides the file, if none is named.

        What the vault has just as it was is left to it.
        """

    def load(self, path: Path, *, vault: Path | None = None, held: Held | None = None) -> Chronicle:
        """Read a conversation; ``held`` gives those of its contents that are there already."""


class Summarizer(Protocol):
    """Asks a model to make something shorter. May take its time and may fail; the turn goes on without it."""

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        """What the model answers to these messages, in about this many tokens at most."""


class MemoryBook(Protocol):
    """What is remembered beyond one conversation, a line each, where people can read and edit it."""

    @property
    def folder(self) -> Path:
        """Where it is kept."""

    def read(self) -> Sequence[Fact]:
        """Every fact, then a line for each recent conversation; a child of ``bad_input`` says what is wrong."""

    def add(self, text: str, *, kind: FactKind = FactKind.SAVED, chat: str = "") -> tuple[Fact, bool]:
        """One more line, and whether it is new; of a conversation by its key the one line that tells of it."""

    def plan(self, text: str, *, kind: FactKind = FactKind.SAVED) -> NoteChange:
        """What adding a fact would change."""

    def remove(self, which: str) -> Fact:
        """Take one out, by its number, its id, or words that only it has."""

    def edit(self, which: str, text: str) -> Fact:
        """Another text in place of one, which is the user's from then on."""

    def forget(self, chat: str) -> bool:
        """Take out what tells of a conversation, by its key; whether there was something."""


class Dialects(Protocol):
    """The wire formats of providers, for people who send with their own client."""

    def speak(self, name: str, request: Request, any_model: bool, /) -> dict[str, Any]:  # noqa: FBT001 - by place only
        """The keyword arguments that send a request with the SDK of the format named.

        Unless ``any_model``, one that is known to be of another maker is refused.
        """

    def read(self, answer: object) -> Reply:
        """The reply in an SDK's own object, plain data, or a stream that has ended; an error if nobody knows it."""
