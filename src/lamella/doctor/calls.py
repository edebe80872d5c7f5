"""One model call as a log has it, and the usage that the provider reported, in the words of any provider."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

Json = Mapping[str, Any]
_EMPTY: Json = {}
# Times beyond these are counters or durations, not moments: 2001 and 2100.
_FIRST_SECOND, _LAST_SECOND = 1_000_000_000, 4_102_444_800
_MILLISECONDS, _NANOSECONDS = 1_000, 1_000_000_000
# The most tokens that a report of usage is believed to have.
_MAX_TOKENS = 1_000_000_000


class WireFormat(StrEnum):
    """The API that a request body was made for."""

    MESSAGES = "messages"
    CHAT = "chat"
    RESPONSES = "responses"


class ReportedUsage(Struct, frozen=True, kw_only=True, gc=False):
    """The tokens that a provider reported. ``input`` includes cached and written tokens; None means not reported."""

    input: int
    cached: int | None = None
    written: int | None = None
    written_long: int = 0
    output: int = 0


class LoggedCall(Struct, frozen=True, kw_only=True):
    """One model call of a log.

    ``has_whole_prompt`` is False for session files, which leave out the system prompt and the tools. ``label`` is the
    conversation's id in the log, if there is one. ``token_counts`` has the tokens of each block in redacted logs.
    """

    format: str
    wire: WireFormat
    body: Json
    model: str | None = None
    at: datetime | None = None
    usage: ReportedUsage | None = None
    reply: str = ""
    label: str | None = None
    has_whole_prompt: bool = True
    failed: bool = False
    miss_reason: str | None = None
    token_counts: tuple[int, ...] = ()
    known_cause: str | None = None


def get_object(value: object) -> Json:
    """Return a JSON object, or an empty one for anything else."""
    return value if isinstance(value, dict) else _EMPTY


def get_list(value: object) -> Sequence[Any]:
    """Return a JSON array, or an empty one for anything else."""
    return value if isinstance(value, list) else ()


def get_text(value: object) -> str:
    """Return a text, or an empty one for anything else."""
    return value if isinstance(value, str) else ""


def get_count(value: object) -> int | None:
    """Return a plausible token count, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MAX_TOKENS else None


def first_count(source: Json, *names: str) -> int | None:
    """Return the first plausible count of these fields."""
    return next((count for name in names if (count := get_count(source.get(name))) is not None), None)


def parse_time(value: object) -> datetime | None:
    """Return the moment of a text or of a number of seconds, milliseconds or nanoseconds; None if it is none."""
    if isinstance(value, str):
        text = value.strip()
        if text.isdecimal():
            return parse_time(int(text[:20]))
        try:
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for unit in (1, _MILLISECONDS, _NANOSECONDS):
        if _FIRST_SECOND <= value / unit <= _LAST_SECOND:
            return datetime.fromtimestamp(value / unit, tz=UTC)
    return None


def parse_usage(value: object) -> ReportedUsage | None:
    """Return the usage in an object of any provider; None if it has no count of input tokens."""
    usage = get_object(value)
    if not usage:
        return None
    if ("cache_read_input_tokens" in usage and "input_tokens" in usage) or "cache_creation_input_tokens" in usage:
        return _parse_anthropic_usage(usage)
    total = first_count(usage, "prompt_tokens", "input_tokens", "inputTokens", "promptTokens", "input")
    if total is None:
        return None
    details = next(
        (found for name in ("prompt_tokens_details", "input_tokens_details") if (found := get_object(usage.get(name)))),
        _EMPTY,
    )
    cached = first_count(details, "cached_tokens", "cache_read_tokens")
    if cached is None:
        cached = first_count(usage, "cached_tokens", "cached_input_tokens", "prompt_cache_hit_tokens", "cachedTokens")
    written = first_count(details, "cache_write_tokens", "cache_creation_tokens")
    if written is None:
        written = first_count(usage, "cache_write_tokens", "cache_write_input_tokens")
    return ReportedUsage(
        input=total,
        cached=None if cached is None else min(cached, total),
        written=written,
        written_long=min(first_count(usage, "cache_write_1h_tokens") or 0, written or 0),
        output=first_count(usage, "completion_tokens", "output_tokens", "outputTokens", "output") or 0,
    )


def _parse_anthropic_usage(usage: Json) -> ReportedUsage | None:
    """Return Anthropic's usage, whose input tokens do not include those of the cache."""
    plain = first_count(usage, "input_tokens")
    if plain is None:
        return _parse_converted_anthropic_usage(usage)
    read = first_count(usage, "cache_read_input_tokens") or 0
    by_lifetime = get_object(usage.get("cache_creation"))
    long = first_count(by_lifetime, "ephemeral_1h_input_tokens") or 0
    written = first_count(usage, "cache_creation_input_tokens")
    if written is None:
        written = long + (first_count(by_lifetime, "ephemeral_5m_input_tokens") or 0)
    return ReportedUsage(
        input=plain + read + written,
        cached=read,
        written=written,
        written_long=min(long, written),
        output=first_count(usage, "output_tokens") or 0,
    )


def _parse_converted_anthropic_usage(usage: Json) -> ReportedUsage | None:
    """Return usage that LiteLLM converted: its prompt tokens include the cached ones."""
    total = first_count(usage, "prompt_tokens")
    if total is None:
        return None
    return ReportedUsage(
        input=total,
        cached=min(first_count(usage, "cache_read_input_tokens") or 0, total),
        written=first_count(usage, "cache_creation_input_tokens"),
        output=first_count(usage, "completion_tokens") or 0,
    )
