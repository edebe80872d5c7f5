"""The entry: words come in, an exit code goes out, and what goes wrong is told.

Only what every command needs is imported here; a command is imported when it is run.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise

import lamella
from lamella.errors import LamellaError, UntrustedError, UsageError
from lamella.faces.cli import INTERRUPTED
from lamella.faces.cli.terminal.streams import discard_stdout, finish_stdout, speak_utf8

_VARIABLES = "LAMELLA_"
_PROGRAM = "lamella"


def run_words(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code; what goes wrong is told."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"] or ["--help"]
    speak_utf8()
    _tell_misspelt()
    run = _find_run(words)
    try:
        with _shown_log() if debug else nullcontext():
            return _run(run)
    except (BrokenPipeError, SystemExit):
        # The reader has seen enough; rich leaves a closed pipe with SystemExit. A check cut short has not passed.
        discard_stdout()
        return 1 if "--check" in words else 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last door: a sentence, never a traceback
        return _fail(error, words, debug=debug)
    except BaseException as error:
        code = _find_signal(error)
        if code is None:
            raise
        return code


@contextmanager
def _shown_log() -> Iterator[None]:
    """What is logged goes to stderr as long as a command runs: ids and hashes, never text."""
    import logging  # only those who look for a fault need it

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


def _find_run(words: Sequence[str]) -> Callable[[], object]:
    """What does the words' work. Whoever asks for the version alone need not wait for a parser of commands."""
    if words == ["--version"]:
        return _print_version
    from lamella.faces.cli.app import find_run

    return find_run(words)


def _print_version() -> None:
    sys.stdout.write(f"lamella {lamella.__version__}\n")


def _run(run: Callable[[], object]) -> int:
    if sys.stdout is None:
        raise LamellaError("There is no stdout to write to.", hint="Redirect it to a file, or to /dev/null.")
    result = _run_trusted(run)
    if result == INTERRUPTED:
        # What typer makes of Ctrl-C, without a word.
        raise KeyboardInterrupt
    sys.stdout.flush()
    return result if isinstance(result, int) else 0


def _run_trusted(run: Callable[[], object]) -> object:
    """Run a command; a place that only somebody else names is asked about at a terminal, and the command begun anew."""
    try:
        return run()
    except UntrustedError as refused:
        from lamella.faces.cli.terminal.consent import go_on_trusted

        return go_on_trusted(refused, run)


def _fail(error: BaseException, words: Sequence[str], *, debug: bool) -> int:
    from lamella.faces.cli.access import COMPLETING

    if COMPLETING in os.environ:
        # A shell asks while somebody types: whatever is told would stand in their line.
        return INTERRUPTED if _is_interruption(error) else 1
    from lamella.faces.cli.terminal.door import ShellDoor
    from lamella.faces.cli.terminal.failures import exit_code, print_failure
    from lamella.faces.cli.terminal.telling import tell

    if debug:
        import traceback

        tell("".join(traceback.format_exception(error)).rstrip(), err=True)
    failure = _explain(error)
    print_failure(failure, ShellDoor(_find_store(words)), as_json="--json" in words)
    finish_stdout()
    return INTERRUPTED if _is_interruption(error) else exit_code(failure)


def _find_signal(error: BaseException) -> int | None:
    """The exit code of a process that a signal ended, if one did: nobody is told who is not there any more."""
    from lamella.faces.cli.terminal.signals import SignalEnd

    finish_stdout()
    return error.exit_code if isinstance(error, SignalEnd) else None


def _find_store(words: Sequence[str]) -> str | None:
    """The store that a command was given, if it was."""
    apart = [value for word, value in pairwise(words) if word == "--store"]
    joined = [word.removeprefix("--store=") for word in words if word.startswith("--store=")]
    return next(iter((*apart, *joined)), None)


def _is_interruption(error: BaseException) -> bool:
    """Whether it was Ctrl-C; a question that got no answer is given up in the same way."""
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)


def _tell_misspelt() -> None:
    """A variable that means nothing is ignored, and that should not go unnoticed."""
    if sys.stderr is None or not any(name.upper().startswith(_VARIABLES) for name in os.environ):
        return
    from lamella.faces.cli.terminal.lines import show_line
    from lamella.faces.cli.terminal.telling import tell
    from lamella.wiring import find_misspelt

    with suppress(OSError):
        for name, near in find_misspelt().items():
            tell(f"warning: {show_line(name)} is no setting and is ignored. Did you mean {near}?", err=True)


def _explain(error: BaseException) -> LamellaError:
    from typer.exceptions import Abort, TyperException

    match error:
        case LamellaError():
            return error
        case Abort() | KeyboardInterrupt():
            return LamellaError("Stopped.", hint="Run the command again to start over.")
        case TyperException():
            # Choices are written on lines of their own, and a failure is told on one.
            told = re.sub(r"\s*[\n\t]\s*", " ", getattr(error, "format_message", error.__str__)())
            context = getattr(error, "ctx", None)
            path = getattr(context, "command_path", "") or _PROGRAM
            inner = sorted(getattr(getattr(context, "command", None), "commands", ()))
            # All commands of the program are more than a line holds; those of a group are what was looked for.
            choice = f"Choose one of: {', '.join(inner)}. " if inner and path != _PROGRAM else ""
            return UsageError(told, hint=f"{choice}See: {path} --help")
        case MemoryError() | RecursionError():
            return LamellaError("There is not enough memory for this.", hint="Use a smaller input.")
        case OSError():
            return LamellaError(
                f"The system refused: {error.strerror or error}.", hint="Check free space and permissions."
            )
    return LamellaError(
        f"Something unexpected went wrong: {type(error).__name__}: {error}",
        hint="This is a bug in Lamella. Run again with --debug and report what it shows.",
    )
