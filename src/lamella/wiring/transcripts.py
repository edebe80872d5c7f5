"""Transcripts: conversations in a file, replayed, and written as a provider would be sent them."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lamella.adapters.archive.transcript import Transcript, read_rounds, read_turn
from lamella.core.values import replace
from lamella.engine.replay import Scripted, replay
from lamella.engine.turn import TurnView
from lamella.errors import LamellaError, UsageError
from lamella.wiring.faults import check_meaning, tell_place
from lamella.wiring.services import Services, read_services
from lamella.wiring.worlds import open_runner


def replay_transcript(
    transcript: Transcript, *, overrides: Mapping[str, object], beside: Path, services: Services | None = None
) -> Iterator[TurnView]:
    """Every turn of a transcript as it would be sent. Its vault is relative to ``beside``."""
    given = {name: value for name, value in overrides.items() if value is not None}
    own = (services or read_services()).under({**transcript.settings(), **given})
    check_meaning(own.found)
    vault = beside / os.fsdecode(transcript.vault.encode()) if transcript.vault is not None else None
    runner = open_runner(own, conversation=transcript.conversation, vault=vault)
    return _numbered(replay(runner, _scripted(transcript, keep_model="model" in given)))


def write_request(
    turn: TurnView, provider: str, *, answer: int, any_model: bool, services: Services | None = None
) -> dict[str, Any]:
    """The body that a provider's SDK would send for a turn; unless ``any_model``, to a model of that provider."""
    dialects = (services or read_services()).dialects
    model = turn.envelope.model
    if model is None:
        raise UsageError("The transcript names no model.", hint="Name one with --model.")
    if not any_model:
        dialects.check_maker(provider, model)
    return dialects.write(provider, turn.chat_request(model=model, answer=answer))


def _numbered(turns: Iterator[TurnView]) -> Iterator[TurnView]:
    """The same turns; an error says in which of them it happened."""
    number = 1
    try:
        for turn in turns:
            yield turn
            number = turn.number + 1
    except LamellaError as error:
        tell_place(error, f"In turn {number}")
        raise


def _scripted(transcript: Transcript, *, keep_model: bool) -> Iterator[Scripted]:
    """The turns as asked; a model given from outside holds for all of them."""
    for number, turn in enumerate(transcript.turns, start=1):
        asked = read_turn(turn, number, system=transcript.system if number == 1 else None)
        asked = replace(asked, model=None) if keep_model else asked
        yield Scripted(asked=asked, reply=turn.reply, at=turn.at, rounds=read_rounds(turn, number))
