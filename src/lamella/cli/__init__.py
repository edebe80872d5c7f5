"""The command line: modules that parse arguments, call the engine and print the result.

Enters: command line arguments, files.
Leaves: text on stdout, errors on stderr, an exit code.
May not enter: decisions about prompts; tracebacks, unless ``--debug`` asks for them.
"""

from collections.abc import Sequence

__all__ = ["main"]

# The exit code that shells expect from a program that Ctrl-C ended: 128 plus the number of SIGINT.
INTERRUPTED_EXIT_CODE = 130
# The environment variable by which a shell asks for completions.
COMPLETION_VARIABLE = "_LAMELLA_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0: success. 1: a check failed or the work could not be done. 2: wrong usage. 130: interrupted.
    """
    try:
        from lamella.cli.entry_point import run_command_line  # inside try: Ctrl-C may come meanwhile

        return run_command_line(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
