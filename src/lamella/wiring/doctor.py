"""Examine logs with the prices, cache profiles and token counters of this installation."""

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from secrets import token_bytes

import msgspec
from msgspec import Struct

from lamella.core.log.call import CacheUsage
from lamella.doctor.analysis import Diagnosis, Examination, Knowledge, normalize_model
from lamella.doctor.calls import LoggedCall
from lamella.doctor.log_files import LogReader
from lamella.doctor.redaction import Redactor
from lamella.wiring.services import ServiceContainer

_STANDARD_INPUT = "-"
_KEY_BYTES = 32


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
    for call in _read_logs(reader, names):
        examination.add(call)
    return LogExamination(diagnosis=examination.finish(), unread=reader.unread, unread_examples=tuple(reader.examples))


def redact_logs(names: Sequence[str], services: ServiceContainer) -> Iterator[bytes]:
    """Yield each call of some logs as a JSON line without its texts. The key is new each time, and is not kept."""
    redactor, encoder = Redactor(token_bytes(_KEY_BYTES)), msgspec.json.Encoder()
    for call in _read_logs(LogReader(), names):
        tokenizer = services.counter.get_tokenizer(normalize_model(call) or None)
        yield encoder.encode(redactor.redact(call, tokenizer)) + b"\n"


def _read_logs(reader: LogReader, names: Sequence[str]) -> Iterator[LoggedCall]:
    for name in names:
        if name == _STANDARD_INPUT:
            yield from reader.read_stream(sys.stdin.buffer, name="standard input")
        else:
            yield from reader.read([Path(name).expanduser()])


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
