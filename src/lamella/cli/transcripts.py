"""Find a conversation to replay: a transcript file, ``-`` for stdin, or the name of a stored conversation."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from lamella import Turn
from lamella.cli.output import escape_line, print_text
from lamella.errors import LamellaError, TranscriptError, UsageError
from lamella.wiring import (
    ServiceContainer,
    Transcript,
    load_replay_script,
    load_transcript,
    read_transcript,
    replay_script,
    replay_transcript,
)

_STDIN = "-"


def replay_named(
    name: str, *, overrides: Mapping[str, object], store: str | None, services: ServiceContainer
) -> tuple[str, int, Iterator[Turn]]:
    """Return the id, the number of turns and the turns of the conversation that the command line names.

    A file wins over a stored conversation of the same name, and a note on stderr says so.
    """
    if name == _STDIN or _is_file(name):
        _print_file_preferred(name, store, services)
    else:
        script = load_replay_script(name, store, services=services)
        if script is not None:
            turns = replay_script(script, overrides=overrides, services=services)
            return script.conversation, len(script.turns), turns
    transcript = _load_transcript(name)
    beside = Path.cwd() if name == _STDIN else Path(name).parent
    turns = replay_transcript(transcript, overrides=overrides, base_folder=beside, services=services)
    return transcript.conversation, len(transcript.turns), turns


def _load_transcript(file: str) -> Transcript:
    if file != _STDIN and not _is_file(file):
        return _raise_missing_transcript(file)
    if file != _STDIN:
        return load_transcript(Path(file))
    if sys.stdin is None:
        raise UsageError("stdin is closed, so the transcript cannot be read.", hint="Pipe it in, or give a file.")
    return read_transcript(sys.stdin.buffer, name="stdin")


def _raise_missing_transcript(file: str) -> Transcript:
    """Raise the error of a missing transcript file, with a hint that also mentions conversations."""
    try:
        return load_transcript(Path(file))
    except TranscriptError as error:
        error.raw_hint = lambda door: (
            f"Give the path of a transcript, or the name of a conversation; {door.list_chats_hint()} lists them."
        )
        raise


def _is_file(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def _print_file_preferred(name: str, store: str | None, services: ServiceContainer) -> None:
    """Print a note if a stored conversation has the same name as the file; store errors are ignored here."""
    if name == _STDIN or Path(name).name != name:
        return
    with suppress(LamellaError):
        if load_replay_script(name, store, services=services) is not None:
            told = f"note: {escape_line(name)} is both a file and a conversation; this is the file."
            print_text(f"{told} For the conversation, run this in another folder.", err=True)
