"""``lamella code fix``: run the check, show the change that the answer offers, and apply it after a yes."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer
from msgspec.structs import asdict

from lamella.attach import DEFAULT_CODE_BUDGET, Attachment, Code, Selection
from lamella.cli.output import confirm, escape_to_short_line, format_count, is_terminal, print_text
from lamella.errors import UsageError, WriteDeniedError
from lamella.hints import format_command_line
from lamella.schemas.answers import ChangeCheckJson, CodeAnswerJson, CodeChangeJson, CodeFixJson, FileChangeJson
from lamella.wiring import open_repository_editor, read_services

if TYPE_CHECKING:
    from lamella.ports import FileChange

# Characters of a check's output that are kept, from its end, and lines of it that are shown.
_MAX_CHECK_OUTPUT = 100_000
_SHOWN_CHECK_LINES = 15
_TERMINAL = "/dev/tty"


class CheckResult(NamedTuple):
    """A run of the command that the user gave: its exit code, and the end of its output."""

    command: str
    exit_code: int
    output: str

    @property
    def outcome(self) -> str:
        return "passed" if self.exit_code == 0 else f"failed (exit code {self.exit_code})"


def run_check(command: str) -> CheckResult:
    """Run the user's command in the current folder and return its result; Ctrl-C stops it."""
    if not command.strip():
        raise UsageError("--check has no command.", hint='Example: --check "pytest -q"')
    output = ""
    # The user wrote the command for a shell, as in a Makefile.
    with subprocess.Popen(
        command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None, "the output is a pipe"
        try:
            while block := os.read(process.stdout.fileno(), _MAX_CHECK_OUTPUT):
                output = (output + block.decode(errors="replace"))[-_MAX_CHECK_OUTPUT:]
        except BaseException:
            process.kill()
            raise
    return CheckResult(command, process.returncode, output)


def read_named_files(
    text: str, attached: Sequence[Attachment], *, folder: Path | None, model: str | None
) -> list[Attachment]:
    """Return the files of the repository that a text names, and print which are read and which are not."""
    services = read_services()
    skip = [str(path) for one in attached if (path := getattr(one, "path", None))]
    named = open_repository_editor(folder, services).read_named_files(
        text,
        budget=DEFAULT_CODE_BUDGET,
        count_tokens=services.counter.get_tokenizer(model or services.settings.model).count,
        skip=skip,
    )
    read = [one for one in named if not one.reason]
    if read:
        shown = (one.path if one.lines is None else f"{one.path}:{one.lines[0]}-{one.lines[1]}" for one in read)
        print_text(f"attached: {escape_to_short_line(' · '.join(shown))}", err=True)
    for one in named:
        if one.reason:
            print_text(
                f"note: {escape_to_short_line(one.path)} is not attached: {escape_to_short_line(one.reason)}.", err=True
            )
    return [
        Code(path=one.path, text=one.text)
        if one.lines is None
        else Selection(path=one.path, text=one.text, lines=one.lines)
        for one in read
    ]


class ChangeOffer:
    """The change in an answer: refused, offered to the user, or applied."""

    def __init__(self, *, folder: Path | None, check: CheckResult | None, applies_without_asking: bool) -> None:
        self._folder, self._check_before, self._applies = folder, check, applies_without_asking
        self._check_after: CheckResult | None = None
        self._changes: Sequence[FileChange] = ()
        self._refusal: WriteDeniedError | None = None
        self._is_applied = False

    def apply_if_confirmed(self, answer: str, *, is_complete: bool, asks: bool) -> None:
        """Read the change in an answer, show it, and apply it if the user agrees.

        Without ``asks`` it is applied only if the command line says so.
        """
        repository = open_repository_editor(self._folder)
        try:
            self._changes = repository.plan_changes(answer)
            if self._changes and not is_complete:
                self._changes = ()
                raise WriteDeniedError("The answer was cut off, so its change is not applied.", hint="Ask again.")
            if self._changes and self._is_confirmed(asks=asks):
                repository.write(self._changes)
                self._is_applied = True
        except WriteDeniedError as error:
            self._refusal = error
            return
        if self._is_applied:
            self._print_applied()

    def raise_if_unsuccessful(self) -> None:
        """Raise the refusal, or exit with 1 if the check fails after the change."""
        if self._refusal is not None:
            raise self._refusal
        if self._check_after is not None and self._check_after.exit_code:
            raise typer.Exit(1)

    def add_to_json(self, answer: CodeAnswerJson) -> CodeFixJson:
        """Return the body of the answer with its change."""
        before, after = self._check_before, self._check_after
        check = None
        if before is not None:
            check = ChangeCheckJson(
                command=before.command, before=before.exit_code, after=None if after is None else after.exit_code
            )
        files = [FileChangeJson(path=one.path, diff=one.diff, created=one.before is None) for one in self._changes]
        refused = None if self._refusal is None else self._refusal.message
        change = CodeChangeJson(files=files, applied=self._is_applied, refused=refused, check=check)
        return CodeFixJson(**asdict(answer), change=change)

    def exit_if_unsuccessful(self) -> None:
        """Exit with 1 if the change was refused or its check fails; the JSON body has the reason."""
        if self._refusal is not None or (self._check_after is not None and self._check_after.exit_code):
            raise typer.Exit(1)

    def _is_confirmed(self, *, asks: bool) -> bool:
        if asks:
            for change in self._changes:
                print_text(change.diff.rstrip("\n"), err=True)
        if self._applies:
            return True
        if not asks:
            return False
        one = escape_to_short_line(self._changes[0].path) if len(self._changes) == 1 else ""
        target = f"this change to {one}" if one else f"these changes to {format_count(len(self._changes), 'file')}"
        with _read_yes_no_answers() as can_ask:
            if can_ask:
                return confirm(f"Apply {target}?", err=True)
        print_text("The change is not applied. Add --yes to apply it without a terminal.", err=True)
        return False

    def _print_applied(self) -> None:
        paths = ", ".join(escape_to_short_line(change.path) for change in self._changes)
        undo = format_command_line("restore", vault=self._folder)
        print_text(f"Applied: {paths}. To undo: {undo}", err=True)
        if self._check_before is None:
            return
        self._check_after = after = run_check(self._check_before.command)
        print_text(f"check: {after.outcome}; before the change: {self._check_before.outcome}", err=True)
        if after.exit_code:
            print_check_output(after)


def print_check_output(result: CheckResult) -> None:
    """Print the last lines of a check's output on stderr."""
    for line in result.output.rstrip("\n").split("\n")[-_SHOWN_CHECK_LINES:]:
        print_text(f"  {escape_to_short_line(line)}", err=True)


@contextmanager
def _read_yes_no_answers() -> Iterator[bool]:
    """Yield whether the user can answer a question; if stdin is a pipe, answers are read from the terminal itself."""
    if not is_terminal(sys.stderr):
        yield False
        return
    if is_terminal(sys.stdin):
        yield True
        return
    try:
        terminal = Path(_TERMINAL).open(encoding="utf-8", errors="replace")  # noqa: SIM115 - closed below
    except OSError:
        yield False
        return
    before, sys.stdin = sys.stdin, terminal
    try:
        yield True
    finally:
        sys.stdin = before
        terminal.close()
