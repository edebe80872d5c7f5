"""Transcripts: conversations in a file, replayed, and written as a provider would be sent them."""

import json
import os
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from lamella.adapters.archive.markdown.names import name_file, refuse_file
from lamella.adapters.archive.transcript import (
    Transcript,
    TurnIn,
    load_transcript,
    parse_transcript,
    read_rounds,
    read_turn,
)
from lamella.adapters.files.writing import make_folder, replace_file, write_new
from lamella.core.text.content import encode_text
from lamella.core.values import replace
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.keeping.names import find_chat
from lamella.engine.replay import ScriptedTurn, replay
from lamella.engine.script import Script, play_script, read_script, write_script
from lamella.errors import LamellaError, UsageError
from lamella.wiring.faults import check_meaning, tell_place
from lamella.wiring.services import Services, read_services
from lamella.wiring.stores import has_store, open_backend
from lamella.wiring.trust import find_store
from lamella.wiring.worlds import open_dialogue

# A replay keeps nothing.
_NOWHERE = "memory:"


def replay_transcript(
    transcript: Transcript, *, overrides: Mapping[str, object], beside: Path, services: Services | None = None
) -> Iterator[TurnView]:
    """Every turn of a transcript as it would be sent. Its vault is relative to ``beside``."""
    given = {name: value for name, value in overrides.items() if value is not None}
    own = (services or read_services()).under({**transcript.settings(), **given})
    check_meaning(own.found)
    vault = beside / os.fsdecode(transcript.vault.encode()) if transcript.vault is not None else None
    dialogue = open_dialogue(own, conversation=transcript.conversation, vault=vault)
    return _numbered(replay(dialogue, _scripted(transcript, keep_model="model" not in given)))


def find_script(chat: str, url: str | None = None, *, services: Services | None = None) -> Script | None:
    """A kept conversation as it can be replayed; none if the store has none that is meant, or there is no store."""
    services = services or read_services()
    if not has_store(find_store(url or None, services)):
        return None
    backend = open_backend(url, services=services, create=False)
    try:
        found = find_chat(backend.store, chat)
        return None if found is None else read_script(backend, found.conversation)
    finally:
        backend.store.close()


def replay_script(
    script: Script, *, overrides: Mapping[str, object], services: Services | None = None
) -> Iterator[TurnView]:
    """Every turn of a kept conversation as it would be sent."""
    given = {name: value for name, value in overrides.items() if value is not None}
    return _numbered(play_script(open_backend(_NOWHERE, services=services), script, given))


def save_transcript(script: Script, folder: Path, *, file: str | None = None) -> Path:
    """Write a kept conversation as a transcript file, called by its name, or as the ``file`` that is named.

    One of its key is written over if all of it is in the new one, too; else the new one stands beside it, numbered. A
    file that is named is refused then.
    """
    text = json.dumps(write_script(script), ensure_ascii=False, indent=1) + "\n"
    data = encode_text(text)
    written = parse_transcript(data, name=script.name)
    names = (name_file(script.name, number).removesuffix(".md") + ".json" for number in count(1))
    places = (folder / name for name in (names if file is None else (file,)))
    place = next((one for one in places if _may_write(one, written)), None)
    if place is None:
        raise refuse_file(folder / (file or ""))
    try:
        make_folder(folder)
        (replace_file if place.exists() else write_new)(place, data)
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error.strerror}.", hint="Name another folder.") from error
    return place


def _may_write(place: Path, written: Transcript) -> bool:
    """Whether a file is not there, or has nothing that the new one has not; the last turn may be answered since."""
    if not place.exists():
        return True
    try:
        there = load_transcript(place)
    except LamellaError:
        return False
    if there.conversation != written.conversation or len(there.turns) > len(written.turns):
        return False
    pairs = list(zip(there.turns, written.turns, strict=False))
    return all(_holds(new, old, is_last=number == len(pairs)) for number, (old, new) in enumerate(pairs, start=1))


def _holds(new: TurnIn, old: TurnIn, *, is_last: bool) -> bool:
    since = {name: getattr(new, name) for name in ("reply", "rounds") if is_last and not getattr(old, name)}
    return new == old.model_copy(update=since)


def write_request(
    turn: TurnView, provider: str, *, answer: int | None, any_model: bool, services: Services | None = None
) -> dict[str, Any]:
    """The body that a provider's SDK would send for a turn; unless ``any_model``, to a model of that provider."""
    dialects = (services or read_services()).dialects
    model = turn.envelope.model
    if model is None:
        raise UsageError("The conversation names no model.", hint=lambda door: f"Name one with {door.option('model')}.")
    if not any_model:
        dialects.check_maker(provider, model)
    return dialects.write(provider, turn.chat_request(model=model, answer=turn.fit_answer(answer)))


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


def _scripted(transcript: Transcript, *, keep_model: bool) -> Iterator[ScriptedTurn]:
    """The turns as asked; a model given from outside holds for all of them."""
    for number, turn in enumerate(transcript.turns, start=1):
        asked = read_turn(turn, number, system=transcript.opening_system if number == 1 else None)
        asked = asked if keep_model else replace(asked, model=None)
        yield ScriptedTurn(asked=asked, reply=turn.reply, at=turn.at, rounds=read_rounds(turn, number))
