"""The entry point: run a command, print its failure and return its exit code.

This module imports only what every command needs. A command's module is imported when the command runs.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise

import lamella
from lamella.cli import COMPLETION_VARIABLE, INTERRUPTED_EXIT_CODE
from lamella.cli.streams import discard_stdout, finish_stdout, force_utf8_output
from lamella.errors import LamellaError, UntrustedError, UsageError

_VARIABLE_PREFIX = "LAMELLA_"
_PROGRAM = "lamella"
_CHAT_ARGUMENT = "chat"


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; failures are printed."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Handled here and not by the parser, because it must also work if parsing itself fails.
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    force_utf8_output()
    _warn_misspelt_variables()
    run = _resolve_command(words)
    try:
        with _log_to_stderr() if debug else nullcontext():
            return _run_command(run)
    except (BrokenPipeError, SystemExit):
        # The reader closed the pipe; rich turns that into SystemExit. A check that was cut short did not pass.
        discard_stdout()
        return 1 if "--check" in words else 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - top level: print a message, not a traceback
        return _report_failure(error, words, debug=debug)
    except BaseException as error:
        code = _signal_exit_code(error)
        if code is None:
            raise
        return code


@contextmanager
def _log_to_stderr() -> Iterator[None]:
    """Write log records to stderr while a command runs; they contain ids and hashes, never text."""
    import logging  # only --debug needs it

    logger, shown = logging.getLogger("lamella"), logging.StreamHandler()
    shown.setFormatter(logging.Formatter("debug: %(message)s"))
    level = logger.level
    logger.addHandler(shown)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(shown)
        logger.setLevel(level)


def _resolve_command(words: Sequence[str]) -> Callable[[], object]:
    """Return the function that runs the command; no arguments and ``--version`` do not load the command parser."""
    if words == ["--version"]:
        return _print_version
    if not words and COMPLETION_VARIABLE not in os.environ:
        return _print_overview
    from lamella.cli.app import resolve_command

    return resolve_command(words)


def _print_version() -> None:
    sys.stdout.write(f"lamella {lamella.__version__}\n")


def _print_overview() -> None:
    from lamella.cli.overview import render_overview

    sys.stdout.write(f"{render_overview()}\n")


def _run_command(command: Callable[[], object]) -> int:
    if sys.stdout is None:
        raise LamellaError("stdout is closed.", hint="Redirect it to a file or to /dev/null.")
    result = _run_with_trust_prompt(command)
    if result == INTERRUPTED_EXIT_CODE:
        # Typer turns Ctrl-C into this exit code without printing anything.
        raise KeyboardInterrupt
    sys.stdout.flush()
    return result if isinstance(result, int) else 0


def _run_with_trust_prompt(command: Callable[[], object]) -> object:
    """Run a command; if a location is not trusted yet, ask the user at a terminal and start the command again."""
    try:
        return command()
    except UntrustedError as refused:
        from lamella.cli.consent import retry_after_trust

        return retry_after_trust(refused, command)


def _report_failure(error: BaseException, words: Sequence[str], *, debug: bool) -> int:
    if COMPLETION_VARIABLE in os.environ:
        # A shell asks for completions while the user types: any output would appear in the input line.
        return INTERRUPTED_EXIT_CODE if _is_interruption(error) else 1
    from lamella.cli.errors import CliHints, exit_code, print_failure
    from lamella.cli.output import print_text

    if debug:
        import traceback

        print_text("".join(traceback.format_exception(error)).rstrip(), err=True)
    failure = _to_lamella_error(error)
    print_failure(failure, CliHints(_store_option(words)), as_json="--json" in words)
    finish_stdout()
    return INTERRUPTED_EXIT_CODE if _is_interruption(error) else exit_code(failure)


def _signal_exit_code(error: BaseException) -> int | None:
    """Return the exit code if a signal ended the process; None otherwise.

    Nothing is printed, because the terminal may be gone.
    """
    from lamella.cli.interrupts import TerminatedBySignal

    finish_stdout()
    return error.exit_code if isinstance(error, TerminatedBySignal) else None


def _store_option(words: Sequence[str]) -> str | None:
    """Return the value of ``--store`` on the command line, if it is there."""
    store_values = [value for word, value in pairwise(words) if word == "--store"]
    joined = [word.removeprefix("--store=") for word in words if word.startswith("--store=")]
    return next(iter((*store_values, *joined)), None)


def _is_interruption(error: BaseException) -> bool:
    """Return whether Ctrl-C ended the command; an unanswered confirmation counts as well."""
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)


def _warn_misspelt_variables() -> None:
    """Warn about environment variables that look like misspelt settings, because they are ignored."""
    if sys.stderr is None or not any(name.upper().startswith(_VARIABLE_PREFIX) for name in os.environ):
        return
    from lamella.cli.output import escape_to_short_line, print_text
    from lamella.wiring import find_misspelt_variables

    with suppress(OSError):
        for name, similar in find_misspelt_variables().items():
            print_text(
                f"warning: Unknown setting {escape_to_short_line(name)} is ignored. Did you mean {similar}?", err=True
            )


def _to_lamella_error(error: BaseException) -> LamellaError:
    """Convert any exception into a ``LamellaError`` with a message and a hint."""
    from typer.exceptions import Abort, TyperException

    match error:
        case LamellaError():
            return error
        case Abort() | KeyboardInterrupt():
            return LamellaError("Stopped.", hint="Run the command again to start over.")
        case TyperException():
            # Typer writes choices on separate lines, and Lamella prints an error on one line.
            message = re.sub(r"\s*[\n\t]\s*", " ", getattr(error, "format_message", error.__str__)())
            context = getattr(error, "ctx", None)
            path = getattr(context, "command_path", "") or _PROGRAM
            inner = sorted(getattr(getattr(context, "command", None), "commands", ()))
            # List the commands of a group only: all commands of the program are too many for one line.
            choice = f"Choose one of: {', '.join(inner)}. " if inner and path != _PROGRAM else ""
            if getattr(getattr(error, "param", None), "name", "") == _CHAT_ARGUMENT:
                choice = "`lamella chats list` lists the conversations. "
            return UsageError(message, hint=f"{choice}See: {path} --help")
        case MemoryError() | RecursionError():
            return LamellaError("Not enough memory.", hint="Use a smaller input.")
        case OSError():
            return LamellaError(
                f"The operating system reported: {error.strerror or error}.", hint="Check free space and permissions."
            )
    return LamellaError(
        f"Unexpected error: {type(error).__name__}: {error}",
        hint="This is a bug in Lamella. Run again with --debug and report the output.",
    )
