"""Ports: the interfaces that Lamella needs from the outside, and the values they exchange.

Each port is a small ``Protocol`` that adapters implement structurally: ``Store``, ``ModelProvider``,
``SourceReaders``, ``NoteRetriever``, ``TokenCounter``, ``UserMemory`` and others. The values before them are what
these methods take and return. The core never sees a port: it gets values, and plain callables such as ``count``.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from lamella.core.artifacts.kinds import KINDS, SourceMedium
from lamella.core.artifacts.model import Artifact, ArtifactKind, UnresolvedAttachment
from lamella.core.budget import Tokenizer
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.log.call import CacheUsage
from lamella.core.log.events.kinds import EventBatch, EventRecord
from lamella.core.messages import Delta, Message, ModelReply, ModelRequest
from lamella.errors import NotAvailableError, SourceNotFoundError
from lamella.profiles import ModelProfile


class Checkpoint(Struct, frozen=True, kw_only=True):
    """The state after the first ``version`` events of a conversation, as bytes that only their writer can decode.

    ``separate_data`` is the part that is read only on demand. ``earlier`` has earlier checkpoints as they are to be
    rewritten when this one is saved, if they still exist.
    """

    version: int
    data: bytes
    separate_data: bytes = b""
    earlier: tuple["Checkpoint", ...] = ()


class ConversationListItem(Struct, frozen=True, kw_only=True):
    """A conversation in a list: its number of events, and the times of the first and the last one.

    ``conversation`` is its key, which Lamella generates and never uses again. ``name`` is the name in this store.
    """

    conversation: str
    name: str
    title: str
    created: str
    updated: str
    event_count: int
    erased_at: str | None = None


class StoreProblem(Struct, frozen=True, kw_only=True):
    """A problem found in a store: its location and a description.

    If ``is_repairable`` is set, the data can be rebuilt from the events.
    """

    conversation: str | None
    location: str
    description: str
    is_repairable: bool = False


class StoreStats(Struct, frozen=True, kw_only=True):
    """Totals of a store."""

    schema: int
    conversations: int
    erased: int
    events: int
    contents: int
    content_bytes: int


class ConversationExport(Struct, frozen=True, kw_only=True):
    """A conversation's events in order, and the contents that are exported with them, by hash.

    ``conversation`` is its key. ``name`` is its name in the store it comes from, or None if that was its key.
    ``warnings`` has a sentence for each thing that could not be exported.
    """

    conversation_key: str
    name: str | None = None
    title: str
    created: str
    records: tuple[EventRecord, ...]
    contents: Mapping[str, bytes] = {}
    warnings: tuple[str, ...] = ()


class NoteHit(Struct, frozen=True, kw_only=True):
    """A passage of a vault that a search found: its headings, its text, and why it matched.

    ``id`` is made of path, headings and number, so it stays the same while the passage stays at its position.
    ``excerpt`` shows the matching words in context. ``number`` counts the passages of the file from 0.
    """

    id: str
    path: str
    title: str
    heading: str
    text: str
    excerpt: str
    score: float
    why: str
    passage_index: int = 0


class NoteList(Struct, frozen=True, kw_only=True):
    """Sorted paths of notes, and what was left out.

    ``skipped_links`` lead out of the root or to a folder. ``unreadable`` says for each note why it could not be
    searched for a tag. ``left_out`` says for each file or folder why Lamella did not look at it.
    """

    paths: tuple[str, ...]
    skipped_links: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class IndexReport(Struct, frozen=True, kw_only=True):
    """The result of an index update: how many files were read and removed, and how many the index has now.

    ``unread`` has the files that could not be read, each with the reason. ``rebuild_reason`` says why the index was
    rebuilt, or is None.
    """

    read_count: int
    removed_count: int
    file_count: int
    unread: tuple[tuple[str, str], ...] = ()
    rebuild_reason: str | None = None


class ProjectFolder(Struct, frozen=True, kw_only=True):
    """A project folder at one moment: its source files and folders, each with its time of modification.

    Times are seconds since 1970. ``instructions`` and ``memory`` are the texts of the project's own files.
    ``warnings`` describes files that could not be read.
    """

    name: str
    source_mtimes: Mapping[str, float]
    folders: Mapping[str, float] = {}
    instructions: str = ""
    memory: str = ""
    warnings: tuple[str, ...] = ()


class FileChange(Struct, frozen=True, kw_only=True):
    """A change that would be written to a note: the text before, the text after, and the difference.

    ``before`` is None for a new note. ``diff`` is a complete unified diff for people. If ``is_memory`` is set, the
    file is not a note but a file of the memory, and ``path`` is its full path.
    """

    path: str
    before: str | None
    after: str
    diff: str
    is_memory: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether the change leaves the text as it is."""
        return self.before == self.after


class FactKind(StrEnum):
    """Origin of a line of the memory: the user, a model that noted it, or a summary of a conversation."""

    SAVED = "saved"
    NOTED = "noted"
    RECENT = "recent"


class Fact(Struct, frozen=True, kw_only=True):
    """A line of the memory.

    ``id`` is made from its text. ``chat`` is the key of the conversation that the line summarises, or empty.
    """

    id: str
    kind: FactKind
    text: str
    conversation_key: str = ""


class CodeForm(StrEnum):
    """The amount of a file that a selection of code includes."""

    FULL = "full"
    SKELETON = "skeleton"
    NAME = "name"


class CodeFile(Struct, frozen=True, kw_only=True):
    """A file of a selection: its text as included, its score, and the components of the score."""

    path: str
    form: CodeForm
    text: str
    tokens: int
    score: float
    score_parts: Mapping[str, float] = {}


class CodeSelection(Struct, frozen=True, kw_only=True):
    """Files of a repository that match a question, best first; ``tokens`` is the size of the rendered ``text``.

    ``overview`` is the text of the artifact for the whole selection: the list of chosen files, skeletons and names.
    Files in full are separate artifacts. ``left_out`` has paths with the reason; a path that ends in a slash is a
    folder. ``warnings`` has further warnings.
    """

    root: str
    question: str
    budget: int
    tokens: int
    text: str
    overview: str
    files: tuple[CodeFile, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


class StageDecision(Struct, frozen=True, kw_only=True):
    """The decision of an approved stage, with the number of its approval.

    ``superseded`` is set once the work was rewound to before that approval.
    """

    stage: str
    label: str
    decision: str
    attempt: int
    superseded: bool = False


class StageProgress(Struct, frozen=True, kw_only=True):
    """A stage of a workflow: its status, attempt, decision and messages.

    ``status`` is None until the work has reached the stage. ``messages`` is its range of messages, which a stage has
    once it is approved. ``data`` has the recorded fields, ``field_labels`` their labels for people, and ``missing`` the
    required fields that are not recorded yet.
    """

    id: str
    label: str
    phase: str = ""
    status: str | None = None
    attempt: int = 1
    digest: str | None = None
    messages: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    search: bool = False
    data: Mapping[str, object] = {}
    field_labels: Mapping[str, str] = {}


class StageWrite:
    """Something that was written in the current stage: who wrote it, and what it changed, as a diff.

    The diff is made when it is read: a terminal asks for the progress with every key press.
    """

    def __init__(self, *, by_model: bool, make_diff: Callable[[], str]) -> None:
        self.by_model = by_model
        self._make_diff = make_diff

    @cached_property
    def diff(self) -> str:
        """Return what was changed, as lines with ``-`` and ``+``."""
        return self._make_diff()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StageWrite) and (self.by_model, self.diff) == (other.by_model, other.diff)

    def __hash__(self) -> int:
        return hash(self.by_model)


class WorkflowProgress(Struct, frozen=True, kw_only=True):
    """The progress of a workflow.

    Once all stages are approved, ``current`` is None and ``status`` is ``approved``. ``references`` and ``citations``
    count those of the approved stages and of the current one. ``reference_items`` are the references as CSL-JSON, and
    ``exhibits`` the captions of figures and tables by key. ``writes`` is what was written in the current stage, oldest
    first; the last one can be undone.
    """

    workflow: str
    title: str
    current: str | None
    status: str
    stages: tuple[StageProgress, ...]
    digest: tuple[StageDecision, ...]
    references: int = 0
    citations: int = 0
    language: str = "en"
    proposed_decision: str = ""
    change_request: str = ""
    writes: tuple[StageWrite, ...] = ()
    reference_items: tuple[Mapping[str, object], ...] = ()
    exhibits: Mapping[str, str] = {}

    @property
    def number(self) -> int:
        """Return the number of the current stage from 1, or that of the last stage once all are approved."""
        return next((at for at, one in enumerate(self.stages, start=1) if one.id == self.current), len(self.stages))


class Rule(Struct, frozen=True, kw_only=True):
    """A user rule: its text, the message it came with, and whether Lamella detected it or the user added it.

    ``message`` is empty until the next message is sent. ``turn`` is the number of that turn. ``origin`` is ``found``
    for a rule detected in a typed message, and ``user`` for one added by hand.
    """

    id: str
    text: str
    message: str
    turn: int
    origin: str


# The ports.

Result = TypeVar("Result")

# Reads contents of a conversation from a store, by hash; hashes that the store lacks are missing from the result.
ReadContents = Callable[[str, Sequence[str]], Mapping[str, bytes]]


class TokenizerRegistry(Protocol):
    """Counts tokens offline, and knows how exact the count is."""

    def get_tokenizer(self, model: str | None) -> Tokenizer:
        """Return the tokenizer of a model: exact if its vocabulary is known, otherwise the best estimate."""


class SourceReader(Protocol):
    """Reads one medium, such as text files, images or web pages."""

    def read(self, attachment: UnresolvedAttachment) -> Artifact:
        """Read an attachment as it is now; raises a subclass of ``BadInputError`` if it cannot be read."""


class CodeReader(Protocol):
    """Chooses files of a codebase."""

    def select_files(
        self, attachment: UnresolvedAttachment, *, question: str, recent_paths: Collection[str]
    ) -> tuple[Sequence[Artifact], Sequence[str]]:
        """Return the artifact for the whole selection followed by the files included in full, and warnings.

        ``recent_paths`` has the paths that the conversation knows already.
        """


class SourceCatalog(Protocol):
    """Lists and finds the files of a vault, as they were at one moment.

    A listing is made once and reused, so that one turn sees one state of the vault.
    """

    def list_notes(self, kind: ArtifactKind, name: str) -> NoteList:
        """Return the notes in a folder or with a tag, including subfolders and nested tags, and what was left out."""

    def find_notes_named(self, name: str) -> Sequence[str]:
        """Return the paths that a link can mean: the exact path, else all notes of that name, else of that alias."""

    def resolve_embed_path(self, target: str, *, note_path: str) -> str:
        """Return the path of a file that the note ``note_path`` embeds.

        The file is looked up next to the note, then from the root, then by a name that is unique in the vault.
        """

    def find_identical_files(self, artifact: Artifact) -> Sequence[str]:
        """Return the paths of files that have the same kind and exactly the same text as an artifact."""

    def has_folder(self, path: str) -> bool: ...

    def has_file(self, path: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReaders:
    """The sources that a turn reads from: a reader per medium and, with a vault, a catalog and a code reader.

    ``warnings`` collects messages of the readers, such as that a page could not be fetched again.
    """

    readers: Mapping[SourceMedium, SourceReader] = field(default_factory=dict)
    catalog: SourceCatalog | None = None
    code: CodeReader | None = None
    warnings: list[str] = field(default_factory=list)

    def read(self, attachment: UnresolvedAttachment) -> Artifact:
        """Read an attachment with the reader for its medium.

        Raises ``SourceNotFoundError`` if only a vault could provide it and there is none, and ``NotAvailableError`` if
        there is no reader for its medium.
        """
        reader = self.readers.get(KINDS[attachment.kind].medium)
        if reader is not None:
            return reader.read(attachment)
        if self.catalog is None and not is_web_kind(attachment.kind):
            raise no_vault_error(attachment.name)
        raise NotAvailableError(
            f"Nothing here reads {attachment.kind}: {attachment.name}.", hint="Attach its text instead."
        )


def is_web_kind(kind: ArtifactKind) -> bool:
    """Return whether attachments of a kind are read from the web."""
    return KINDS[kind].medium in (SourceMedium.PAGE, SourceMedium.VIDEO)


# Takes a snapshot of the sources. Each turn takes one, so that it sees a single state of them.
OpenSources = Callable[[], SourceReaders]


# The end of the error message if a vault is missing. The command line recognises it and explains how to name a vault.
NO_VAULT_MESSAGE = "there is no vault to read it from."


def no_vault_error(name: str) -> SourceNotFoundError:
    """Build the error for an attachment that only a vault could provide."""
    return SourceNotFoundError(
        f"{name} has no text, and {NO_VAULT_MESSAGE}",
        hint="Give the attachment its `text`, or name a `vault` folder.",
    )


# Decides whether a change to a note or to the memory may be written. It may wait for the user.
AllowWrite = Callable[[FileChange], bool | Awaitable[bool]]


class NoteRetriever(Protocol):
    """Finds passages of a vault with an index that is kept between runs and is as new as its last refresh."""

    def refresh(
        self,
        *,
        on_progress: Callable[[int, int], None] | None = None,
        only_paths: Collection[str] | None = None,
        rebuild: bool = False,
    ) -> IndexReport:
        """Update the index with the changes in the vault since the last refresh.

        ``on_progress`` is called with the number of finished files and the total. ``only_paths`` names the files that
        can have changed. ``rebuild`` deletes the index first.
        """

    def search(self, query: str, *, now: datetime, limit: int = 10) -> Sequence[NoteHit]:
        """Return the passages that match best, best first.

        Every matching note comes with one passage before any note comes with a second one. ``now``, with its time
        zone, is the reference for words such as "last week".
        """

    def rank_notes(self, question: str, *, paths: Sequence[str]) -> Sequence[str]:
        """Return all of these paths, the best match for the question first.

        Paths that do not match come last, in the given order.
        """

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretScanner:
    """Finds text that looks like a secret, and knows which models run in this process, so that no text leaves it.

    A text that contains none of the ``anchors`` has no secrets. ``find_secrets`` takes a text and its hash, and returns
    the lines that look like secrets, counted from 1, each with the kind of secret.
    """

    anchors: tuple[str, ...]
    find_secrets: Callable[[str, str], Sequence[tuple[int, str]]]
    is_local_model: Callable[[str], bool]


class PriceTable(Protocol):
    """Prices of tokens on a given day."""

    def price(self, model: str, usage: CacheUsage, at: datetime | None, *, output: int = 0) -> Decimal | None:
        """Return the cost in US dollars of this input and output, or None if the model has no known price."""


class CacheProfileRegistry(Protocol):
    """Cache profiles of the providers' models."""

    def get_cache_profile(self, model: str | None) -> CacheProfile: ...


class Clock(Protocol):
    """Returns the current time."""

    def now(self) -> datetime: ...


class SharedTable(Protocol):
    """Short texts by name that the processes of one store share.

    An entry lasts until its end time, or until something in its conversation is erased.
    """

    def set(self, name: str, text: str, *, at: datetime, expires_at: datetime, conversation_key: str = "") -> None: ...

    def get_many(self, *names: str, at: datetime) -> Mapping[str, str]: ...

    def remove(self, name: str) -> None: ...


class Store(Protocol):
    """Durable storage of conversations.

    An append is durable before it returns, is all or nothing, and never interleaves with another. ``conversation`` is
    always a key. The key of an erased conversation is never used again. A name belongs to at most one conversation
    that is not erased.
    """

    @property
    def shared_table(self) -> SharedTable: ...

    def append(
        self,
        conversation_key: str,
        batch: EventBatch,
        *,
        expected: int,
        title: str | None = None,
        name: str | None = None,
    ) -> int:
        """Append events after exactly ``expected`` events and return the new number of events.

        Raises ``ConflictError`` if the conversation has another number of events, and ``ConversationErasedError`` if
        it was erased.

        A ``title`` that is not None becomes the title in lists. A new conversation gets the ``name``, by default its
        key; if another conversation has that name, ``ConflictError`` is raised.

        Each content in ``batch`` is named by one of the events that come with it. An event may name a content
        without bringing it if the conversation has it already. An event of kind ``erasure`` removes the contents it
        names, unless the same append includes them.
        """

    def load(self, conversation_key: str, *, after: int = 0) -> Sequence[EventRecord]:
        """Return the events after a number of events, in order; empty for a conversation that does not exist.

        Raises ``ConversationErasedError`` for an erased one.
        """

    def save_checkpoint(
        self, conversation_key: str, checkpoint: Checkpoint, *, replaced_versions: Collection[int] = ()
    ) -> bool:
        """Save a checkpoint of all events so far; return False, without saving, if there are more events by now.

        A checkpoint is derived data: copies leave it out, and any erasure in the conversation removes it. The
        checkpoints of the versions in ``replaced_versions`` are removed.
        """

    def read_checkpoints(
        self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
    ) -> Sequence[Result]:
        """Return the result of ``decode`` for each checkpoint, oldest first, whose events are still the same.

        ``decode`` gets one checkpoint after the other, so that the bytes of all need not be in memory at once. It may
        get the same one twice, and it must not use the store. The separate data of a checkpoint is loaded only if
        ``with_separate_data`` is set.
        """

    def read_contents(self, conversation_key: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        """Return the contents of this conversation by hash; erased ones are left out."""

    def list_conversations(self) -> Sequence[ConversationListItem]:
        """Return every conversation, the last changed first; erased ones as their tombstones.

        Damaged values are left out of their row. They do not prevent other rows from being read.
        """

    def find_conversation(self, name: str) -> ConversationListItem | None:
        """Return the conversation of that name, or else of that key; None if there is none or it was erased."""

    def erase_conversation(self, conversation_key: str, *, at: str) -> None:
        """Remove the events, and all contents that no other conversation has; a tombstone stays.

        A conversation that does not exist gets a tombstone, too, so that no copy of it is imported later.
        """

    def erase_contents(self, conversation_key: str, hashes: Sequence[str], batch: EventBatch, *, expected: int) -> int:
        """Remove contents from one conversation; other conversations keep theirs.

        ``batch`` has an event of kind ``erasure`` that lists the hashes in its ``contents``. By that event the log
        distinguishes erased contents from missing ones.
        """

    def verify(self, conversation_key: str | None = None) -> Iterator[StoreProblem]:
        """Recompute every hash of one conversation, or of all, and yield each problem found."""

    def verify_erased(self, conversation_key: str) -> Iterator[StoreProblem]:
        """Yield each remaining trace of an erased conversation."""

    def rebuild_list_row(self, conversation_key: str, get_title: Callable[[Sequence[EventRecord]], str]) -> None:
        """Rebuild a conversation's row in the list from its events, and its title with ``get_title``.

        Raises ``StoreCorruptedError`` if events are damaged or missing, because their data cannot be derived.
        """

    def stats(self) -> StoreStats: ...

    def close(self) -> None: ...


class ModelRegistry(Protocol):
    """Known facts about each model."""

    def get_model_profile(self, model: str | None) -> ModelProfile:
        """Return the profile of a model, written ``provider:model`` or ``model``."""


class ModelProvider(Protocol):
    """A model that streams its answer."""

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Yield the answer as it arrives.

        The last delta is a ``StopDelta``. The usage comes before it, if the provider reports one. Closing the
        iterator, or cancelling the task that reads it, closes the connection. Raises subclasses of:

        - ``RequestRejectedError`` for errors that the caller can fix,
        - ``RetryableProviderError`` for errors that a retry may solve; ``wait`` says when, if the provider did,
        - ``ProviderError`` for every other failure of the provider.

        Deltas that came before an error stay valid. The provider never retries by itself: that is the caller's
        decision.
        """

    async def close(self) -> None:
        """Close all connections; the provider may be used again and then opens new ones."""


class HttpEndpoint(NamedTuple):
    """An HTTP API of a model provider, for requests that are passed on as they are.

    ``api_formats`` are the APIs that the server speaks: ``messages`` of Anthropic, ``chat`` and ``responses`` of OpenAI.
    ``headers`` contain the key of the operator.
    """

    provider: str
    base_url: str
    api_formats: tuple[str, ...]
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return f"HttpEndpoint({self.provider!r}, {self.base_url!r}, {self.api_formats!r})"


@runtime_checkable
class HttpModelProvider(Protocol):
    """A provider whose API can be called with requests in its own format."""

    @property
    def endpoint(self) -> HttpEndpoint: ...


@runtime_checkable
class CacheForecaster(Protocol):
    """A provider that knows the state of its own cache exactly, token by token."""

    async def predict_cache_usage(self, request: ModelRequest) -> CacheUsage | None:
        """Return what the cache would serve of a request if it were sent now, or None if that is uncertain.

        A provider for which that is slow, such as one that first loads a model, can also have a method
        ``preview_cache_usage`` with the same types. It is called for the previews of a message that is being typed.
        """


class Archive(Protocol):
    """Stores conversations as files that people can read."""

    def save(
        self, export: ConversationExport, folder: Path, *, file: str | None = None, vault: Path | None = None
    ) -> Path:
        """Write a conversation and return its path; by default its id decides the file name.

        Contents that the vault has in identical form are not copied into the archive.
        """

    def load(
        self,
        path: Path,
        *,
        vault: Path | None = None,
        read_contents: ReadContents | None = None,
        is_erased: Callable[[str], bool] | None = None,
    ) -> ConversationExport:
        """Read a conversation; ``read_contents`` provides contents that the store has already.

        ``is_erased`` says whether the store erased a conversation with an id. A file without an id is then read under
        another one.
        """


class Summarizer(Protocol):
    """Asks a model for a shorter text. It may be slow and may fail; the turn then continues without it."""

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        """Return the model's answer to these messages, of about ``max_tokens`` tokens at most."""


class UserMemory(Protocol):
    """The memory beyond single conversations: one fact per line, in files that the user can read and edit."""

    @property
    def folder(self) -> Path:
        """Return the folder of the memory files."""

    def read(self) -> Sequence[Fact]:
        """Return every fact, then one line per recent conversation.

        Raises a subclass of ``BadInputError`` if the files cannot be read.
        """

    def add(self, text: str, *, kind: FactKind = FactKind.SAVED, conversation_key: str = "") -> tuple[Fact, bool]:
        """Add a line and return it, and whether it is new.

        With ``conversation_key``, the key of a conversation, the line replaces the earlier line about that
        conversation.
        """

    def plan_add(self, text: str, *, kind: FactKind = FactKind.SAVED) -> FileChange:
        """Return the change that adding a fact would make."""

    def remove(self, selector: str) -> Fact:
        """Remove a line and return it; ``selector`` is its number, its id, or words that only this line has."""

    def edit(self, selector: str, text: str) -> Fact:
        """Replace the text of a line and return it; it counts as saved by the user from then on."""

    def forget_conversation(self, conversation_key: str) -> bool:
        """Remove the line about a conversation, by its key; return whether there was one."""


class WireFormatRegistry(Protocol):
    """The providers' wire formats, for programs that send requests with their own client."""

    def build_request(self, format_name: str, request: ModelRequest, allow_any_model: bool, /) -> dict[str, Any]:  # noqa: FBT001 - positional only
        """Return the keyword arguments that send a request with the SDK of the named format.

        Unless ``allow_any_model`` is set, a model known to be of another provider is rejected.
        """

    def parse_reply(self, response: object) -> ModelReply:
        """Return the reply in an SDK's own object, in plain data, or in a finished stream.

        Raises an error for an object of an unknown type.
        """
