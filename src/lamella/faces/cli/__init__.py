"""Command line: a file per command, or for two of a kind. It parses, calls, prints.

Enters: words on a command line, files. Leaves: text on stdout, errors on stderr, an exit code.
May not enter: decisions about prompts; a traceback, unless ``--debug`` asks for it.
"""

from collections.abc import Sequence

__all__ = ["main"]

# What shells make of a program that Ctrl-C ended.
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. 0: good. 1: a check failed or the work could not be done. 2: wrong usage. 130: interrupted."""
    try:
        from lamella.faces.cli.entry import run_words  # takes a moment, in which someone may think better of it

        return run_words(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
