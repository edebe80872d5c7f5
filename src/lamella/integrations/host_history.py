"""Prepare the message history of another program: keep what was sent, clear what is not used, refer to what is repeated.

Frameworks hold the history of a run themselves and pass all of it with each request. ``HostHistories`` follows each
history in a ``Conversation`` of its own, which decides what the next request contains, and counts what it costs.
Every module for a framework converts its messages to ``HostMessage`` and builds its request from ``PreparedMessage``.

If a history cannot be followed, or anything fails, ``prepare`` returns None and the host sends its messages unchanged.
"""

import logging
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from threading import RLock
from typing import Any, Literal, TypeVar, cast

from lamella.attach import KEEP_RESULTS, Tool
from lamella.conversation.conversation import Conversation
from lamella.conversation.engine import Engine
from lamella.conversation.pasted_documents import apply_references, plan_references_to_earlier_copies
from lamella.conversation.recall import RECALL_TOOL
from lamella.core.messages import (
    UNKNOWN_USAGE,
    Message,
    ModelReply,
    ProviderReply,
    Role,
    StopReason,
    ToolCall,
    ToolOutput,
    Usage,
)
from lamella.errors import LamellaError
from lamella.schemas.ledger import LedgerTotals, build_ledger_rows, total_ledger_rows

logger = logging.getLogger("lamella.integrations")
Converted = TypeVar("Converted")

# How many histories are followed at once. The one that was used least recently is forgotten first.
_MAX_HISTORIES = 64
# The fewest characters by which a message is recognised again in a rewritten history. "Yes" proves nothing.
_MIN_TELLING_CHARS = 40
# Marks a reply as one with signed reasoning, in a form that the planner recognises.
_SIGNED_REPLY = ProviderReply(format="host", json='[{"type":"thinking"}]')


class UnreadableHistoryError(Exception):
    """A message of the host has a form that Lamella cannot move, so the history is sent unchanged."""


class _UnknownOrderError(Exception):
    """The host's messages are in an order that no conversation has."""


class HostShortensHistoryWarning(UserWarning):
    """The host itself summarised or cleared messages that Lamella had seen; Lamella leaves this history alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMessage:
    """A message of the host: what Lamella reads of it.

    ``signed`` says that it has reasoning with a signature of the provider. ``other_parts`` identifies parts that are
    not text, such as pictures. A message with such parts is sent as the host wrote it.
    """

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    failed: bool = False
    signed: bool = False
    other_parts: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMessage:
    """A message to send.

    ``position`` is the position of the host's message that is sent, or None if Lamella wrote this one. ``text`` is None
    if the host's message is sent unchanged. ``without_reasoning`` says that its signed reasoning has become invalid.
    """

    role: Literal["user", "assistant", "tool"]
    position: int | None
    text: str | None = None
    without_reasoning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedHistory:
    """What to send: the messages, and what Lamella adds to the host's system prompt."""

    messages: tuple[PreparedMessage, ...]
    added_to_system: str = ""


@dataclass(slots=True, kw_only=True)
class HostHistoryCounts:
    """How many requests were prepared, and how many were sent as the host wrote them."""

    prepared: int = 0
    unchanged: int = 0


@dataclass(slots=True, kw_only=True)
class _FollowedHistory:
    """A history of the host and the conversation that follows it; None if this history is left alone."""

    conversation: Conversation | None
    system: str
    messages: list[HostMessage] = field(default_factory=list)
    # The texts of the messages as Lamella sends them: repeated documents are references.
    texts: list[str] = field(default_factory=list)
    outputs: list[ToolOutput] = field(default_factory=list)
    # The messages of the last built request. None as long as no question was asked.
    request: tuple[Message, ...] | None = None
    # The hash of the last prepared request, and for each reply with signed reasoning, by its position, the hash of the
    # request that it answers.
    sent_context: str = ""
    reasoning_contexts: dict[int, str] = field(default_factory=dict)

    @property
    def awaited_calls(self) -> frozenset[str]:
        return frozenset(call.id for call in self.messages[-1].calls) if self.messages else frozenset()


def warn_of_host_compaction() -> None:
    """Warn that the host shortens its history itself, so that two compactors would work on it."""
    warnings.warn(
        "The host itself summarised or cleared messages of this history, so Lamella sends it unchanged from here on. "
        "Let one of the two do it: switch the host's summaries and clearing off, or Lamella.",
        HostShortensHistoryWarning,
        stacklevel=2,
    )


class HostHistories:
    """The histories of one host. ``prepare`` before each request, and ``record_reply`` after it.

    With an ``engine`` the conversations are kept in its store, named after ``name``. Otherwise they are in memory.
    ``settings`` are those of ``Conversation``, for example ``window=200_000``.
    """

    def __init__(self, *, engine: Engine | None = None, name: str = "agent", settings: Mapping[str, Any]) -> None:
        self.counts = HostHistoryCounts()
        self._engine = engine
        self._name = name
        self._settings: dict[str, Any] = {"layout": "auto", **settings}
        self._histories: list[_FollowedHistory] = []
        self._lock = RLock()
        # The number in the name of the next stored conversation, unless the store has that name.
        self._next_number = 1
        # A wrong setting is an error of the developer, so it is reported here and not at the first request.
        Conversation(**self._settings)

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """The conversations, the one used last at the end; their ledgers say what was sent and what it cost."""
        with self._lock:
            return tuple(one.conversation for one in self._histories if one.conversation is not None)

    def totals(self) -> LedgerTotals:
        """Return the sums of the ledgers of these conversations: tokens, and money where the prices are known."""
        return total_ledger_rows(
            [row for one in self.conversations for row in build_ledger_rows(one.turns(), one.ledger(), one.receipts())]
        )

    def convert_request(self, convert: Callable[[], Converted]) -> Converted | None:
        """Return what ``convert`` reads of a request, or None if it fails; the request is then counted as unchanged."""
        converted = self.convert_reply(convert)
        if converted is None:
            self.counts.unchanged += 1
        return converted

    def convert_reply(self, convert: Callable[[], Converted]) -> Converted | None:
        """Return what ``convert`` reads of a reply, or None if it fails."""
        try:
            return convert()
        except Exception as error:  # noqa: BLE001  # whatever the host's messages contain, its run goes on
            if not isinstance(error, UnreadableHistoryError):
                _log_failure(error)
            return None

    def prepare(
        self, messages: Sequence[HostMessage], *, system: str, tools: Sequence[Tool], model: str | None
    ) -> PreparedHistory | None:
        """Return the messages to send instead of these, or None if these are to be sent unchanged.

        A model that the settings name is used for windows and prices instead of ``model``.
        """
        with self._lock:
            model = self._settings.get("model", model)
            try:
                prepared = self._prepare(messages, system, tools, model)
            except Exception as error:  # noqa: BLE001  # whatever fails here, the host's run goes on without Lamella
                _log_failure(error)
                self._histories = [one for one in self._histories if not _is_beginning_of(one, messages)]
                prepared = None
            if prepared is None:
                self.counts.unchanged += 1
            else:
                self.counts.prepared += 1
            return prepared

    def record_reply(
        self,
        messages: Sequence[HostMessage],
        reply: HostMessage,
        *,
        system: str,
        usage: Usage = UNKNOWN_USAGE,
    ) -> None:
        """Record the answer to a request that was prepared; its usage goes into the ledger."""
        with self._lock:
            followed = self._find_beginning(system, messages)
            is_sent = followed is not None and len(followed.messages) == len(messages)
            if followed is None or not is_sent or followed.conversation is None or followed.request is None:
                return
            try:
                _record_reply(followed, reply, usage, context=followed.sent_context)
            except Exception as error:  # noqa: BLE001  # the reply has arrived, and the host's run goes on with it
                _log_failure(error)
                self._histories.remove(followed)

    async def recall(
        self, query: str, *, call_id: str | None, limit: int | None = None, start: int | None = None
    ) -> str:
        """Answer a call of the recall tool from the history in which the call with this id waits for its result.

        Without an id the answer comes from the only history there is. If the history is not certain, nothing is found.
        """
        with self._lock:
            waiting = [one for one in self._histories if one.conversation is not None]
            # Another history may be that of another user. Without a single match there is no answer.
            found = waiting if call_id is None else [one for one in waiting if call_id in one.awaited_calls]
            followed = found[0] if len(found) == 1 else None
        if followed is None or followed.conversation is None:
            return "Nothing was left out of the messages."
        run = cast(Callable[..., Awaitable[object]], followed.conversation.recall_tool.run)
        arguments = {"query": query, "limit": limit, "start": start}
        try:
            return str(await run(**{name: value for name, value in arguments.items() if value is not None}))
        except LamellaError as error:
            return str(error)

    @property
    def recall_tool(self) -> Tool:
        """The definition of the recall tool, for hosts to offer to their model."""
        return Conversation().recall_tool

    def _prepare(
        self, messages: Sequence[HostMessage], system: str, tools: Sequence[Tool], model: str | None
    ) -> PreparedHistory | None:
        if not any(one.name == RECALL_TOOL for one in tools):
            # What is cleared has to be one recall away.
            tools = [replace(one, policy=KEEP_RESULTS) for one in tools]
        followed = self._find_beginning(system, messages)
        if followed is None:
            followed = self._follow_new(messages, system, model)
        self._histories.remove(followed)
        self._histories.append(followed)
        if followed.conversation is None:
            followed.messages[:] = messages
            return None
        for message in messages[len(followed.messages) :]:
            _feed(followed, message, system=system, tools=tools, model=model)
        if followed.request is None or messages[-1].role == "assistant":
            return None
        return _match_request(followed)

    def _follow_new(self, messages: Sequence[HostMessage], system: str, model: str | None) -> _FollowedHistory:
        rewritten = next((one for one in reversed(self._histories) if _was_rewritten(one, messages)), None)
        if rewritten is None:
            followed = _FollowedHistory(conversation=self._open_conversation(system, model), system=system)
        else:
            warn_of_host_compaction()
            followed = _FollowedHistory(conversation=None, system=system, messages=list(messages))
        del self._histories[: max(0, len(self._histories) - _MAX_HISTORIES + 1)]
        self._histories.append(followed)
        return followed

    def _open_conversation(self, system: str, model: str | None) -> Conversation:
        settings: dict[str, Any] = {"model": model, **self._settings} if model else self._settings
        if self._engine is None:
            return Conversation(system=system or None, **settings)
        while self._engine.find_conversation(name := f"{self._name}-{self._next_number}") is not None:
            self._next_number += 1
        self._next_number += 1
        conversation = self._engine.create(name, **settings)
        if system:
            conversation.set(system=system)
        return conversation

    def _find_beginning(self, system: str, messages: Sequence[HostMessage]) -> _FollowedHistory | None:
        """Return the longest followed history that these messages continue, if possible under the same system prompt."""
        found = [one for one in self._histories if _is_beginning_of(one, messages)]
        return max(found, key=lambda one: (len(one.messages), one.system == system), default=None)


def _is_beginning_of(followed: _FollowedHistory, messages: Sequence[HostMessage]) -> bool:
    size = len(followed.messages)
    return size <= len(messages) and followed.messages == list(messages[:size])


def _was_rewritten(followed: _FollowedHistory, messages: Sequence[HostMessage]) -> bool:
    """Return whether the host changed or removed messages of this history and kept later ones."""
    known, common = followed.messages, 0
    while common < min(len(known), len(messages)) and known[common] == messages[common]:
        common += 1
    if common == len(known):
        return False
    outputs = {one.call_id: one.text for one in known[common:] if one.role == "tool"}
    if any(one.role == "tool" and outputs.get(one.call_id, one.text) != one.text for one in messages[common:]):
        return True
    later = {one for one in known[common + 1 :] if one.role != "tool" and len(one.text) >= _MIN_TELLING_CHARS}
    calls = {call.id for one in known[common + 1 :] for call in one.calls}
    return any(one in later or any(call.id in calls for call in one.calls) for one in messages[common:])


def _feed(
    followed: _FollowedHistory, message: HostMessage, *, system: str, tools: Sequence[Tool], model: str | None
) -> None:
    """Add one message of the host to the conversation."""
    conversation = followed.conversation
    assert conversation is not None, "a history that is left alone is not fed"
    if message.role == "assistant":
        # The host sent what is read here for the first time as it is.
        context = _hash_as_written(followed.messages) if message.signed else ""
        _record_reply(followed, message, UNKNOWN_USAGE, context=context)
        return
    text = _refer_to_repeated_documents(followed.texts, message)
    if message.role == "tool":
        if message.call_id not in _open_calls(followed):
            raise _UnknownOrderError(f"No call with the id {message.call_id} waits for a result.")
        assert message.call_id is not None
        followed.outputs.append(ToolOutput(call=message.call_id, output=text, failed=message.failed))
    elif followed.outputs or _open_calls(followed):
        raise _UnknownOrderError("A question follows calls without results.")
    followed.messages.append(message)
    followed.texts.append(text)
    if message.role == "user":
        changed_system = None if system == followed.system else system
        built = conversation.ask(text, tools=tools, model=model, system=changed_system, verbatim=True)
        followed.system = system
        followed.request = built.messages
    elif len(followed.outputs) == len(conversation.pending_tool_calls):
        built = conversation.submit_tool_outputs(followed.outputs)
        followed.outputs, followed.request = [], built.messages


def _open_calls(followed: _FollowedHistory) -> frozenset[str]:
    conversation = followed.conversation
    assert conversation is not None
    answered = {one.call for one in followed.outputs}
    return frozenset(call.id for call in conversation.pending_tool_calls) - answered


def _record_reply(followed: _FollowedHistory, reply: HostMessage, usage: Usage, *, context: str) -> None:
    """Add a reply of the model. ``context`` is the hash of what was sent when the model wrote it."""
    conversation = followed.conversation
    assert conversation is not None, "a history that is left alone has no conversation"
    conversation.reply(
        ModelReply(
            text=reply.text,
            stop=StopReason.TOOL_CALLS if reply.calls else StopReason.END,
            calls=reply.calls,
            usage=usage,
            provider_reply=_SIGNED_REPLY if reply.signed else None,
        )
    )
    if reply.signed:
        followed.reasoning_contexts[len(followed.messages)] = context
    followed.messages.append(reply)
    followed.texts.append(reply.text)


def _hash_message(before: str, role: str, text: str, *, without_reasoning: bool = False) -> str:
    """Return the hash of a history that ends in this message."""
    return sha256(f"{before} {role} {without_reasoning} {text}".encode("utf-8", "surrogatepass")).hexdigest()


def _hash_as_written(messages: Sequence[HostMessage]) -> str:
    context = ""
    for one in messages:
        context = _hash_message(context, one.role, one.text)
    return context


def _drop_moved_reasoning(
    prepared: Sequence[PreparedMessage], messages: Sequence[HostMessage], contexts: Mapping[int, str], added: str
) -> tuple[tuple[PreparedMessage, ...], str]:
    """Return the messages and the hash of all of them; signed reasoning is kept only behind the text it was made behind."""
    checked: list[PreparedMessage] = []
    context = added
    for one in prepared:
        if one.position is not None and messages[one.position].signed:
            one = replace(one, without_reasoning=contexts.get(one.position) != context)
        text = one.text if one.text is not None or one.position is None else messages[one.position].text
        context = _hash_message(context, one.role, text or "", without_reasoning=one.without_reasoning)
        checked.append(one)
    return tuple(checked), context


def _refer_to_repeated_documents(before: Sequence[str], message: HostMessage) -> str:
    """Return the text of a message in which documents that are in earlier texts are references."""
    if message.other_parts:
        return message.text
    return apply_references(message.text, plan_references_to_earlier_copies((*before, message.text))[-1])


def _match_request(followed: _FollowedHistory) -> PreparedHistory | None:
    """Return the request in terms of the host's messages, or None if it cannot be expressed so."""
    messages, system, added = followed.messages, followed.system, ""
    prepared: list[PreparedMessage] = []
    tools = {one.call_id: place for place, one in enumerate(messages) if one.role == "tool"}
    calls = {one.calls[0].id: place for place, one in enumerate(messages) if one.calls}
    next_place = 0
    for sent in followed.request or ():
        if sent.role is Role.SYSTEM:
            if not sent.text.startswith(system):
                return None
            added = sent.text[len(system) :]
            continue
        if sent.role is Role.TOOL:
            place = tools.get(sent.call_id)
        elif sent.calls:
            place = calls.get(sent.calls[0].id)
        else:
            place = _find_text(sent, messages, followed.texts, next_place)
        if place is None and not sent.text and not sent.calls:
            # Lamella keeps an empty answer to a question that the host left unanswered.
            continue
        if place is None:
            prepared.append(PreparedMessage(role=_host_role(sent), position=None, text=sent.text))
            continue
        next_place = max(next_place, place + 1)
        is_unchanged = sent.text == messages[place].text
        prepared.append(
            PreparedMessage(
                role=_host_role(sent),
                position=place,
                text=None if is_unchanged else sent.text,
            )
        )
    unchanged = {one.position for one in prepared if one.text is None}
    if any(one.other_parts and place not in unchanged for place, one in enumerate(messages)):
        return None
    checked, followed.sent_context = _drop_moved_reasoning(prepared, messages, followed.reasoning_contexts, added)
    return PreparedHistory(messages=checked, added_to_system=added)


def _find_text(sent: Message, messages: Sequence[HostMessage], texts: Sequence[str], first_place: int) -> int | None:
    role = _host_role(sent)
    places = range(first_place, len(messages))
    return next((at for at in places if messages[at].role == role and sent.text == texts[at]), None)


def _host_role(sent: Message) -> Literal["user", "assistant", "tool"]:
    if sent.role is Role.TOOL:
        return "tool"
    return "assistant" if sent.role is Role.ASSISTANT else "user"


def _log_failure(error: Exception) -> None:
    logger.warning("Lamella leaves the messages as they are: %s: %s", type(error).__name__, error)
    logger.debug("Where it failed", exc_info=error)
