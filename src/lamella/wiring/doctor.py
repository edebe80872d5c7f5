"""Examine logs with the prices, cache profiles and token counters of this installation."""

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from lamella.core.log.call import CacheUsage
from lamella.doctor.analysis import Diagnosis, Examination, Knowledge
from lamella.doctor.log_files import LogReader
from lamella.wiring.services import ServiceContainer

_STANDARD_INPUT = "-"


class LogExamination(Struct, frozen=True, kw_only=True):
    """The diagnosis of some logs, and the records that no format fits."""

    diagnosis: Diagnosis
    unread: int
    unread_examples: Sequence[str]


def examine_logs(
    names: Sequence[str], services: ServiceContainer, *, on_progress: Callable[[int], None] = lambda _bytes: None
) -> LogExamination:
    """Examine log files, folders of logs, or ``-`` for standard input."""
    reader = LogReader(on_progress)
    examination = Examination(build_knowledge(services))
    for name in names:
        calls = (
            reader.read_stream(sys.stdin.buffer, name="standard input")
            if name == _STANDARD_INPUT
            else reader.read([Path(name).expanduser()])
        )
        for call in calls:
            examination.add(call)
    return LogExamination(diagnosis=examination.finish(), unread=reader.unread, unread_examples=tuple(reader.examples))


def build_knowledge(services: ServiceContainer) -> Knowledge:
    """Return what the analysis needs to know about models."""
    prices = services.prices

    @lru_cache(maxsize=65_536)
    def price(model: str, usage: CacheUsage, at: datetime | None, output: int) -> Decimal | None:
        return prices.price(model, usage, at, output=output) if model else None

    return Knowledge(
        get_profile=lru_cache(maxsize=256)(services.models.get_model_profile),
        get_tokenizer=services.counter.get_tokenizer,
        price=price,
    )
