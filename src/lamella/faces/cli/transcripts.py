"""Conversations to replay, as commands take them: a transcript file, ``-`` for stdin, or the name of a kept one."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from lamella import Turn
from lamella.errors import LamellaError, TranscriptError, UsageError
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell
from lamella.wiring import (
    Services,
    Transcript,
    find_script,
    load_transcript,
    read_transcript,
    replay_script,
    replay_transcript,
)

_STDIN = "-"


def replay_named(
    name: str, *, overrides: Mapping[str, object], store: str | None, services: Services
) -> tuple[str, int, Iterator[Turn]]:
    """The conversation that was named on the command line: its id, how many turns it has, and each as it is sent.

    A file is what is meant first; where a conversation of that name is kept as well, that is said.
    """
    if name == _STDIN or _is_file(name):
        _tell_kept(name, store, services)
    else:
        script = find_script(name, store, services=services)
        if script is not None:
            turns = replay_script(script, overrides=overrides, services=services)
            return script.conversation, len(script.turns), turns
    transcript = _load(name)
    beside = Path.cwd() if name == _STDIN else Path(name).parent
    turns = replay_transcript(transcript, overrides=overrides, beside=beside, services=services)
    return transcript.conversation, len(transcript.turns), turns


def _load(file: str) -> Transcript:
    if file != _STDIN and not _is_file(file):
        return _load_missing(file)
    if file != _STDIN:
        return load_transcript(Path(file))
    if sys.stdin is None:
        raise UsageError("There is no stdin to read the transcript from.", hint="Pipe it in, or name a file.")
    return read_transcript(sys.stdin.buffer, name="stdin")


def _load_missing(file: str) -> Transcript:
    """What neither a file nor a conversation is, told as a file that is not there."""
    try:
        return load_transcript(Path(file))
    except TranscriptError as error:
        error.advice = lambda door: f"Name a transcript by its path, or a conversation as {door.list_chats()} shows it."
        raise


def _is_file(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def _tell_kept(name: str, store: str | None, services: Services) -> None:
    """Say that a file is replayed although a conversation has its name; what the store lacks is no matter here."""
    if name == _STDIN or Path(name).name != name:
        return
    with suppress(LamellaError):
        if find_script(name, store, services=services) is not None:
            told = f"note: {show_line(name)} is a file and a kept conversation; this is the file."
            tell(f"{told} Elsewhere than in its folder the name means the conversation.", err=True)
