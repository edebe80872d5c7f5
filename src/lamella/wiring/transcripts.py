"""Transcripts: replaying conversations from a file or a store, saving them, and rendering provider requests."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from lamella.archive.markdown.archive import archive_file_name, file_conflict_error
from lamella.archive.transcript import (
    Transcript,
    TurnInput,
    build_tool_rounds,
    build_turn_request,
    load_transcript,
    parse_transcript,
)
from lamella.conversation.names import find_conversation_by_name
from lamella.conversation.sent_turns import SentTurns, load_sent_turns
from lamella.conversation.transcript import (
    ConversationScript,
    ReplayTurn,
    load_script,
    replay,
    replay_conversation_script,
    script_to_transcript,
)
from lamella.conversation.turn import BuiltTurn
from lamella.core.text.content import encode_text
from lamella.core.values import replace
from lamella.errors import InvalidOperationError, LamellaError, UsageError
from lamella.files import make_data_folder, replace_file, write_new_file
from lamella.wiring.adapters import open_prompt_builder
from lamella.wiring.services import ServiceContainer, read_services
from lamella.wiring.setting_checks import add_error_location, raise_first_setting_error
from lamella.wiring.stores import has_store, open_backend
from lamella.wiring.trust import resolve_store_url

# A replay stores nothing.
_IN_MEMORY_URL = "memory:"


def replay_transcript(
    transcript: Transcript,
    *,
    overrides: Mapping[str, object],
    base_folder: Path,
    services: ServiceContainer | None = None,
) -> Iterator[BuiltTurn]:
    """Yield every turn of a transcript as it would be sent; its vault path is relative to ``base_folder``."""
    given = {name: value for name, value in overrides.items() if value is not None}
    own = (services or read_services()).with_only_overrides({**transcript.settings(), **given})
    raise_first_setting_error(own.resolved)
    vault = base_folder / os.fsdecode(transcript.vault.encode()) if transcript.vault is not None else None
    prompt_builder = open_prompt_builder(
        own, conversation_key=transcript.conversation, vault=vault, learns_retention=transcript.learns_retention
    )
    return _with_turn_numbers_in_errors(
        replay(prompt_builder, _iter_replay_turns(transcript, keep_model="model" not in given))
    )


def replay_exported_transcript(services: ServiceContainer, body: Mapping[str, object]) -> Iterator[BuiltTurn]:
    """Yield every turn of a transcript that is about to be written, as its reader would get it without the vault."""
    transcript = parse_transcript(encode_text(json.dumps(body, ensure_ascii=False)), name="transcript")
    return replay_transcript(transcript, overrides={}, base_folder=Path(), services=services)


def find_conversation_key(
    name_or_key: str, url: str | None = None, *, services: ServiceContainer | None = None
) -> str | None:
    """Return the key of the conversation with this name, or None if the store or the conversation does not exist."""
    services = services or read_services()
    if not has_store(resolve_store_url(url or None, services)):
        return None
    backend = open_backend(url, services=services, create=False)
    try:
        found = find_conversation_by_name(backend.store, name_or_key)
        return None if found is None else found.conversation
    finally:
        backend.store.close()


def replay_stored_conversation(
    name_or_key: str,
    url: str | None = None,
    *,
    overrides: Mapping[str, object],
    services: ServiceContainer | None = None,
) -> tuple[str, SentTurns] | None:
    """Return the key of a stored conversation and its turns; None if the store or the conversation does not exist.

    The turns are as they were sent. With settings in ``overrides`` they are asked again under these settings.
    """
    services = services or read_services()
    if not has_store(resolve_store_url(url or None, services)):
        return None
    given = {name: value for name, value in overrides.items() if value is not None}
    with ExitStack() as stack:
        backend = open_backend(url, services=services, create=False)
        stack.callback(backend.store.close)
        found = find_conversation_by_name(backend.store, name_or_key)
        if found is None:
            return None
        script = load_script(backend, found.conversation) if given else None
        # Turns that name no other model were sent to the given one, or to a model that only the caller knew.
        if script is not None and (given.keys() != {"model"} or not script.models <= {given["model"]}):
            turns = replay_conversation_script(open_backend(_IN_MEMORY_URL, services=services), script, given)
            return script.conversation, SentTurns(len(script.turns), _with_turn_numbers_in_errors(turns))
        sent = load_sent_turns(backend, found.conversation)
        return found.conversation, SentTurns(
            sent.turn_count, _close_stack_after_turns(_with_turn_numbers_in_errors(sent.turns), stack.pop_all())
        )


def _close_stack_after_turns(turns: Iterator[BuiltTurn], stack: ExitStack) -> Iterator[BuiltTurn]:
    with stack:
        yield from turns


def save_transcript(script: ConversationScript, folder: Path, *, file: str | None = None) -> Path:
    """Write a stored conversation as a transcript and return the path; the file has its name, or is ``file``.

    A file of the same conversation is replaced if the new transcript contains all of it. Otherwise the new file gets a
    number, or, if ``file`` was given, an error is raised.
    """
    text = json.dumps(script_to_transcript(script), ensure_ascii=False, indent=1) + "\n"
    data = encode_text(text)
    written = parse_transcript(data, name=script.name)
    names = (archive_file_name(script.name, number).removesuffix(".md") + ".json" for number in count(1))
    paths = (folder / name for name in (names if file is None else (file,)))
    path = next((one for one in paths if _can_write_transcript(one, written)), None)
    if path is None:
        raise file_conflict_error(folder / (file or ""))
    try:
        make_data_folder(folder)
        (replace_file if path.exists() else write_new_file)(path, data)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", hint="Name another folder.") from error
    return path


def _can_write_transcript(path: Path, transcript: Transcript) -> bool:
    """Return whether a path is free, or its transcript is a part of the new one.

    The last turn of the old transcript may have been answered since.
    """
    if not path.exists():
        return True
    try:
        existing = load_transcript(path)
    except LamellaError:
        return False
    if existing.conversation != transcript.conversation or len(existing.turns) > len(transcript.turns):
        return False
    pairs = list(zip(existing.turns, transcript.turns, strict=False))
    return all(
        _extends_turn(new, old, is_last=number == len(pairs)) for number, (old, new) in enumerate(pairs, start=1)
    )


def _extends_turn(new: TurnInput, old: TurnInput, *, is_last: bool) -> bool:
    since = {name: getattr(new, name) for name in ("reply", "rounds") if is_last and not getattr(old, name)}
    return new == old.model_copy(update=since)


def build_request_body(
    turn: BuiltTurn,
    provider: str,
    *,
    max_answer_tokens: int | None,
    allow_any_model: bool,
    model: str | None = None,
    services: ServiceContainer | None = None,
) -> dict[str, Any]:
    """Return the request body that a provider's SDK would send for a turn.

    ``model`` is used if the turn names none. Unless ``allow_any_model`` is set, the model must belong to the provider.
    Raises ``InvalidOperationError`` for a stored turn whose request cannot be derived as it was sent.
    """
    if turn.check is not None and not turn.check.has_no_known_difference:
        raise InvalidOperationError(
            f"The request of turn {turn.number} cannot be shown as it was sent: {turn.check.detail}.",
            hint=lambda hints: (
                f"Use {hints.verify_store_hint()} to check the store; the messages can still be replayed."
            ),
        )
    dialects = (services or read_services()).wire_formats
    model = turn.envelope.model or model
    if model is None:
        raise UsageError(
            "The conversation names no model.", hint=lambda hints: f"Name one with {hints.option_hint('model')}."
        )
    if not allow_any_model:
        dialects.check_model_provider(provider, model)
    return dialects.build_http_body(
        provider, turn.build_model_request(model=model, max_answer_tokens=turn.choose_answer_limit(max_answer_tokens))
    )


def _with_turn_numbers_in_errors(turns: Iterator[BuiltTurn]) -> Iterator[BuiltTurn]:
    """Yield the same turns, and add the number of the turn to the message of an error."""
    number = 1
    try:
        for turn in turns:
            yield turn
            number = turn.number + 1
    except LamellaError as error:
        add_error_location(error, f"In turn {number}")
        raise


def _iter_replay_turns(transcript: Transcript, *, keep_model: bool) -> Iterator[ReplayTurn]:
    """Yield the turns of a transcript; with ``keep_model`` False their own models are ignored."""
    for number, turn in enumerate(transcript.turns, start=1):
        turn_request = build_turn_request(turn, number, system=transcript.initial_system if number == 1 else None)
        turn_request = turn_request if keep_model else replace(turn_request, model=None)
        yield ReplayTurn(
            turn_request=turn_request, reply=turn.reply, at=turn.at, rounds=build_tool_rounds(turn, number)
        )
