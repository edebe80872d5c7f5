"""A turn as the user requests it, as it is built, and as the model answers it.

``TurnRequest`` is what the user asks for, before any attachment is read. ``BuiltTurn`` has the request, its token
counts, the prefix change and the cost, and a ``TurnLedger``, which is extended when the turn is answered.
``ModelAnswer`` is a reply with its timing, retries and citations.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from msgspec import Struct

from lamella.core.artifacts.model import Artifact, ToolDefinition, UnresolvedAttachment
from lamella.core.ledger.entry import LedgerEntry, PrefixChangeReport
from lamella.core.log.call import CacheUsage, CallTiming, TurnInputCost
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import SYSTEM_PART_NAMES, RuleChanges, StoredCitation, SystemParts, Turn
from lamella.core.messages import Message, ModelReply, ModelRequest
from lamella.core.prompt.envelope import Envelope, PromptTokenCounts, make_request
from lamella.core.values import replace
from lamella.errors import InvalidOperationError


class RecallOffer(Struct, frozen=True, kw_only=True, gc=False):
    """The recall tool, for a request from which something was left out.

    It is only added to tools in ``runnable``: if the caller runs the calls of another tool, it would get those of recall.
    """

    definition: ToolDefinition
    runnable: frozenset[str] = frozenset()

    def applies_to(self, tools: Sequence[ToolDefinition]) -> bool:
        """Return whether the tool can be added to these tools and is not one of them."""
        names = {tool.name for tool in tools}
        return self.definition.name not in names and names <= self.runnable


class TurnRequest(Struct, frozen=True, kw_only=True, gc=False):
    """One turn as the user requests it: typed text, attachments, and changes to the prompt.

    Attachments may be read already or still unresolved. ``None`` means "as before" wherever a field allows it.
    """

    text: str
    attach: tuple[Artifact | UnresolvedAttachment, ...] = ()
    # Tool results that are sent as text.
    results: tuple[Artifact, ...] = ()
    system: Mapping[str, str] = {}
    # Tools that the model may call from this turn on.
    tools: tuple[ToolDefinition, ...] | None = None
    # The recall tool, which is offered as well if something was left out of the request.
    recall_offer: RecallOffer | None = None
    model: str | None = None
    # ``drop`` removes artifacts from the prompt, ``detach`` only from the working set; both accept ids and image names.
    drop: tuple[str, ...] = ()
    detach: tuple[str, ...] = ()
    # Messages pinned before this turn; None takes those of the current state.
    previously_pinned: tuple[str, ...] | None = None
    # Known artifacts or messages to pin. Artifacts are attached once more and never shortened again. Messages are given
    # by id or as ``turn:3`` and ``reply:3``; no compaction removes them.
    pin: tuple[str, ...] = ()
    unpin: tuple[str, ...] = ()
    fold: bool = False
    # Artifacts attached by earlier commands, as they were read then.
    pending_attachments: tuple[Artifact, ...] = ()
    # Names of artifacts to read again from their source.
    refresh: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    # The answer strategy; None means the default runner.
    runner: str | None = None
    # The meaning of the numbers that the answer may cite.
    citations: tuple[StoredCitation, ...] = ()
    # System prompt parts that are deferred until the cached prefix changes anyway. They apply in this turn if it does.
    deferred_system: Mapping[str, str] = {}
    # Whether braces in the text are plain characters and not templates.
    is_verbatim: bool = False
    # Texts of user rules to add and to remove, and the rule changes made by hand before this turn.
    rules: tuple[str, ...] = ()
    removed_rules: tuple[str, ...] = ()
    rule_changes: RuleChanges | None = None


def request_from_turn(turn: Turn, *, text: str | None, model: str | None, system: Mapping[str, str]) -> TurnRequest:
    """Build the request that repeats a turn under this system prompt, with another text or model if given."""
    return TurnRequest(
        text=turn.typed if text is None else text,
        attach=tuple(replace(artifact, condensed=None) for artifact in turn.attached),
        results=turn.tool_results,
        system=system,
        tools=turn.tools,
        model=model or turn.model,
        drop=turn.drop,
        detach=turn.detach,
        fold=turn.fold,
        previously_pinned=turn.pinned,
        rule_changes=turn.rules,
        runner=turn.turn_settings.runner,
        citations=turn.sources,
    )


def apply_deferred_system(turn_request: TurnRequest) -> TurnRequest:
    """Return the request with its deferred system prompt parts moved into ``system``."""
    return replace(turn_request, system={**turn_request.system, **turn_request.deferred_system}, deferred_system={})


def list_all_system_parts(parts: SystemParts) -> dict[str, str]:
    """Return a system prompt as a request for all of its parts.

    Parts without text are included as empty strings. An omitted part would keep its current value instead.
    """
    return {**dict.fromkeys((*SYSTEM_PART_NAMES, "workflow_brief", "workflow_detail"), ""), **parts.typed_parts()}


# Answers.


class ModelAnswer(Struct, frozen=True, kw_only=True, gc=False):
    """A model reply together with data about the call that produced it.

    ``retries`` is the number of failed attempts before this one. ``end_reason`` says why the reply was cut short and is
    empty for a complete reply. ``predicted_cache_usage`` is the cache usage that the provider predicted before the
    request was sent, for providers that know their own cache. ``question_id`` is the id of the question, if known.
    ``citations`` are the citations that the numbers in the reply refer to.
    """

    reply: ModelReply
    timing: CallTiming = CallTiming()
    retries: int = 0
    end_reason: str = ""
    predicted_cache_usage: CacheUsage | None = None
    question_id: str | None = None
    citations: tuple[StoredCitation, ...] = ()


# Built turns.


class RequestStatus(StrEnum):
    """Whether a request derived from the log is the one that was sent.

    ``VERIFIED``: it has the stored hash. ``UNVERIFIED``: no hash was stored for it. ``DIFFERS``: it has another hash.
    ``ERASED``: content that it had no longer exists. ``OTHER_RENDERER``: another version of Lamella wrote it
    differently.
    """

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    DIFFERS = "differs"
    ERASED = "erased"
    OTHER_RENDERER = "other_renderer"


class RequestCheck(Struct, frozen=True, kw_only=True):
    """The comparison of a derived request with the stored hashes; ``detail`` is a clause for the user."""

    status: RequestStatus
    detail: str = ""

    @property
    def has_no_known_difference(self) -> bool:
        """Whether nothing speaks against these being the bytes that were sent."""
        return self.status in (RequestStatus.VERIFIED, RequestStatus.UNVERIFIED)

    @property
    def warning(self) -> str:
        """A sentence for the user if the request is not shown as it was sent, otherwise empty."""
        return "" if self.has_no_known_difference else f"This request is not shown as it was sent: {self.detail}."


# Builds the arguments of a provider's SDK. The last argument says whether a model of another maker is accepted.
BuildSdkRequest = Callable[[str, ModelRequest, bool], dict[str, Any]]


# The default answer length in tokens for requests that the caller sends with a provider's SDK.
_DEFAULT_ANSWER_TOKENS = 4_096


# The question that continues an answer which was cut off.
CONTINUE_REQUEST = "Your last answer was cut off. Continue it exactly where it ends, without repeating anything."


def validate_max_tokens(max_tokens: int, name: str = "max_tokens") -> int:
    """Return a token limit for an answer or a turn; raises ``InvalidOperationError`` unless it is above 0."""
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise InvalidOperationError(
            f"Invalid {name}: {max_tokens!r}", hint="Give a whole number of tokens, at least 1."
        )
    return max_tokens


def check_answer_fits(total: int, *, max_answer_tokens: int, window: int | None) -> None:
    """Raise ``InvalidOperationError`` if an answer of this length does not fit into the window beside the request."""
    if window is not None and total + max_answer_tokens > window:
        left = window - total
        raise InvalidOperationError(
            f"The answer may have {max_answer_tokens:,} tokens, and the window of {window:,} has {max(left, 0):,} left beside the "
            f"request of {total:,}.",
            # The hint depends on the interface: in some the question is still pending, in others it is asked again.
            hint=lambda hints: (
                (f"Have it answered with {hints.send_with_limit_hint(max_tokens=left)}, or set" if left > 0 else "Set")
                + f" reserve to {max_answer_tokens}, so that room is made for such answers."
            ),
        )


@dataclass(slots=True)
class TurnLedger:
    """The ledger entry of one turn: created when the turn is asked and extended when it is answered."""

    entry: LedgerEntry
    envelope: Envelope


class EarlierRequest(Struct, frozen=True, kw_only=True):
    """A request that a turn with tools sent before its last one: its tokens, the predicted cache use and the cost."""

    tokens: int
    cache: CacheUsage | None
    cost: TurnInputCost | None


class BuiltTurn(Struct, frozen=True, kw_only=True, eq=False):
    """One turn as built: the request, its token counts, the prefix change and the cost.

    ``compaction`` is the receipt of the compaction that was necessary before it could be sent, if any.
    ``previous_response_id`` is the provider's id of the previous reply. ``seconds_since_previous_turn`` is the number of seconds
    since the previous turn was asked. ``check`` compares a request that was derived from the log with the one that was
    sent; it is None for a turn that was built to be sent. ``earlier_requests`` are those before the last one of a turn
    with tools that is replayed, or rebuilt from the log.
    """

    number: int
    envelope: Envelope
    turn_ledger: TurnLedger
    compaction: CompactionReceipt | None = None
    previous_response_id: str | None = None
    seconds_since_previous_turn: float | None = None
    build_sdk_request: BuildSdkRequest | None = None
    check: RequestCheck | None = None
    earlier_requests: tuple[EarlierRequest, ...] = ()

    def __repr__(self) -> str:
        segment, tokens = self.envelope.prompt.question.segment, self.envelope.tokens
        return f"Turn(number={self.number}, message={segment.id!r}, tokens={tokens.total})"

    def __eq__(self, other: object) -> bool:
        # The function that builds wire formats is not part of what is sent.
        return isinstance(other, BuiltTurn) and self._comparison_key == other._comparison_key

    __hash__ = None  # type: ignore[assignment]  # the ledger entry changes while the turn is under way

    @property
    def _comparison_key(self) -> tuple[object, ...]:
        return (
            self.number,
            self.envelope,
            self.ledger,
            self.compaction,
            self.previous_response_id,
            self.seconds_since_previous_turn,
        )

    def to_earlier_request(self) -> EarlierRequest:
        """Return the totals of this request, for the turn that sends another one after it."""
        return EarlierRequest(tokens=self.tokens.total, cache=self.cache, cost=self.cost)

    @property
    def ledger(self) -> LedgerEntry:
        """The ledger entry of this turn; once it is answered, it includes the usage that the provider reported."""
        return self.turn_ledger.entry

    def request(self, provider: str, *, model: str | None = None, max_tokens: int | None = None) -> dict[str, Any]:
        """Return the arguments that send this turn with a provider's own SDK.

        ``max_tokens`` limits the answer. The default is 4,096, or what the window leaves if that is less. A model that
        is known to belong to another maker is rejected, unless ``model`` names it explicitly: gateways offer such
        models.
        """
        name = model or self.envelope.model
        if self.build_sdk_request is None or name is None:
            raise no_model_error()
        return self.build_sdk_request(
            provider,
            self.build_model_request(model=name, max_answer_tokens=self.choose_answer_limit(max_tokens)),
            model is not None,
        )

    def choose_answer_limit(self, max_tokens: int | None) -> int:
        """Return how many tokens the answer may have.

        Raises ``InvalidOperationError`` if ``max_tokens`` is given and the window leaves fewer.
        """
        if max_tokens is not None:
            check_answer_fits(
                self.tokens.total, max_answer_tokens=validate_max_tokens(max_tokens), window=self.tokens.window
            )
            return max_tokens
        left = _DEFAULT_ANSWER_TOKENS if self.tokens.window is None else self.tokens.window - self.tokens.total
        return max(min(_DEFAULT_ANSWER_TOKENS, left), 1)

    def build_model_request(self, *, model: str, max_answer_tokens: int) -> ModelRequest:
        """Return the request to send; it predicts that the next pause is as long as the last one."""
        return make_request(
            self.envelope,
            model=model,
            max_output_tokens=max_answer_tokens,
            expected_pause=self.seconds_since_previous_turn,
            previous_reply_id=self.previous_response_id,
        )

    @property
    def layout_reason(self) -> str:
        """A short explanation of the layout of this request."""
        return self.envelope.prompt.layout_plan.why

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.envelope.messages

    @property
    def tokens(self) -> PromptTokenCounts:
        return self.envelope.tokens

    @property
    def prefix_change(self) -> PrefixChangeReport:
        return self.ledger.prefix

    @property
    def cache(self) -> CacheUsage | None:
        return self.ledger.predicted_usage

    @property
    def cost(self) -> TurnInputCost | None:
        return self.ledger.cost


def no_model_error() -> InvalidOperationError:
    """Return the error for a request that names no model."""
    return InvalidOperationError(
        "No model is named.", hint=lambda hints: f"Name one with {hints.option_hint('model')} or LAMELLA_MODEL."
    )
