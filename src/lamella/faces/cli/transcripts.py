"""Transcripts as commands take them: a file, or ``-`` for stdin."""

import sys
from pathlib import Path

from lamella.errors import UsageError
from lamella.wiring import Transcript, load_transcript, read_transcript


def load_named(file: str) -> Transcript:
    """The transcript that was named on the command line."""
    if file != "-":
        return load_transcript(Path(file))
    if sys.stdin is None:
        raise UsageError("There is no stdin to read the transcript from.", hint="Pipe it in, or name a file.")
    return read_transcript(sys.stdin.buffer, name="stdin")


def find_folder(file: str) -> Path:
    """The folder that its vault is relative to."""
    return Path.cwd() if file == "-" else Path(file).parent
