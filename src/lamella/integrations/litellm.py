"""A hook for LiteLLM, in its SDK and in its proxy: repeated documents become references, and what is sent is counted.

import litellm
from lamella.integrations.litellm import LamellaHook

litellm.callbacks = [LamellaHook()]
await litellm.acompletion(model="anthropic/claude-opus-5-5", messages=messages)

LiteLLM calls such hooks only from its asynchronous functions. The proxy uses these.
"""

from collections.abc import Mapping
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

from lamella.conversation.conversation import Conversation
from lamella.conversation.engine import Engine
from lamella.integrations.chat_messages import ChatHistories, ChatMessage
from lamella.integrations.host_history import HostHistoryCounts
from lamella.schemas.ledger import LedgerTotals

__all__ = ["LamellaHook"]

# So large that nothing is ever left out. The program that wrote the messages may have no way to get it back.
_UNLIMITED_WINDOW = 10_000_000
# How many calls may be under way at once. A call that fails is never answered, so the oldest are forgotten.
_MAX_CALLS = 1_000


class LamellaHook(CustomLogger):
    """Refers to documents that are repeated in a request, and counts what each conversation costs.

    It leaves nothing out unless you give a ``window``; then histories that no longer fit are shortened. ``settings``
    are those of ``lamella.Conversation``. With an ``engine``, what was sent is stored as conversations named
    ``name-1``, ``name-2``, …
    """

    def __init__(self, *, engine: Engine | None = None, name: str = "litellm", **settings: object) -> None:
        super().__init__()
        given: dict[str, object] = {"window": _UNLIMITED_WINDOW, **settings}
        self._histories = ChatHistories(engine=engine, name=name, **given)
        # The messages of the calls under way, as the client wrote them, by the id that LiteLLM gives a call.
        self._messages_by_call: dict[str, list[ChatMessage]] = {}

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """The conversations, the one used last at the end; their ledgers have the cost."""
        return self._histories.conversations

    @property
    def counts(self) -> HostHistoryCounts:
        """How many requests were prepared, and how many were sent unchanged."""
        return self._histories.counts

    def totals(self) -> LedgerTotals:
        """Return the sums of the ledgers: tokens, and money where the prices are known."""
        return self._histories.totals()

    async def async_pre_call_deployment_hook(
        self,
        kwargs: dict[str, Any],
        call_type: object,  # LiteLLM gives it
    ) -> dict[str, Any] | None:
        """Return the arguments of a call with prepared messages, or None if it has none."""
        messages: list[ChatMessage] | None = kwargs.get("messages")
        if not messages:
            return None
        model = str(kwargs.get("model") or "").replace("/", ":", 1)
        prepared = self._histories.prepare(
            messages, tools=kwargs.get("tools") or (), model=model if ":" in model else None
        )
        call_id = kwargs.get("litellm_call_id")
        if call_id is not None:
            self._messages_by_call[call_id] = list(messages)
            if len(self._messages_by_call) > _MAX_CALLS:
                del self._messages_by_call[next(iter(self._messages_by_call))]
        return {**kwargs, "messages": prepared}

    async def async_log_success_event(
        self,
        kwargs: Mapping[str, Any],
        response_obj: Any,  # noqa: ANN401  # LiteLLM has a type for each kind of call
        start_time: object,  # LiteLLM gives it
        end_time: object,  # LiteLLM gives it
    ) -> None:
        """Record the answer and its usage."""
        messages = self._messages_by_call.pop(kwargs.get("litellm_call_id") or "", None)
        choices = getattr(response_obj, "choices", None)
        if messages and choices:
            usage = getattr(response_obj, "usage", None)
            self._histories.record_reply(
                messages,
                choices[0].message.model_dump(),
                usage=usage.model_dump() if usage is not None else None,
            )
