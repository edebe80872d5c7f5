"""Examine logs with the prices, cache profiles and token counters of this installation."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from lamella.doctor.transcripts import RecordedConversation, build_transcript
from lamella.errors import LamellaError
from lamella.schemas.ledger import ReplayTotals
from lamella.wiring.services import ServiceContainer

_STANDARD_INPUT = "-"
_KEY_BYTES = 32


class LogExamination(Struct, frozen=True, kw_only=True):
    """The diagnosis of some logs, and the records that no format fits."""

    diagnosis: Diagnosis
    unread: int
    unread_examples: Sequence[str]
    replay: "LogReplay | None" = None


class ReplayedConversation(Struct, frozen=True, kw_only=True):
    """The input cost of a conversation as logged and in the layout ``auto``, and the documents that it had.

    ``readable`` counts the times that the prompt of a turn had the whole text of a document of the turn.
    """

    number: int
    logged: Decimal
    auto: Decimal
    documents: int
    readable: int


class LogReplay(Struct, frozen=True, kw_only=True):
    """A replay of all conversations; ``left_out`` says why some could not be replayed, with their number."""

    conversations: Sequence[ReplayedConversation]
    left_out: Mapping[str, int]


def examine_logs(names: Sequence[str], services: ServiceContainer, *, replays: bool = False) -> LogExamination:
    """Examine log files, folders of logs, or ``-`` for standard input; with ``replays`` also replay them in ``auto``."""
    reader = LogReader()
    examination = Examination(build_knowledge(services), records=replays)
    for call in _read_logs(reader, names):
        examination.add(call)
    diagnosis = examination.finish()
    return LogExamination(
        diagnosis=diagnosis,
        unread=reader.unread,
        unread_examples=tuple(reader.examples),
        replay=_replay_conversations(diagnosis, examination.recorded, services) if replays else None,
    )


def _replay_conversations(
    diagnosis: Diagnosis, recorded: Mapping[int, RecordedConversation], services: ServiceContainer
) -> LogReplay:
    """Replay each conversation with its own times, model and documents."""
    from lamella.wiring.transcripts import replay_exported_transcript  # only a replay needs the engine

    replayed: list[ReplayedConversation] = []
    left_out: Counter[str] = Counter()
    for totals in sorted(diagnosis.conversations, key=lambda one: one.number):
        conversation = recorded.get(totals.number)
        if conversation is None or not conversation.is_complete:
            left_out["the log has not the whole prompt"] += 1
            continue
        if totals.input_cost is None:
            left_out["the model has no known price"] += 1
            continue
        transcript, documents = build_transcript(conversation, totals.number)
        sums, readable = ReplayTotals(), 0
        try:
            turns = sums.add_each_turn(replay_exported_transcript(services, transcript))
            for turn, own in zip(turns, documents, strict=True):
                sent = "\n".join(message.text for message in turn.messages)
                readable += sum(one.text in sent for one in own)
        except LamellaError as error:
            left_out[error.message] += 1
            continue
        # The provider counts other tokens than Lamella; the replay gets the same ratio.
        ratio = Decimal(totals.input) / Decimal(totals.counted or 1)
        replayed.append(
            ReplayedConversation(
                number=totals.number,
                logged=totals.input_cost,
                auto=sums.cost * ratio,
                documents=sum(map(len, documents)),
                readable=readable,
            )
        )
    return LogReplay(conversations=replayed, left_out=dict(left_out))


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
