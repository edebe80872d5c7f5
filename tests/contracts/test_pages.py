"""Pages tell the truth: commands print what is shown, Python blocks run, links lead somewhere."""

import re
from pathlib import Path

import pytest
from tests.contracts.console import blocks, commands, rewrite, run_command, run_python, tells_true
from tests.contracts.places import DOCS, ROOT, SRC, markdown_files, shown

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


@pytest.mark.parametrize(("line", "told"), COMMANDS)
def test_a_command_prints_what_its_page_shows(line: str, told: str) -> None:
    printed = run_command(line)
    assert tells_true(told, printed), f"{line} prints:\n{printed}\nand the page shows:\n{told}"


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_the_python_of_a_page_runs_and_prints_what_is_shown(path: Path) -> None:
    for _, told, printed in run_python(path.read_text(encoding="utf-8")):
        assert tells_true(told, printed), f"the page shows:\n{told}\nand this was printed:\n{printed}"


def test_the_readme_shows_commands_and_python_with_their_output() -> None:
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
def test_every_file_of_ours_that_a_page_names_is_there(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`(?:src/lamella/)?([a-z_]+/[\w/]+\.py)`", text)
    assert sorted(name for name in named if not ((ROOT / name).exists() or (SRC / name).exists())) == []


def test_every_page_can_be_found_from_the_readme() -> None:
    linked = re.findall(r"\]\(docs/([\w-]+\.md)", README.read_text(encoding="utf-8"))
    assert sorted({path.name for path in DOCS.glob("*.md")} - set(linked)) == []


def test_shown_output_that_is_not_what_was_printed_is_found() -> None:
    assert tells_true("one\ntwo\n", "one\ntwo  \n")
    assert tells_true("one\n...\nfour\n", "one\ntwo\nthree\nfour\n")
    assert tells_true("...\n", "")
    assert not tells_true("one\n", "one\ntwo\n")
    assert not tells_true("one\n...\n", "two\n")
    assert not tells_true("", "something\n")


def test_rewriting_a_page_gives_what_its_commands_print_now() -> None:
    page = (
        "# A page\n\n```console\n$ echo one\nstale\n$ echo two\n...\n```\n\n```python\nprint(3)\n```\n\n```text\n```\n"
    )
    told = page.replace("stale", "one").replace("```text\n", "```text\n3\n")
    assert rewrite(page) == told
    assert rewrite(told) == told


def test_a_broken_link_is_found() -> None:
    assert _leads_somewhere(README, "Makefile")
    assert not _leads_somewhere(README, "docs/nowhere.md")
    assert not _leads_somewhere(README, "docs/laws.md#no-such-law")
