"""Turns as values: their settings, layout plan, fingerprint, reply and message ids.

``Turn`` has everything about one turn: the user's input, the tool rounds, the reply, and the compactions before it.
``TurnSettings`` are the settings that the bytes of its request depend on; they are stored with the turn.
``LayoutPlan`` says where each part of its prompt goes. ``TurnBatch`` has consecutive plain turns in one value.
``question_id`` and ``message_id`` derive ids from content and ancestry, so that the same conversation has the same ids
everywhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct
from msgspec.json import encode

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.log.events.call import StoredModelCall
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.messages import ToolCall, ToolOutput, ToolRound
from lamella.core.text.content import canonical_json, encode_text, hash_text, short_hash
from lamella.core.values import replace


class LayoutMode(StrEnum):
    """The position of the context library in the request."""

    LIBRARY = "library"
    IN_PLACE = "in_place"
    AUTO = "auto"

    @property
    def moves_attachments_to_system_each_turn(self) -> bool:
        """Whether each turn moves the earlier attachments into the system message."""
        return self in _FOLDS_EACH_TURN


_FOLDS_EACH_TURN = frozenset({LayoutMode.LIBRARY})


class CarryForwardMode(StrEnum):
    """The amount of an artifact's text that later turns contain."""

    FULL = "full"
    PREVIEW = "preview"


class HistoryMode(StrEnum):
    """The part of the history that L4 shows: everything, the last turns, or the last turns after a short summary."""

    FULL = "full"
    WINDOW = "window"
    STRIP = "strip"


class ReasoningEffort(StrEnum):
    """The amount of reasoning before an answer; the provider defines what each level means."""

    DEFAULT = "default"
    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class AttachmentMode(StrEnum):
    """The lifetime of an attachment: its turn, or until it is detached."""

    TURN = "turn"
    STICKY = "sticky"


class BreakpointMode(StrEnum):
    """The side that sets the cache breakpoints that a provider needs: Lamella, or the provider after the last block."""

    EXPLICIT = "explicit"
    AUTOMATIC = "automatic"


class ImageNoteMode(StrEnum):
    """The part of a note with embedded images that later turns contain: its text, or a handle."""

    TEXT = "text"
    HANDLE = "handle"


class SecretPolicy(StrEnum):
    """The reaction to text that looks like a secret before it leaves this process.

    It has no influence on the bytes of a request.
    """

    WARN = "warn"
    REFUSE = "refuse"
    OFF = "off"


# The setting used to be a switch. Events, transcripts and settings of that time have it as true or false.
IMAGE_NOTE_MODE_BY_BOOL = {True: ImageNoteMode.TEXT, False: ImageNoteMode.HANDLE}


class TurnSettings(Struct, frozen=True, kw_only=True, gc=False):
    """The settings that the bytes of one turn's request depend on.

    Defaults reproduce turns that were stored before a setting existed.

    - ``history_turns``: how many turns the history mode shows; None for the default of the mode.
    - ``image_notes``: what the library contains of notes that embed images. Older turns leave a handle.
    - ``temperature``: None for the provider's default, as with the default ``reasoning_effort``.
    - ``linger``: for how many turns an artifact stays in the working set after it is no longer attached.
    - ``runner``: the answer strategy.
    - ``tool_output``: how many characters of a tool output are shown. None, as in older turns, shows all.
    - ``cues``: additional phrases that mark a sentence of a hidden turn as a user rule.
    - ``hidden_rules``: whether the rules found in hidden turns are shown in a block, as in older turns.
    - ``hidden_excerpts``: whether the digest shows the directives of hidden turns, as in older turns.
    - ``names_recall``: whether placeholders tell the model to use recall, as in older turns. Today they only name what
      was left out, and the description of the recall tool says how to get it, so that no request without the tool
      mentions it.
    """

    layout: LayoutMode = LayoutMode.LIBRARY
    carry_forward: CarryForwardMode = CarryForwardMode.FULL
    history: HistoryMode = HistoryMode.FULL
    history_turns: int | None = None
    image_notes: ImageNoteMode = ImageNoteMode.HANDLE
    temperature: float | None = None
    reasoning_effort: ReasoningEffort = ReasoningEffort.DEFAULT
    attachments: AttachmentMode = AttachmentMode.TURN
    linger: int = 2
    cache_marks: BreakpointMode = BreakpointMode.EXPLICIT
    runner: str = "chat"
    tool_output: int | None = None
    cues: tuple[str, ...] = ()
    hidden_rules: bool = True
    hidden_excerpts: bool = True
    names_recall: bool = True


class HistoryChangeReason(StrEnum):
    """The reason why the history before a turn differs from the one sent last."""

    HISTORY_EDITED = "history_edited"
    BRANCH = "branch"


# Layout plans: a planner makes one, and the prompt follows it.


class ArtifactForm(StrEnum):
    """The amount of an artifact that the request contains."""

    FULL = "full"
    PREVIEW = "preview"
    HANDLE = "handle"
    REFERENCE = "reference"
    UPDATE = "update"
    SUMMARY = "summary"


class CacheStateAfterPause(StrEnum):
    """The state of the cache after the pause before a request: expired or not, and after how long.

    ``short`` is a pause of up to an hour, ``long`` a longer one. ``kept`` means that the cache would have expired, but
    a keep-alive request prevented it.
    """

    UNKNOWN = "unknown"
    NONE = "none"
    SHORT = "short"
    LONG = "long"
    KEPT_ALIVE = "kept"


class LayoutPlan(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
    rename={
        "kept_alive_at": "kept",
        "keep_messages": "keep",
        "breakpoints": "marks",
        "long_lifetime_until": "lasting",
        "cached_message": "served",
        "expiry": "lapse",
    },
):
    """Which part of the previous prompt stays as sent, and how the rest is laid out after it.

    - ``keep_messages``: how many messages stay; None for all. At 0 everything is folded into library and history. From
      1 on, the system message and every turn that begins before that message stay as sent. Later turns keep only
      their question and reply texts, and their attachments move into the message that is asked now. A request whose
      system prompt, tools or model change keeps nothing.
    - ``within``: how many pieces of the first message after those stay, too.
    - ``order``: the order in which the new message shows the moved texts, if it is not the order of first appearance.
    - ``forms``: artifacts that are shown in another form than the turn settings ask for. In a plan chosen by cost, it
      also lists the changed artifacts that are shown in full. In the other layouts, it lists outlined artifacts that
      are attached again by a turn that folds, and get their full text back.
    - ``promotes``: attachments go into the library right after their turn, not only at the end of an epoch.
    - ``priced``: the plan was chosen by cost. The system message then has no library, and questions list the
      attachments.
    - ``why``: an explanation for the user.

    The following fields are set only in plans chosen by cost. They are stored with the turn, because they cannot be
    computed again later.

    - ``breakpoints``: messages with a cache breakpoint, besides the last one.
    - ``long_lifetime_until``: breakpoints up to this message ask for the longer cache lifetime.
    - ``cached_message``: the index of the last message that the cache is expected to serve.
    - ``at``: when the plan was made.
    - ``expiry``: whether the cache expired in the pause before.
    - ``kept_alive_at``: when the previous request was last sent again as a keep-alive.
    - ``cost``, ``other``: the expected cost of this plan and of the next best one, in tokens of uncached input.
    """

    keep_messages: int | None = None
    forms: Mapping[str, ArtifactForm] = {}
    promotes: bool = False
    priced: bool = False
    why: str = ""
    within: int = 0
    order: tuple[str, ...] = ()
    breakpoints: tuple[int, ...] = ()
    long_lifetime_until: int | None = None
    cached_message: int | None = None
    at: datetime | None = None
    expiry: CacheStateAfterPause = CacheStateAfterPause.UNKNOWN
    kept_alive_at: datetime | None = None
    cost: float | None = None
    other: float | None = None


# Fingerprints: hashes and counts of a request as it was first sent, without any text.


class RequestFingerprint(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Hashes of L1, L2, the system message and the whole request, the renderer version, and counts.

    - ``segments``: the number of segments of each layer, in order.
    - ``attached``, ``referred``: bytes attached to the turn, and how many of them are replaced by a reference.
    - ``context``, ``compacted``: earlier messages and artifacts, and how many of them are shortened or left out.
    - ``unparsed``: the number of blocks that could not be parsed.
    """

    renderer: int
    system: str
    library: str
    prefix: str
    whole: str
    segments: tuple[int, ...] = ()
    attached: int = 0
    referred: int = 0
    context: int = 0
    compacted: int = 0
    unparsed: int = 0

    @property
    def hashes(self) -> tuple[str, str, str, str]:
        return self.system, self.library, self.prefix, self.whole

    @property
    def dedup_ratio(self) -> float:
        """The share of the attached bytes that is replaced by references."""
        return self.referred / self.attached if self.attached else 0.0

    @property
    def compacted_share(self) -> float:
        """The share of earlier messages and artifacts that is no longer shown in full."""
        return self.compacted / self.context if self.context else 0.0


# Replies and their citations.


class StoredCitation(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The target of a citation number in a reply: an artifact of the question, by its id.

    ``place`` is the position of the passage in its file. ``span`` is the range in the attached text, if that text has
    more than the passage.
    """

    id: str
    place: str = ""
    span: tuple[int, int] | None = None


class ReplyEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="reply"):
    """A reply. The log moves the tool rounds of its question, which were recorded before, into it.

    A reply with ``aside`` ends a branch of its own: the conversation had continued elsewhere, and its active branch
    stays where it is. The first of the ``sources`` is ``[^1]`` in the text, and so on.
    ``rounds_hash`` is set, and part of the id, only if an earlier answer to the same question has the same text after
    other tool rounds: they are two messages, and what follows one of them must not get the rounds of the other.
    """

    id: str
    parent: str
    text: str
    calls: tuple[StoredModelCall, ...] = ()
    aside: bool = False
    sources: tuple[StoredCitation, ...] = ()
    rounds_hash: str = ""


# Turns.

SYSTEM_PART_NAMES: tuple[str, ...] = (
    "base", "guidelines", "instructions", "rules", "project", "workflow", "memory",
)  # fmt: skip
# The parts that callers may give; the rules are rendered from those that the user added.
GIVEN_SYSTEM_PART_NAMES: tuple[str, ...] = tuple([name for name in SYSTEM_PART_NAMES if name != "rules"])


class SystemParts(Struct, frozen=True, kw_only=True):
    """The parts of the system prompt (L1), in the order in which they are sent.

    - ``rules``: the rules that the user added, as ``render_user_rules`` writes them.
    - ``inlined``: the notes that templates included in the instructions.
    - ``typed_instructions``: the instructions before template expansion, so that they can be expanded again.
    - ``workflow_detail``: the stages whose data ``workflow`` shows in detail, separated by blanks.
    - ``workflow_brief``: the part ``workflow`` with no stage in detail.
    """

    base: str = ""
    guidelines: str = ""
    instructions: str = ""
    rules: str = ""
    project: str = ""
    workflow: str = ""
    memory: str = ""
    inlined: tuple[Artifact, ...] = ()
    typed_instructions: str = ""
    workflow_brief: str = ""
    workflow_detail: str = ""

    def typed_parts(self) -> dict[str, str]:
        """Return the parts as the user gave them, before template expansion."""
        typed = {**dict(self.non_empty_parts()), "instructions": self.typed_instructions}
        if self.workflow_detail:
            typed |= {"workflow_brief": self.workflow_brief, "workflow_detail": self.workflow_detail}
        return typed

    def with_brief_stages(self, stage_ids: Iterable[str]) -> "SystemParts":
        """Return the parts with brief stage data, if ``stage_ids`` include all stages that are shown in detail."""
        if not self.workflow_detail or not set(self.workflow_detail.split()).issubset(stage_ids):
            return self
        return replace(self, workflow=self.workflow_brief, workflow_brief="", workflow_detail="")

    def non_empty_parts(self) -> list[tuple[str, str]]:
        """Return the name and text of each part that is not empty."""
        return [(name, text) for name in SYSTEM_PART_NAMES if (text := getattr(self, name))]


class RuleChanges(NamedTuple):
    """User rules that were added or removed by hand.

    Each is a text with the number of the first turn that it was ``added`` or ``ended`` with. A removed rule that the
    user states again in a later turn becomes active again.
    """

    added: tuple[tuple[int, str], ...] = ()
    ended: tuple[tuple[int, str], ...] = ()


class Turn(Struct, frozen=True, kw_only=True, gc=False):
    """One turn: requested, stored, replayed or planned.

    In fields that carry over from earlier turns, None means unchanged.

    - ``text``: the question after template expansion; ``typed`` is the question before it.
    - ``id``: the id of the message, if it has one already.
    - ``drop``, ``detach``: artifacts to remove from the prompt, or from the working set, before anything is attached.
    - ``receipts``: the compactions before this turn that no earlier turn was sent with.
    - ``history_rewrite``: the history may differ from what was sent last, because of an edit or a change of branch.
    - ``prefix_unchanged``: the history is what was sent last, except for compactions.
    - ``names_images``: images that leave the question are named in it. Turns stored before there was such a line are
      sent again without it.
    - ``history_summary``: a model-written summary of the oldest turns that are not shown.
    - ``pinned``: ids of messages that no compaction removes from now on.
    - ``rules``: the rules added or removed by hand up to this turn.
    - ``rounds``: the tool rounds. Without a ``reply`` the turn still waits for one.
    - ``fingerprint``: the fingerprint of the request, once it was built.
    - ``sources``: the citations that the numbers in the reply refer to.
    - ``layout_plan``: the layout plan, if it was chosen by cost or gives outlined artifacts their text back. It is stored
      and never computed again.
    """

    text: str
    typed: str = ""
    id: str | None = None
    attached: tuple[Artifact, ...] = ()
    tool_results: tuple[Artifact, ...] = ()
    system: SystemParts | None = None
    tools: tuple[ToolDefinition, ...] | None = None
    model: str | None = None
    drop: tuple[str, ...] = ()
    detach: tuple[str, ...] = ()
    fold: bool = False
    pinned: tuple[str, ...] | None = None
    rules: RuleChanges | None = None
    turn_settings: TurnSettings = TurnSettings()
    history_summary: str | None = None
    history_rewrite: HistoryChangeReason | None = None
    prefix_unchanged: bool = False
    names_images: bool = False
    warnings: tuple[str, ...] = ()
    receipts: tuple[CompactionReceipt, ...] = ()
    rounds: tuple[ToolRound, ...] = ()
    reply: str | None = None
    reply_id: str | None = None
    fingerprint: RequestFingerprint | None = None
    sources: tuple[StoredCitation, ...] = ()
    layout_plan: LayoutPlan | None = None


class TurnBatch(NamedTuple):
    """Consecutive answered turns without tools or other changes, all with the same turn settings.

    ``message_ids`` and ``texts`` alternate: question, reply, question, reply. ``layout_plans`` are the layout plans of
    the turns, if they were chosen by cost; none of these plans changes anything that was sent. ``attached`` are the
    attachments by turn index. They are known from their turn on and attached for that turn only.
    """

    turn_settings: TurnSettings
    message_ids: tuple[str, ...]
    texts: tuple[str, ...]
    layout_plans: tuple[LayoutPlan, ...] = ()
    attached: Mapping[int, tuple[Artifact, ...]] = MappingProxyType({})

    def get_turn(self, index: int) -> Turn:
        """Return the turn with this index."""
        (asked, answered), (text, reply) = (
            self.message_ids[2 * index : 2 * index + 2],
            self.texts[2 * index : 2 * index + 2],
        )
        placed = self.layout_plans[index] if self.layout_plans else None
        return Turn(
            text=text,
            typed=text,
            id=asked,
            turn_settings=self.turn_settings,
            attached=self.attached.get(index, ()),
            reply=reply,
            reply_id=answered,
            layout_plan=placed,
        )

    def to_list(self) -> list[Turn]:
        """Return all turns."""
        return [self.get_turn(at) for at in range(len(self.message_ids) // 2)]

    def get_last_turn(self) -> Turn:
        """Return the last turn."""
        return self.get_turn(len(self.message_ids) // 2 - 1)

    def without_last(self) -> "TurnBatch | None":
        """Return the batch without its last turn, or None if that leaves nothing."""
        return self.get_range(0, -1)

    def without_first(self) -> "TurnBatch | None":
        """Return the batch without its first turn, or None if that leaves nothing."""
        return self.get_range(1, None)

    def get_range(self, first: int, end: int | None) -> "TurnBatch | None":
        """Return the turns from index ``first`` to before ``end`` as a batch, or None if there are none."""
        turns = range(len(self.message_ids) // 2)[first:end]
        within = slice(2 * turns.start, 2 * turns.stop)
        attached = {at - turns.start: brought for at, brought in self.attached.items() if at in turns}
        run = TurnBatch(
            self.turn_settings, self.message_ids[within], self.texts[within], self.layout_plans[first:end], attached
        )
        return run if turns else None


def expand_batches(parts: Iterable[Turn | TurnBatch]) -> list[Turn]:
    """Return all turns in order, with batches expanded."""
    return [turn for part in parts for turn in ((part,) if isinstance(part, Turn) else part.to_list())]


# Message ids.

_ID_DIGITS = 16


class MessageAuthor(StrEnum):
    """The author of a message in the log: the user, or the answering side.

    Messages of a request have a ``Role`` instead.
    """

    USER = "user"
    REPLY = "reply"


def question_id(conversation_key: str, parent: str, turn: Turn) -> str:
    """Return the id of the question of a turn, derived from its text and attachments.

    A turn that was sent before keeps its id, even if one of its attachments was erased since.
    """
    if turn.id is not None:
        return turn.id
    attached = [(artifact.id, artifact.hash) for artifact in (*turn.tool_results, *turn.attached)]
    return compute_message_id(
        conversation_key, parent=parent, role=MessageAuthor.USER, text=turn.text, attached=attached
    )


def compute_reply_id(conversation_key: str, *, parent: str, text: str, rounds_hash: str = "") -> str:
    """Return the id of a reply; ``rounds_hash`` is that of its event."""
    attached = [("rounds", rounds_hash)] if rounds_hash else ()
    return compute_message_id(conversation_key, parent=parent, role=MessageAuthor.REPLY, text=text, attached=attached)


def compute_message_id(
    conversation_key: str, *, parent: str, role: MessageAuthor, text: str, attached: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the id of a message.

    ``attached`` are the ids and hashes of its attachments. The id is part of no rendered text and no envelope hash.
    """
    parts = [conversation_key, parent, role.value, text, [list(pair) for pair in attached]]
    try:
        # For plain text these bytes equal the canonical JSON and take a tenth of the time. Stored ids depend on that.
        key = encode(parts)
    except UnicodeEncodeError:
        key = encode_text(canonical_json(parts))
    return sha256(key).hexdigest()[:_ID_DIGITS]


def round_result_id(question: str, *, position: tuple[int, int], call: ToolCall, output: ToolOutput) -> str:
    """Return the id of a tool result.

    ``position`` is the number of the round and of the result in it. It makes ids unique, even for two calls with the
    same arguments and output.
    """
    if output.id is not None:
        return output.id
    return tool_result_id(
        question, position=position, call=(call.name, call.arguments), output_hash=hash_text(output.output)
    )


def tool_result_id(question: str, *, position: tuple[int, int], call: tuple[str, str], output_hash: str) -> str:
    """Return the same id from the data of the log: name and arguments of the call, and hash of the output."""
    name, arguments = call
    return f"tool:{name}:{short_hash(canonical_json([question, list(position), arguments, output_hash]))}"
