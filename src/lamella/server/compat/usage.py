"""Token usage in the fields of each API, and its record."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lamella.server.compat.wires import ApiFormat


class TokenUsage(NamedTuple):
    """Token counts by price class; None if the provider did not report a count. ``reasoning`` is part of ``output``."""

    plain: int | None = None
    read: int | None = None
    write: int | None = None
    output: int | None = None
    reasoning: int | None = None

    @property
    def prompt(self) -> int:
        """Return all input tokens."""
        return (self.plain or 0) + (self.read or 0) + (self.write or 0)


def parse_usage(wire: ApiFormat, usage: object, before: TokenUsage = TokenUsage()) -> TokenUsage:  # noqa: B008 - a value
    """Return the counts of a usage object; counts that it lacks stay as reported ``before``."""
    if not isinstance(usage, dict):
        return before
    if wire is ApiFormat.MESSAGES:
        found = TokenUsage(
            plain=_get_count(usage, "input_tokens"),
            read=_get_count(usage, "cache_read_input_tokens"),
            write=_get_count(usage, "cache_creation_input_tokens"),
            output=_get_count(usage, "output_tokens"),
            reasoning=_get_count(_get_fields(usage, "output_tokens_details"), "thinking_tokens"),
        )
    else:
        found = _parse_openai(usage, *(("prompt", "completion") if wire is ApiFormat.CHAT else ("input", "output")))
    return TokenUsage(*(new if new is not None else old for new, old in zip(found, before, strict=True)))


def _parse_openai(usage: Mapping[str, Any], prompt: str, output: str) -> TokenUsage:
    details = _get_fields(usage, f"{prompt}_tokens_details")
    total, read = _get_count(usage, f"{prompt}_tokens"), _get_count(details, "cached_tokens")
    write = _get_count(details, "cache_write_tokens")
    return TokenUsage(
        plain=None if total is None else max(total - (read or 0) - (write or 0), 0),
        read=read,
        write=write,
        output=_get_count(usage, f"{output}_tokens"),
        reasoning=_get_count(_get_fields(usage, f"{output}_tokens_details"), "reasoning_tokens"),
    )


def _get_fields(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _get_count(value: Mapping[str, Any], name: str) -> int | None:
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def usage_to_json(wire: ApiFormat, usage: TokenUsage) -> dict[str, object]:
    """Return counts in the fields of an API; an unknown count is 0, because these APIs have no value for unknown."""
    output, reasoning = usage.output or 0, usage.reasoning or 0
    if wire is ApiFormat.MESSAGES:
        return {
            "input_tokens": usage.plain or 0,
            "cache_creation_input_tokens": usage.write or 0,
            "cache_read_input_tokens": usage.read or 0,
            "output_tokens": output,
        }
    details = {"cached_tokens": usage.read or 0}
    if wire is ApiFormat.CHAT:
        return {
            "prompt_tokens": usage.prompt,
            "completion_tokens": output,
            "total_tokens": usage.prompt + output,
            "prompt_tokens_details": details,
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {**details, "cache_write_tokens": usage.write or 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": usage.prompt + output,
    }
