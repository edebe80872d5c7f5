"""Runs the commands and Python blocks of a page, and compares what they print with the page.

A line ``...`` in shown output stands for any number of lines. An id of a message or result is another one each
time: it follows from the conversation's key, which is made by chance.

``python -m tests.contracts.console`` runs every page and writes what its commands print now; output with ``...`` in it
is only checked, since a person chose what to leave out.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from tests.contracts.repository import ROOT, markdown_files, shown

from lamella.plugins import list_plugins, unregister

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ELLIPSIS = "..."
# When something was said that a page says itself, which is whenever the page is run.
_SAID_AT = re.compile(r"(?<=, )\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d| UTC)(?=, )")
_ID = re.compile(r"\b(?:[0-9a-f]{12}|[0-9a-f]{16})\b")
_STAMP = ".venv/.installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: its language, its body, and what is between it and the block before."""

    language: str
    body: str
    before: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of a page, and the output shown for it."""

    line: str
    output: str


def blocks(text: str) -> Iterator[Block]:
    end = 0
    for match in _FENCE.finditer(text):
        yield Block(language=match[1], body=match[2], before=text[end : match.start()], start=match.start(2))
        end = match.end()


def commands(body: str) -> Iterator[Command]:
    """Each line after ``$ `` with the lines below it, up to the next."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line=line, output=output)


def run_command(line: str) -> str:
    """What a terminal of the same Python shows: both streams, from the top of the repository."""
    own = Path(sys.executable).parent
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LAMELLA_", "MAKE", "MFLAGS"))}
    kept["LAMELLA_CONFIG"] = os.devnull
    environment = {**kept, "PATH": f"{own}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    # The Python that runs this has been set up already; setting it up again would need the network.
    line = re.sub(r"^make\b", f"make --no-print-directory -o {_STAMP} BIN={own}", line)
    result = subprocess.run(
        ["bash", "-c", line], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return result.stdout.decode()


def is_as_printed(told: str, printed: str) -> bool:
    """Whether shown output is what was printed, line by line, blanks at the ends of lines aside."""
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line.strip() == _ELLIPSIS else re.escape(line.rstrip()) + r"\n"
        for line in _mask_ids(told).splitlines()
    )
    return re.fullmatch(pattern, _mask_ids(_trimmed(printed))) is not None


def _mask_ids(text: str) -> str:
    return _ID.sub("an-id", _SAID_AT.sub("a-time", text))


def match_ids(told: str, printed: str) -> dict[str, str]:
    """Which id that a page shows is which of those that were printed."""
    lines = {_mask_ids(line): _ID.findall(line) for line in printed.splitlines()}
    return {
        shown: true
        for line in told.splitlines()
        for shown, true in zip(_ID.findall(line), lines.get(_mask_ids(line), ()), strict=False)
    }


def run_python(text: str) -> Iterator[tuple[str, str, str]]:
    """Every Python block of a page in one namespace: its code, the output shown below it, and what it printed."""
    namespace: dict[str, object] = {"__name__": "page"}
    page = list(blocks(text))
    before = list_plugins()
    try:
        for index, block in enumerate(page):
            if block.language != "python":
                continue
            below = page[index + 1] if index + 1 < len(page) else None
            told = below.body if below and below.language == "text" and not below.before.strip() else ""
            out = StringIO()
            with redirect_stdout(out), chdir(ROOT):
                exec(compile(block.body, "page", "exec"), namespace)
            yield block.body, told, out.getvalue()
    finally:
        for one in list_plugins():
            if one not in before:
                unregister(one.group, one.name)


def rewrite(text: str) -> str:
    """The page with what its commands print now."""
    for block in reversed([block for block in blocks(text) if block.language == "console"]):
        body = "".join(_rewritten(command) for command in commands(block.body))
        text = text[: block.start] + body + text[block.start + len(block.body) :]
    for code, told, printed in run_python(text):
        if is_as_printed(told, printed):
            continue
        text = text.replace(f"{code}```\n\n```text\n{told}```", f"{code}```\n\n```text\n{_trimmed(printed)}```")
    return text


def _rewritten(command: Command) -> str:
    if any(line.strip() == _ELLIPSIS for line in command.output.splitlines()):
        return f"$ {command.line}\n{command.output}"
    printed = _trimmed(run_command(command.line))
    return f"$ {command.line}\n{command.output if is_as_printed(command.output, printed) else printed}"


def _trimmed(printed: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def main() -> None:
    for path in markdown_files():
        old = path.read_text(encoding="utf-8")
        new = rewrite(old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"rewrote {shown(path)}\n")


if __name__ == "__main__":
    main()
