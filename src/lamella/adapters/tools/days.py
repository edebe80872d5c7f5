"""``time_range``: words such as "last week" as days of the calendar."""

from collections.abc import Callable
from datetime import date, datetime, timedelta

from lamella.adapters.retrieval.days import DaySpan, find_days
from lamella.adapters.tools.schema import Arguments, ToolParameter, make_tool
from lamella.attach import Tool

_PARAMETERS = (
    ToolParameter("words", 'A time in words, such as "last week", "since Monday" or "March 2026".', required=True),
)


def make_days_tool(now: Callable[[], datetime]) -> Tool:
    """What words of time mean, from today on this machine."""

    def tell(given: Arguments) -> str:
        today = now().date()
        words = str(given["words"])
        return f"{tell_days(read_days(words, today))} Today is {_tell_day(today)}."

    return make_tool(
        "time_range",
        "Tell which days words such as 'last week', 'yesterday' or 'March 2026' mean, and which day is today.",
        parameters=_PARAMETERS,
        run=tell,
    )


def read_days(words: str, today: date) -> DaySpan:
    """The days that words mean; ``ValueError`` where they mean none."""
    for told in (words, f"in {words}"):
        span, _ = find_days(told, today=today)
        if span is not None:
            return span
    raise ValueError(
        f"{words[:80]!r} tells no time; write it as in: last week, 3 days ago, since Monday, March 2026, 2026-03-01"
    )


def tell_days(span: DaySpan) -> str:
    """The first and the last day, in a sentence."""
    last = span.end - timedelta(days=1) if span.end != date.max else None
    if span.start == date.min:
        return f"Up to {_tell_day(last)}." if last else "At any time."
    if last is None:
        return f"From {_tell_day(span.start)} on."
    if last == span.start:
        return f"{_tell_day(last)}."
    return f"From {_tell_day(span.start)} to {_tell_day(last)}, both included."


def _tell_day(day: date) -> str:
    return f"{day.isoformat()} ({day:%A})"
