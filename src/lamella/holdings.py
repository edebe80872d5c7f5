"""Holdings: what a store gives of its conversations, how one travels, what is found in vaults and code, memory."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from lamella.core.log.records import Record


class Checkpoint(Struct, frozen=True, kw_only=True):
    """What the first ``version`` events of a conversation come to, as bytes that only their writer reads.

    ``apart`` is what of it is read only where somebody asks for that. ``before`` are earlier ones as they are once this
    is kept, of those that are still there.
    """

    version: int
    data: bytes
    apart: bytes = b""
    before: tuple["Checkpoint", ...] = ()


class ChatListing(Struct, frozen=True, kw_only=True):
    """A conversation in a list: how many events it has, and when the first and the last of them happened.

    ``conversation`` is its key, which nobody chose and nobody gets again; ``name`` is what people call it here.
    """

    conversation: str
    name: str
    title: str
    created: str
    updated: str
    version: int
    erased: str | None = None


class Damage(Struct, frozen=True, kw_only=True):
    """Something in a store that is not what it was: where, and what is wrong with it.

    What is ``derived`` can be made again from the events.
    """

    conversation: str | None
    place: str
    what: str
    derived: bool = False


class StoreStats(Struct, frozen=True, kw_only=True):
    """How much a store holds."""

    schema: int
    conversations: int
    erased: int
    events: int
    contents: int
    content_bytes: int


class Chronicle(Struct, frozen=True, kw_only=True):
    """A conversation's events in order, and those of its contents that travel with it, by hash.

    ``conversation`` is its key; ``name`` is what it was called where it comes from, none where that was its key.
    ``warnings`` say what could not be brought along, each in one sentence.
    """

    conversation: str
    name: str | None = None
    title: str
    created: str
    records: tuple[Record, ...]
    contents: Mapping[str, bytes] = {}
    warnings: tuple[str, ...] = ()


class NoteHit(Struct, frozen=True, kw_only=True):
    """A passage of a vault that a search found: the headings it stands below, its text, and why it was found.

    ``id`` is its path, headings and number: it stays as long as the passage stays where it is. The ``excerpt`` shows
    where in the text the words are, and ``number`` which of its file's passages it is, from 0.
    """

    id: str
    path: str
    title: str
    heading: str
    text: str
    excerpt: str
    score: float
    why: str
    number: int = 0


class NoteList(Struct, frozen=True, kw_only=True):
    """Paths of notes, sorted.

    Not among them: ``links`` that lead out of the root or to a folder, what is ``unread``: why each note could not be
    searched for a tag, and what is ``left_out``: why each file or folder could not be looked at.
    """

    paths: tuple[str, ...]
    links: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class IndexReport(Struct, frozen=True, kw_only=True):
    """What became of an index: how many files were read and removed, and how many it has now.

    Those that could not be read are ``unread``, each with why. ``rebuilt`` says why the index was made anew, if it was.
    """

    read: int
    removed: int
    files: int
    unread: tuple[tuple[str, str], ...] = ()
    rebuilt: str | None = None


class ProjectFolder(Struct, frozen=True, kw_only=True):
    """A folder that conversations are about, at one moment: its sources and folders, each with when it last changed.

    Times are seconds since 1970. ``instructions`` and ``memory`` are what its own files say; ``told`` is what is to be
    said of those that could not be read.
    """

    name: str
    sources: Mapping[str, float]
    folders: Mapping[str, float] = {}
    instructions: str = ""
    memory: str = ""
    told: tuple[str, ...] = ()


class NoteChange(Struct, frozen=True, kw_only=True):
    """What would be written: the text of a note before, none where it is new, and after, and the difference.

    ``diff`` is a unified diff for people, in which nothing is left out. What ``remembers`` is no note of the vault but
    a file of the memory, by its whole path.
    """

    path: str
    before: str | None
    after: str
    diff: str
    remembers: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return self.before == self.after


class FactKind(StrEnum):
    """Who a remembered line is from: the user, a model that noted it, or a conversation that it tells of."""

    SAVED = "saved"
    NOTED = "noted"
    RECENT = "recent"


class Fact(Struct, frozen=True, kw_only=True):
    """A line of the memory. Its ``id`` is made of its text; ``chat`` is the key of the conversation it tells of."""

    id: str
    kind: FactKind
    text: str
    chat: str = ""


class CodeForm(StrEnum):
    """How a file stands in a selection of code."""

    FULL = "full"
    SKELETON = "skeleton"
    NAME = "name"


class CodeFile(Struct, frozen=True, kw_only=True):
    """A file of a selection: what is shown of it, what it scored, and by which parts."""

    path: str
    form: CodeForm
    text: str
    tokens: int
    score: float
    parts: Mapping[str, float] = {}


class CodeSelection(Struct, frozen=True, kw_only=True):
    """Files of a repository, chosen for a question, the best first; ``tokens`` are those of its rendered ``text``.

    ``overview`` is the text of the artifact that stands for the whole: what was chosen, skeletons and names; files in
    full stand beside it. ``left_out`` are paths with why; a path that ends in a slash is a folder. ``told`` is what is
    to be said besides.
    """

    root: str
    question: str
    budget: int
    tokens: int
    text: str
    overview: str
    files: tuple[CodeFile, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    told: tuple[str, ...] = ()


class DigestLine(Struct, frozen=True, kw_only=True):
    """What was decided in a stage, as it was approved for the nth time; superseded once that was gone back behind."""

    stage: str
    label: str
    decision: str
    attempt: int
    superseded: bool = False


class StageProgress(Struct, frozen=True, kw_only=True):
    """A stage: its status, none before it was come to; the attempt at it; what was decided; the messages of its range.

    A stage has a range once it is approved. ``data`` is what was written down for it, ``missing`` what it lacks.
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


class WorkflowProgress(Struct, frozen=True, kw_only=True):
    """Where work stands: ``current`` is none once all stages are approved, and ``status`` is ``approved`` then.

    ``references`` and ``citations`` are those of the stages that are approved or worked on.
    """

    workflow: str
    title: str
    current: str | None
    status: str
    stages: tuple[StageProgress, ...]
    digest: tuple[DigestLine, ...]
    references: int = 0
    citations: int = 0

    @property
    def number(self) -> int:
        """Which stage is worked on, from 1; the last once all are approved."""
        return next((at for at, one in enumerate(self.stages, start=1) if one.id == self.current), len(self.stages))


class Rule(Struct, frozen=True, kw_only=True):
    """A standing wish of the user: its words, the message it was said in or added with, and who found or added it.

    ``message`` is empty while it waits for the next one, ``turn`` is the number of that turn, and ``by`` is ``found``
    for what was typed in a message and ``user`` for what was added by hand.
    """

    id: str
    text: str
    message: str
    turn: int
    by: str
