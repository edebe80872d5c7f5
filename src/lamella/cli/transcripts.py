"""Find a conversation to replay: a transcript file, ``-`` for stdin, or the name of a stored conversation."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lamella import Turn
from lamella.cli.output import escape_to_short_line, print_text
from lamella.errors import LamellaError, TranscriptError, UsageError
from lamella.wiring import (
    ServiceContainer,
    Transcript,
    find_conversation_key,
    load_transcript,
    read_transcript,
    replay_stored_conversation,
    replay_transcript,
)

_STDIN = "-"
_MAX_LISTED_TURNS = 10


def replay_named(
    name: str, *, overrides: Mapping[str, object], store: str | None, services: ServiceContainer
) -> tuple[str, int, Iterator[Turn]]:
    """Return the id, the number of turns and the turns of the conversation that the command line names.

    A file wins over a stored conversation of the same name, and a note on stderr says so.
    """
    if name == _STDIN or _is_file(name):
        _print_file_preferred(name, store, services)
    else:
        stored = replay_stored_conversation(name, store, overrides=overrides, services=services)
        if stored is not None:
            conversation, (count, turns) = stored
            return conversation, count, turns
    transcript = _load_transcript(name)
    if transcript.differing_turns:
        print_text(differing_turns_note(transcript.differing_turns), err=True)
    beside = Path.cwd() if name == _STDIN else Path(name).parent
    turns = replay_transcript(transcript, overrides=overrides, base_folder=beside, services=services)
    return transcript.conversation, len(transcript.turns), turns


def differing_turns_note(numbers: Sequence[int]) -> str:
    """Return a note about the turns of a stored conversation that its transcript cannot reproduce."""
    shown = ", ".join(f"{number:,}" for number in numbers[:_MAX_LISTED_TURNS])
    more = f" and {len(numbers) - _MAX_LISTED_TURNS:,} more" if len(numbers) > _MAX_LISTED_TURNS else ""
    return (
        f"note: {'turn' if len(numbers) == 1 else 'turns'} {shown}{more} of this transcript "
        f"{'differs' if len(numbers) == 1 else 'differ'} from what was sent: a transcript contains no compactions, "
        "summaries, notes inside instructions, images inside notes or erased contents."
    )


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
        error.raw_hint = lambda hints: (
            f"Give the path of a transcript, or the name of a conversation; {hints.list_chats_hint()} lists them."
        )
        raise


def _is_file(name: str) -> bool:
    """Return whether a name is a file or a pipe. A folder can never be a transcript, so it may be a conversation."""
    try:
        return Path(name).exists() and not Path(name).is_dir()
    except (OSError, ValueError):
        return False


def _print_file_preferred(name: str, store: str | None, services: ServiceContainer) -> None:
    """Print a note if a stored conversation has the same name as the file; store errors are ignored here."""
    if name == _STDIN or Path(name).name != name:
        return
    with suppress(LamellaError):
        key = find_conversation_key(name, store, services=services)
        if key is not None:
            line = f"note: {escape_to_short_line(name)} is both a file and a conversation; this is the file."
            other = "run this in another folder" if Path(key).exists() else f"give its id, {escape_to_short_line(key)}"
            print_text(f"{line} For the conversation, {other}.", err=True)
