"""Pages are true: commands print what is shown, Python blocks run, links lead somewhere."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from tests.contracts.console import blocks, commands, is_as_printed, rewrite, run_command, run_python
from tests.contracts.repository import DOCS, ROOT, SRC, markdown_files, python_files, shown

from lamella.cli.app import build_app
from lamella.providers.registry import PROVIDERS

PAGES = list(markdown_files())
# Takes long, and is run once: tests/journeys/test_demo.py.
DEMO = "make demo"
COMMANDS = [
    pytest.param(command.line, command.output, id=f"{shown(path)}: {command.line}")
    for path in PAGES
    for block in blocks(path.read_text(encoding="utf-8"))
    if block.language == "console"
    for command in commands(block.body)
    if command.line != DEMO
]
README = ROOT / "README.md"
# The changelog may name commands and models of the past.
CURRENT_PAGES = [path for path in PAGES if path.name != "CHANGELOG.md"]


@pytest.mark.parametrize(("line", "told"), COMMANDS)
def test_command_prints_output_of_its_page(line: str, told: str) -> None:
    assert told.strip().strip("."), (
        f"{line} shows no output, so nothing is checked; put it into a block of the language sh"
    )
    printed = run_command(line)
    assert is_as_printed(told, printed), f"{line} prints:\n{printed}\nand the page shows:\n{told}"


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_python_of_page_runs_and_prints_its_output(path: Path) -> None:
    for _, told, printed in run_python(path.read_text(encoding="utf-8")):
        assert is_as_printed(told, printed), f"the page shows:\n{told}\nand this was printed:\n{printed}"


def test_readme_shows_commands_and_python_with_their_output() -> None:
    found = list(blocks(README.read_text(encoding="utf-8")))
    lines = [command.line for block in found if block.language == "console" for command in commands(block.body)]
    assert DEMO in lines
    assert sum(line.startswith("lamella replay") for line in lines) >= 2
    assert any(block.language == "python" for block in found)


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_every_link_of_a_page_leads_to_a_file(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    broken = [target for target in targets if not _leads_somewhere(path, target)]
    assert broken == []


def _leads_somewhere(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    if not file.exists():
        return False
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
    return not anchor or anchor in {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_files_named_in_pages_exist(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`(?:src/lamella/)?([a-z_]+/[\w/]+\.py)`", text)
    assert sorted(name for name in named if not ((ROOT / name).exists() or (SRC / name).exists())) == []


def test_every_page_can_be_reached_from_the_readme_or_the_index() -> None:
    reached: set[Path] = set()
    waiting = [path for path in (README, DOCS / "index.md") if path.exists()]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        targets = re.findall(r"\]\(([^)\s#]+\.md)", page.read_text(encoding="utf-8"))
        linked = {(page.parent / target).resolve() for target in targets if "://" not in target}
        waiting += [path for path in linked - reached if path.exists()]
    assert sorted(shown(path) for path in DOCS.rglob("*.md") if path not in reached) == []


def test_source_names_pages_that_exist() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in python_files("src", "tests", "bench", "mutation"))
    named = set(re.findall(r"\bdocs/((?:reference|how-to|explanation|tutorials)/[\w/-]+\.md)", text))
    assert len(named) > 10
    assert sorted(name for name in named if not (DOCS / name).exists()) == []


def test_different_output_is_detected() -> None:
    assert is_as_printed("one\ntwo\n", "one\ntwo  \n")
    assert is_as_printed("one\n...\nfour\n", "one\ntwo\nthree\nfour\n")
    assert is_as_printed("...\n", "")
    assert not is_as_printed("one\n", "one\ntwo\n")
    assert not is_as_printed("one\n...\n", "two\n")
    assert not is_as_printed("", "something\n")


def test_rewriting_page_inserts_current_output() -> None:
    page = (
        "# A page\n\n```console\n$ echo one\nstale\n$ echo two\n...\n```\n\n```python\nprint(3)\n```\n\n```text\n```\n"
    )
    told = page.replace("stale", "one").replace("```text\n", "```text\n3\n")
    assert rewrite(page) == told
    assert rewrite(told) == told


def test_broken_link_is_found() -> None:
    assert _leads_somewhere(README, "Makefile")
    assert not _leads_somewhere(README, "docs/nowhere.md")
    assert not _leads_somewhere(README, "docs/architecture.md#no-such-heading")


def test_pages_name_no_model_prefix_that_cannot_be_opened() -> None:
    closed = [name for row in PROVIDERS if row.create_provider is None for name in row.names]
    assert "mistral" in closed
    offered = re.compile(rf"[\s`\"](?:{'|'.join(closed)}):[\w\"]")
    assert {
        shown(path): offered.findall(path.read_text(encoding="utf-8"))
        for path in CURRENT_PAGES
        if offered.search(path.read_text(encoding="utf-8"))
    } == {}


def documented_commands(text: str) -> Iterator[list[str]]:
    """Every command of ours that a page tells to type, in blocks and in the middle of a sentence, as words."""
    lines = [
        line for block in blocks(text) if block.language in ("sh", "bash", "console") for line in _typed(block.body)
    ]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`(lamella [^`\n]+)`", prose)
    for line in (*lines, *spans):
        for part in re.split(r"\s(?:\||&&|;|2?>|<)\s?", line):
            words = shlex.split(part, comments=True) if "'" not in part or part.count("'") % 2 == 0 else []
            words = words[next((at for at, word in enumerate(words) if "=" not in word), 0) :]
            if words[:1] == ["lamella"]:
                yield words[1:]


def _typed(body: str) -> Iterator[str]:
    yield from (
        line.removeprefix("$ ") for line in body.splitlines() if re.match(r"(?:\$ )?[\w. =/|'\"-]*\blamella ", line)
    )


@pytest.mark.parametrize("path", CURRENT_PAGES, ids=shown)
def test_documented_commands_exist_with_their_options(path: Path) -> None:
    unknown = [words for words in documented_commands(path.read_text(encoding="utf-8")) if not _is_known(words)]
    assert unknown == []


def _is_known(words: list[str]) -> bool:
    command: object = typer.main.get_command(build_app())
    everywhere = {"--help", "--debug", "--version"}
    about = 0
    for word in words:
        inner = getattr(command, "commands", {})
        if about:
            about -= 1
        elif word in inner:
            command = inner[word]
            # What a group is about is before its commands.
            groups = getattr(command, "params", []) if hasattr(command, "commands") else []
            about = sum(parameter.param_type_name == "argument" for parameter in groups)
        elif inner and not word.startswith("-") and word.islower() and word.isalpha():
            return False
    options = {option for parameter in getattr(command, "params", []) for option in parameter.opts} | everywhere
    return all(word.partition("=")[0] in options for word in words if word.startswith("--") and word != "--")


def test_commands_in_pages_are_found() -> None:
    page = (
        "Run `lamella chats list --json`.\n\n```sh\nLAMELLA_MODEL=x lamella ask 'When?' --nope | lamella nothing\n```\n"
    )
    told = list(documented_commands(page))
    assert told == [["ask", "When?", "--nope"], ["nothing"], ["chats", "list", "--json"]]
    assert [_is_known(words) for words in told] == [False, False, True]
    assert (ROOT / "README.md") in PAGES
