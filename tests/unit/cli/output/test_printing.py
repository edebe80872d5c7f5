"""Telling: one way out, through which nothing acts on a terminal."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lamella.cli
from lamella.cli.console import make_console
from lamella.cli.output import display_width, print_json, print_raw_json, print_text, wrap_line
from lamella.schemas.catalog import RemovedTokenJson

HOSTILE = "a\x1b[2J\x9b1m\u202eb\u2066\u200f\u061cc\rd\x07"
ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
PRINTS = re.compile(
    r"typer\.(?:echo|secho|confirm|prompt)|(?<![\w.])print\(|sys\.std(?:out|err)\.write|(?<!\w)Console\("
)
CLI = Path(lamella.cli.__file__).parent
# The modules that everything is printed through.
OWN = {"clipboard.py", "console.py", "consent.py", "errors.py", "interrupts.py", "output.py", "streams.py"}


def test_cli_prints_only_through_escaping_functions() -> None:
    found = {
        f"{file.relative_to(CLI)}: {line.strip()}"
        for file in CLI.rglob("*.py")
        if file.name not in OWN
        for line in file.read_text(encoding="utf-8").splitlines()
        if PRINTS.search(line) and "def " not in line
    }
    # The version and the overview are printed without a parser of commands, and are ours.
    assert found == {
        'entry_point.py: sys.stdout.write(f"lamella {lamella.__version__}\\n")',
        'entry_point.py: sys.stdout.write(f"{render_overview()}\\n")',
    }


def test_lines_json_and_tables_escape_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(HOSTILE)
    print_text(HOSTILE, err=True)
    print_json(RemovedTokenJson(removed=HOSTILE))
    print_raw_json({"name": HOSTILE})
    make_console().print(HOSTILE)
    shown = capsys.readouterr()
    assert not ACTING.search(shown.out + shown.err)
    assert json.loads(shown.out.splitlines()[1]) == {"lamella": 1, "removed": HOSTILE}
    assert json.loads("".join(shown.out.splitlines()[2:5])) == {"name": HOSTILE}


def test_json_has_file_names_that_are_not_unicode(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(RemovedTokenJson(removed="caf\udce9.md"))
    assert capsys.readouterr().out == '{"lamella": 1, "removed": "caf\\udce9.md"}\n'


@given(st.text(alphabet="ab 漢", max_size=80), st.integers(20, 40))
def test_wrapped_line_keeps_words_and_fits(line: str, columns: int) -> None:
    wrapped = wrap_line(line, columns)
    assert wrapped.split() == line.split()
    assert all(display_width(one) <= columns or len(one.split()) <= 1 for one in wrapped.split("\n"))


@given(st.text(alphabet="ab 漢", min_size=30, max_size=80), st.integers(8, 10))
def test_wrapped_text_continues_with_indent(line: str, under: int) -> None:
    first, *rest = wrap_line(line, 20, indent=under).split("\n")
    assert first == wrap_line(line, 20).split("\n")[0]
    assert all(one.startswith(" " * under) and one.strip() for one in rest)
    assert [*first.split(), *" ".join(rest).split()] == line.split()


def test_command_is_not_split_when_line_wraps() -> None:
    command = "lamella chat 'my garden' --store 'sqlite:///my chats.db'"
    assert wrap_line(f"Saved. Continue with: {command}", 40) == f"Saved. Continue with:\n{command}"
