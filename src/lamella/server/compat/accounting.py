"""Records of answers at the compatibility endpoints: metrics, a log line and a span, without any text."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from lamella.providers import CacheUsage
from lamella.server.compat.usage import TokenUsage
from lamella.server.compat.wires import ApiFormat
from lamella.server.observability import finish_answer_span, log_answer, start_answer_span
from lamella.server.state import ServerState
from lamella.wiring import mask_url_secrets


class AnswerRecord(NamedTuple):
    """An answer: the label of its conversation, who asked which model, how it ended, and what it used."""

    label: str
    caller: str
    model: str
    wire: ApiFormat
    end_reason: str
    status: int
    usage: TokenUsage
    seconds: float


def record_answer(state: ServerState, record: AnswerRecord) -> None:
    """Record an answer in the metrics, the log and a trace span."""
    usage = record.usage
    tokens: Mapping[str, int | None] = {
        "plain": usage.plain,
        "read": usage.read,
        "write": usage.write,
        "write_long": None,
        "output": usage.output,
    }
    cost = _find_cost(state, record)
    state.metrics.record_answer(end_reason=record.end_reason, usage=tokens, cost=cost)
    fields: dict[str, object] = {
        "conversation": record.label,
        "caller": record.caller,
        "model": mask_url_secrets(record.model),
        "api": record.wire.value,
        "ended": record.end_reason,
        "status": record.status,
        "tokens": tokens,
        "cost": cost,
    }
    log_answer(fields, text="", with_preview=False)
    finish_answer_span(start_answer_span(record.label, record.caller), fields, error=None)


def _find_cost(state: ServerState, record: AnswerRecord) -> float | None:
    usage = record.usage
    if usage.plain is None and usage.output is None:
        return None
    used = CacheUsage(read=usage.read or 0, write=usage.write or 0, uncached=usage.plain or 0)
    prices = state.engine_pool.services.prices
    cost = prices.price(record.model, used, datetime.now(UTC), output=usage.output or 0)
    return None if cost is None else float(cost)
