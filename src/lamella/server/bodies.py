"""Descriptions of all response bodies, for OpenAPI; ``schemas`` builds the bodies themselves.

``JsonBody`` is the base of all bodies and allows fields that this version of the description does not know.
``response_docs`` attaches a body to a route.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

ResponseDocs = dict[int | str, dict[str, Any]]
# US dollars as text, so that no digit is lost; null if the price is unknown.
Money = Annotated[str | None, Field(description="US dollars in plain digits.", examples=["0.0007"])]
Moment = Annotated[str, Field(description="RFC 3339, UTC.", examples=["2026-11-15T10:00:00Z"])]
Hash = Annotated[str, Field(examples=["sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"])]
Count = Annotated[int, Field(ge=0)]


class JsonBody(BaseModel):
    """Base of all bodies; it allows fields that this version of the description does not know."""

    model_config = ConfigDict(extra="allow")


class VersionedBody(JsonBody):
    """A body with the version of its format."""

    lamella: Literal[1]


class ConversationBody(VersionedBody):
    """A body about a conversation, with its key."""

    conversation: str = Field(description="The key, which nobody chooses and which is never used again.")


class NamedConversationBody(ConversationBody):
    """A body about a conversation, with its key and its name."""

    name: str


def response_docs(body: type[BaseModel], status: int = 200, **more: Any) -> ResponseDocs:  # noqa: ANN401 - any field of OpenAPI
    """Return the OpenAPI entry for a route that responds with a body."""
    return {status: {"model": body, **more}}


# Runners, tools, models, settings, trusted locations, workflows and health checks.


class HealthJson(JsonBody):
    """The state of the process: whether it answers, or accepts requests."""

    status: Literal["ok", "ready", "stopping"]


class RunnerJson(JsonBody):
    """A runner: a way to answer a question."""

    name: str
    does: str
    usual: bool


class RunnerListJson(VersionedBody):
    """The available runners."""

    runners: list[RunnerJson]


class ToolJson(JsonBody):
    """A tool, with the schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


class ToolListJson(VersionedBody):
    """Tools that models may call."""

    tools: list[ToolJson]


class ModelJson(JsonBody):
    """An available model, with the fields of the OpenAI and Anthropic APIs."""

    id: str
    object: Literal["model"]
    type: Literal["model"]
    display_name: str
    created: int
    created_at: str
    owned_by: str
    usual: bool


class ModelListJson(VersionedBody):
    """Models that every caller may name."""

    object: Literal["list"]
    data: list[ModelJson]
    has_more: bool
    first_id: str | None
    last_id: str | None


class ResolvedSettingJson(JsonBody):
    """A setting and its origin."""

    value: JsonValue
    origin: str = Field(alias="from")


class ConversationSettingsJson(ConversationBody):
    """A conversation's own settings, and all effective ones."""

    settings: dict[str, JsonValue]
    in_force: dict[str, ResolvedSettingJson]


class ServerSettingsJson(JsonBody):
    """Every setting of the server, and the files that were read."""

    settings: dict[str, ResolvedSettingJson]
    files: dict[str, str]


class TrustJson(VersionedBody):
    """An allowed location; ``new`` if it was not allowed before."""

    field: str
    place: str
    new: bool


class TrustedPlaceJson(JsonBody):
    """An allowed location, and the day it was allowed."""

    field: str
    place: str
    since: str


class TrustListJson(VersionedBody):
    """The allowed locations."""

    trusted: list[TrustedPlaceJson]


class StageSpecJson(JsonBody):
    """A stage of a workflow."""

    id: str
    label: str
    phase: str
    required: list[str]
    search: bool


class WorkflowJson(JsonBody):
    """A workflow; if it is ``broken``, only its name is known."""

    name: str
    title: str
    broken: bool
    stages: list[StageSpecJson]


class WorkflowListJson(VersionedBody):
    """Workflows by name."""

    workflows: list[WorkflowJson]


class StageJson(StageSpecJson):
    """The progress of a stage."""

    status: str | None
    attempt: Count
    digest: str | None
    messages: list[str]
    missing: list[str]


class DigestLineJson(JsonBody):
    """The decision of a stage."""

    stage: str
    label: str
    decision: str
    attempt: Count
    superseded: bool


class ProgressJson(NamedConversationBody):
    """The progress of a workflow."""

    workflow: str
    title: str
    current: str | None
    status: str
    stages: list[StageJson]
    digest: list[DigestLineJson]
    references: Count
    citations: Count


class StageDataJson(ProgressJson):
    """The progress of a workflow, with the recorded data of each stage."""

    data: dict[str, dict[str, JsonValue]]


class WorkJson(NamedConversationBody):
    """The work as markdown."""

    text: str
    file: str | None


# Compactions, planned, applied or undone, and recall.


class TokenCountsJson(JsonBody):
    """The token counts of a request by layer, and its limit."""

    total: Count
    by_layer: dict[str, int]
    limit: int | None


class StepJson(JsonBody):
    """A step that removed something."""

    name: str
    removed: list[str]
    tokens_before: Count
    tokens_after: Count


class SkippedStepJson(JsonBody):
    """A step that was skipped, and why."""

    name: str
    why: str


class CertificateCountsJson(JsonBody):
    """The number of texts still in the prompt, recallable, and gone."""

    stand: Count
    recallable: Count
    gone: Count


class CertificateJson(JsonBody):
    """Counts for the exact texts and the user rules in the messages that a compaction changed."""

    words: CertificateCountsJson
    rules: CertificateCountsJson


class ReceiptJson(JsonBody):
    """The receipt of a compaction: what it removed, step by step."""

    id: str
    parent: str | None
    steps: list[StepJson]
    skipped: list[SkippedStepJson]
    tokens_before: Count
    tokens_after: Count
    target: int
    automatic: bool
    certificate: CertificateJson | None


class PlannedCountsJson(JsonBody):
    """The token counts of the next request without and with a compaction."""

    before: TokenCountsJson
    after: TokenCountsJson | None


class CostEstimateJson(JsonBody):
    """The cost of a compaction now, and its later savings."""

    moved: int
    cost_now: Money
    saved_per_turn: Money


class PlanJson(JsonBody):
    """A compaction plan, and whether it was applied; the receipt is null if there is nothing to remove."""

    conversation: str
    committed: bool
    receipt: ReceiptJson | None
    tokens: PlannedCountsJson
    outlook: CostEstimateJson | None
    warnings: list[str]


class UndoResultJson(JsonBody):
    """The compactions that were undone, by receipt, oldest first."""

    conversation: str
    undone: list[str]


class ReceiptListJson(ConversationBody):
    """The compactions in force, oldest first."""

    receipts: list[ReceiptJson]


class RecallHitJson(JsonBody):
    """A message or an attachment in its original text."""

    place: str
    at: Moment | None = Field(description="When it was said.")
    role: str
    id: str
    message: str | None
    title: str
    score: float
    excerpt: str
    text: str


class RecallJson(JsonBody):
    """Texts that left the prompt and match the query, best first."""

    conversation: str
    query: str
    found: list[RecallHitJson]


# The context library, pending commands, expired caches, notes and the memory.


class ArtifactJson(JsonBody):
    """An attached artifact, with its current form."""

    id: str
    kind: str
    title: str
    form: str
    tokens: Count
    in_working_set: bool
    cached: bool | None
    age_turns: Count
    saves: int
    waits: bool
    policy: str | None
    via: str | None
    left_out: list[str]


class PendingArtifactJson(JsonBody):
    """An artifact that is attached with the next turn."""

    id: str
    kind: str
    title: str
    form: str
    tokens: int | None


class PendingCommandsJson(JsonBody):
    """The pending commands for the next turn."""

    attach: list[PendingArtifactJson]
    detach: list[str]
    drop: list[str]
    pin: list[str]
    unpin: list[str]
    rules: list[str]
    ended_rules: list[str]


class KeepAliveJson(JsonBody):
    """The cost and the time of a keep-alive: sending the last request again before the cache expires."""

    due_at: Moment
    tokens: Count
    cost: Money
    chance: float


class ExpiredCacheJson(JsonBody):
    """A cache that has expired or soon will: the cost of the next message as it is, and after a fold."""

    lapsed: bool
    lapses_at: Moment
    tokens: Count
    cost: Money
    folded_tokens: Count
    folded_cost: Money
    folds: bool
    keep: KeepAliveJson | None


class LibraryJson(ConversationBody):
    """All attached artifacts, the pending commands, and the expired cache; null while the cache is valid."""

    artifacts: list[ArtifactJson]
    waiting: PendingCommandsJson
    cold: ExpiredCacheJson | None


class KeepAliveResultJson(ConversationBody):
    """The result of a keep-alive: whether the last request was sent again, and the expired cache or null."""

    sent: bool
    cold: ExpiredCacheJson | None


class NextRequestJson(JsonBody):
    """Tokens and cost of the next request, and the difference to before."""

    tokens: Count
    limit: int | None
    more_tokens: int
    cost: Money
    more_cost: Money


class CommandsJson(ConversationBody):
    """The pending commands after a command, and their effect on the next request."""

    waiting: PendingCommandsJson
    said: list[str]
    next: NextRequestJson


class ConversationMemoryJson(ConversationBody):
    """The memory in the prompt of a conversation; empty if there is none."""

    text: str


class NoteNamesJson(VersionedBody):
    """Paths of the vault that contain the word."""

    query: str
    names: list[str]


class NoteHitJson(JsonBody):
    """A passage of the vault."""

    path: str
    heading: str
    text: str
    score: float
    why: str
    id: str
    title: str
    excerpt: str


class UnreadFileJson(JsonBody):
    """A file that could not be searched, and why."""

    path: str
    why: str


class NoteHitsJson(VersionedBody):
    """Passages of the vault, best first."""

    query: str
    hits: list[NoteHitJson]
    unread: list[UnreadFileJson]


class FactJson(JsonBody):
    """A line of the memory."""

    id: str
    kind: str
    text: str
    chat: str | None


class NumberedFactJson(FactJson):
    """A line of the memory, with the number that requests may use for it."""

    number: int


class MemoryJson(VersionedBody):
    """All lines of the memory."""

    folder: str
    facts: list[NumberedFactJson]


# Prompts: envelopes by layer, token counts, prefix changes and costs.


class SegmentJson(JsonBody):
    """An artifact or a message within a layer."""

    id: str
    kind: str
    form: str
    place: str | None = Field(description="`system`, or `message:N`; null for what is listed and not stated.")
    hash: Hash
    tokens: Count
    recoverable: bool


class LayerJson(JsonBody):
    """One of the five layers."""

    id: Literal["L1_SYSTEM", "L2_PREVIOUS", "L3_TURN", "L4_STRIP", "L5_USER"]
    text: str
    hash: Hash
    tokens: Count
    segments: list[SegmentJson]


class EnvelopeJson(JsonBody):
    """A request by layers, from the most stable to the most volatile."""

    version: int
    conversation_id: str
    message_id: str
    epoch: Count
    layers: list[LayerJson] = Field(min_length=5, max_length=5)
    prefix_hash: Hash
    hash: Hash
    dropped: list[str]
    warnings: list[str]


class PromptMessageJson(JsonBody):
    """A message as it is sent: a text, or parts if it has images."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[dict[str, object]] | None


class PrefixJson(JsonBody):
    """The change of the prefix since the previous request, and how many tokens both have in common."""

    cause: str
    segment: str | None
    common_tokens: Count


class CacheUseJson(JsonBody):
    """Tokens that the cache is expected to serve, tokens that it is expected to store, and the rest."""

    read: Count
    write: Count
    uncached: Count


class CostJson(JsonBody):
    """The expected cost of a request, and its cost in the naive layout.

    The naive layout repeats every attachment in each message.
    """

    currency: Literal["USD"]
    amount: Money
    naive: Money


class LayoutPlanJson(JsonBody):
    """The layout plan that was chosen by cost, and the reason."""

    why: str
    keep: int | None
    within: int
    whole: list[str]
    marks: list[int]
    lasting: int | None
    served: int | None
    expected: float | None
    next_best: float | None
    order: list[str] | None = None


class TurnEstimateJson(JsonBody):
    """The token counts of a turn, its prefix change, and its expected cost."""

    message: str
    epoch: Count
    hash: Hash
    prefix_hash: Hash
    turn: int
    tokens: TokenCountsJson
    prefix: PrefixJson
    cache: CacheUseJson | None
    cost: CostJson | None
    compaction: ReceiptJson | None
    warnings: list[str]


class TurnPreviewJson(TurnEstimateJson, ConversationBody):
    """A preview of a turn with its tokens and cost; with `whole` also its envelope and messages."""


class RequestFingerprintJson(JsonBody):
    """The fingerprint of a turn, recorded when it was sent."""

    renderer: int
    hashes: dict[str, str | None]
    segments: dict[str, int]
    dedup_ratio: float
    compacted_share: float
    unparsed: int


class SentTurnJson(ConversationBody):
    """A turn as it was sent, rebuilt from the log."""

    turn: int
    envelope: EnvelopeJson
    messages: list[PromptMessageJson]
    tokens: TokenCountsJson
    prefix: PrefixJson
    cache: CacheUseJson | None
    cost: CostJson | None
    compaction: ReceiptJson | None
    sent: RequestFingerprintJson | None
    same_bytes: bool | None = Field(description="Whether its hash is that of what was sent; null of older turns.")


class RequestJson(JsonBody):
    """The request body that a provider's SDK sends, with the fields of that provider's API."""


class BudgetJson(ConversationBody):
    """The used and free tokens of the window."""

    tokens: TokenCountsJson
    left: int | None


class WorkingSetJson(ConversationBody):
    """The ids of the artifacts that the model can read in the next turn."""

    working_set: list[str]


class PlacedArtifactJson(JsonBody):
    """The position and form of an artifact in the prompt."""

    layer: str | None
    form: str
    place: str | None
    tokens: Count


class SuggestedActionJson(JsonBody):
    """A suggested action and its object."""

    do: str
    what: str


class PromptExplanationJson(ConversationBody):
    """The reason why an artifact is in the next prompt or not, and how to include it."""

    id: str
    kind: str
    title: str
    in_prompt: bool
    why: str
    turns: list[int]
    segments: list[PlacedArtifactJson]
    brings_in: list[SuggestedActionJson]


# The cache ledger: turns, model calls and totals.


class VerdictJson(JsonBody):
    """The verdict on a cache miss or hit, and whether Lamella or the provider caused it."""

    outcome: str
    cause: str
    segment: str | None
    ours: bool
    says: str


class UsageJson(JsonBody):
    """Token counts by price class, as the provider reported them; null if it did not."""

    plain: int | None = None
    read: int | None = None
    write: int | None = None
    write_long: int | None = None
    output: int | None = None
    reasoning: int | None = None
    fault: str | None = None


class CallTimingJson(JsonBody):
    """The duration of a call: to build the request, until the first token, and in total."""

    build: float | None
    first: float | None
    total: float | None


class CallCostJson(CostJson):
    """The expected cost of a call, and its cost with a perfect cache."""

    limit: Money


class DiagnosisJson(JsonBody):
    """The provider's own diagnosis of a cache miss."""

    verdict: str
    reason: str | None
    missed: int | None


class ModelCallJson(JsonBody):
    """One call to a model; unknown values are null."""

    purpose: str
    model: str | None
    verdict: VerdictJson
    predicted: CacheUseJson | None
    reported: UsageJson
    by_layer: dict[str, int]
    billed: Money
    cost: CallCostJson | None
    seconds: CallTimingJson
    stop: str
    id: str | None
    diagnosis: DiagnosisJson | None
    retries: Count


class LedgerTurnJson(JsonBody):
    """A turn with its model calls."""

    turn: int
    message: str
    at: Moment
    standing: str = Field(description="`waiting`, `called`, `no_call` or `unanswered`.")
    sent: RequestFingerprintJson | None
    placement: LayoutPlanJson | None
    calls: list[ModelCallJson]


class LedgerTotalsJson(JsonBody):
    """Totals over all calls."""

    turns: Count
    calls: Count
    asides: Count
    predicted: int | None
    read: int | None
    write: int | None
    plain: int | None
    output: int | None
    cache_read_share: float | None
    billed: Money
    cost: Money
    naive_cost: Money
    limit_cost: Money
    unpriced_calls: Count
    seconds: float | None
    retries: Count


class ProfileContradictionJson(JsonBody):
    """A contradiction, and the turns that show it."""

    turns: list[int]
    says: str


class ProfileMismatchJson(JsonBody):
    """A model whose profile is wrong, and lines for a file of model facts."""

    model: str
    seen: list[ProfileContradictionJson]
    facts: dict[str, int | bool]
    model_facts: str


class LedgerJson(ConversationBody):
    """Every turn with its calls, and the totals."""

    turns: list[LedgerTurnJson]
    totals: LedgerTotalsJson
    unexplained: list[int]
    doubts: list[ProfileMismatchJson]


# Answers, as a whole and event by event.


class ToolCallJson(JsonBody):
    """A tool call of the model, with the arguments as the model wrote them."""

    id: str
    name: str
    arguments: str


class AnswerJson(ConversationBody):
    """A finished turn: its answer, tool calls that the client must run, and its last model call."""

    message: str = Field(description="The id of the question.")
    reply: str | None = Field(description="The id of the answer; null while calls wait for the client.")
    answer: str | None
    calls: list[ToolCallJson]
    stopped: bool
    warnings: list[str]
    call: ModelCallJson | None


class EnvelopeEventJson(TurnEstimateJson):
    """The question is stored; these are its token counts and its expected cost."""


class DeltaEventJson(JsonBody):
    """More text of the answer, or of the model's reasoning."""

    text: str


class CallOutputJson(JsonBody):
    """The result of a tool call."""

    call: str
    output: str
    failed: bool


class ToolEventJson(JsonBody):
    """A tool call of the model, or its result."""

    call: ToolCallJson | None
    output: CallOutputJson | None


class RetryEventJson(JsonBody):
    """A retry: why the request is sent again, and after how many seconds."""

    said: str
    wait: float | None


class CompactionEventJson(JsonBody):
    """Another compaction was necessary."""

    said: str
    receipt: ReceiptJson | None


class NoteEventJson(JsonBody):
    """A message for the user."""

    said: str


class CacheExpiredEventJson(JsonBody):
    """The cache expired before the message: what that costs as it is, and after a fold."""

    cold: ExpiredCacheJson


class DoneEventJson(JsonBody):
    """The answer is stored."""

    calls: list[ToolCallJson]
    conversation: str
    message: str | None
    reply: str | None
    stopped: bool


class ErrorDetailJson(JsonBody):
    """An error: what happened, and what to do next."""

    code: str
    message: str
    hint: str


class ErrorEventJson(JsonBody):
    """An error, which ends the stream."""

    error: ErrorDetailJson


# The body in the data of each event of a stream.
EVENTS: dict[str, type[BaseModel]] = {
    "cold": CacheExpiredEventJson,
    "envelope": EnvelopeEventJson,
    "delta": DeltaEventJson,
    "reasoning": DeltaEventJson,
    "tool": ToolEventJson,
    "usage": UsageJson,
    "retry": RetryEventJson,
    "compaction": CompactionEventJson,
    "note": NoteEventJson,
    "done": DoneEventJson,
    "error": ErrorEventJson,
}


# Conversations: in lists, as a whole, and results of commands on one.


class ConversationSummaryJson(JsonBody):
    """A conversation in a list."""

    conversation: str
    name: str
    title: str
    created: Moment
    updated: Moment
    events: Count


class ConversationListJson(VersionedBody):
    """Conversations, the last changed first; ``total`` also counts those that are not shown."""

    total: Count
    chats: list[ConversationSummaryJson]


class CreatedConversationJson(NamedConversationBody):
    """A conversation that was created or renamed."""

    title: str


class ErasedConversationJson(NamedConversationBody):
    """An erased conversation, of which only a tombstone is left."""

    erased: Literal[True]


class SwitchedConversationJson(NamedConversationBody):
    """A conversation that continues from another message, its head."""

    head: str


class StoppedConversationJson(SwitchedConversationJson):
    """A conversation without a running turn; ``stopped`` says whether one was stopped."""

    stopped: bool


class ImportedConversationJson(NamedConversationBody):
    """The result of an import."""

    outcome: str
    warnings: list[str]


class MessageHitJson(JsonBody):
    """A message that contains the words."""

    conversation: str
    name: str
    title: str
    message: str
    role: str
    excerpt: str


class MessageHitListJson(VersionedBody):
    """Messages that contain the words, and the error of a conversation that could not be searched."""

    hits: list[MessageHitJson]
    error: ErrorDetailJson | None = None


class ReplyJson(JsonBody):
    """A reply."""

    message: str
    at: Moment
    text: str


class ToolCallRecordJson(JsonBody):
    """A tool call and its output, which is null until the result is there."""

    name: str
    arguments: str
    output: str | None
    failed: bool


class ToolRoundJson(JsonBody):
    """A tool round: the model's text and tool calls before its final answer."""

    text: str
    calls: list[ToolCallRecordJson]


class CitedSourceJson(JsonBody):
    """The source that a number in a reply cites."""

    number: int
    id: str
    title: str
    path: str
    place: str
    text: str | None


class TurnJson(JsonBody):
    """A question, the ids of its attachments, and its reply or null."""

    message: str
    at: Moment
    text: str
    attached: list[str]
    reply: ReplyJson | None


class TurnWithRoundsJson(TurnJson):
    """A turn with its tool rounds and sources."""

    rounds: list[ToolRoundJson]
    sources: list[CitedSourceJson]


class BranchJson(JsonBody):
    """A branch by its last message."""

    branch: str
    active: bool
    turns: Count
    last: TurnJson | None


class CompactionMarkerJson(JsonBody):
    """The position of a compaction, or of an undo, in a conversation."""

    message: str
    receipt: ReceiptJson | None
    undone: bool
    voided: list[str]


class RunInProgressJson(JsonBody):
    """The running turn; ``run`` is null if it runs in another process."""

    message: str | None
    run: str | None


class ConversationJson(NamedConversationBody):
    """A conversation: the turns of a branch, all branches, and the running turn."""

    title: str
    head: str
    branches: list[BranchJson]
    running: RunInProgressJson | None
    turns: list[TurnWithRoundsJson]
    compactions: list[CompactionMarkerJson]


class TranscriptJson(JsonBody):
    """A transcript in the format of docs/reference/formats/transcript.md."""

    lamella: Literal[1]
    conversation: str
    turns: list[dict[str, object]]


class RuleJson(JsonBody):
    """A user rule and the message it came with, which is null until that message is sent."""

    id: str
    text: str
    message: str | None
    turn: int
    by: Literal["found", "user"]


class RuleListJson(ConversationBody):
    """The active user rules, newest last."""

    rules: list[RuleJson]


class AddedRuleJson(RuleListJson):
    """The active user rules, and the one that was added."""

    added: RuleJson


class RemovedRuleJson(RuleListJson):
    """The remaining user rules, and the one that was removed."""

    removed: RuleJson


# Code answers and selections, with the field names of existing clients and Lamella's own.


class HistoryMessageJson(JsonBody):
    """A message in the format of the client's history."""

    role: str
    content: str


class IgnoredFieldsJson(VersionedBody):
    """The request fields that were ignored; `ignoredBecause` says why, if there are any."""

    ignored: list[str]


class SolutionJson(IgnoredFieldsJson):
    """An answer with the whole history and the new state."""

    data: str
    tokensUsed: Count  # noqa: N815 - the field name of existing clients
    chatHistory: list[HistoryMessageJson]  # noqa: N815 - the field name of existing clients
    chatState: dict[str, JsonValue] = Field(description="Which instructions stand in the prompt.")  # noqa: N815
    conversation: str | None
    model: str
    warnings: list[str]


class ChosenFileJson(JsonBody):
    """A selected file with its content."""

    path: str
    content: str
    form: str
    tokens: Count


class RankedFileJson(JsonBody):
    """A selected file, and how well it matches the question."""

    path: str
    form: str
    tokens: Count
    score: float
    text: str


class OmittedFileJson(JsonBody):
    """A file that was left out, and why."""

    path: str
    reason: str


class SelectionJson(IgnoredFieldsJson):
    """The files that were selected within the budget."""

    data: list[ChosenFileJson]
    tokensUsed: Count  # noqa: N815 - the field name of existing clients
    root: str
    question: str
    budget: Count
    tokens: Count
    files: list[RankedFileJson]
    left_out: list[OmittedFileJson]
    text: str
    told: list[str]
