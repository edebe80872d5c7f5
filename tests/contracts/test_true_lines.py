"""Lines of prose that can be held against the code: numbers, names of models, commands and their options."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from bench.__main__ import MEASURES
from tests.contracts.console import blocks
from tests.contracts.places import DOCS, ROOT, doc, markdown_files, shown

from lamella.adapters.archive.markdown.legacy import context, file
from lamella.adapters.archive.markdown.names import MAX_BYTES as LONGEST_NAME
from lamella.adapters.files.reading import MAX_BYTES, MAX_SETTINGS_BYTES
from lamella.adapters.providers.connection.bounds import Bounds
from lamella.adapters.providers.local.engine import EngineOptions
from lamella.adapters.providers.registry import PROVIDERS
from lamella.adapters.stores import postgresql
from lamella.adapters.stores.opening import PATIENCE
from lamella.core.budget.thresholds import Budget
from lamella.core.ledger import cache
from lamella.core.prompt.layers.library import LIST_TOKENS
from lamella.core.text.outline import PREVIEW_OVER
from lamella.engine.dialogue.recalling import ANSWER_CHARACTERS, FOUND_AT_MOST
from lamella.engine.dialogue.summaries import AT_ONCE
from lamella.engine.keeping.checkpoints.checkpoints import EVENTS, GROWS_BY
from lamella.engine.sending.delivery import ANSWER, RetryPolicy
from lamella.engine.sending.tools import SECONDS, STEPS
from lamella.faces.cli.app import make_app

PAGES = [path for path in markdown_files() if path.name != "CHANGELOG.md"]
# The words of a page that have a number of the code in them.
NUMBERS = [
    ("archive.md", f"in at most {LONGEST_NAME} bytes"),
    ("archive.md", f"plain files of up to {MAX_BYTES // 1_000_000} MB"),
    ("archive.md", f"A file may have {file._MOST_MESSAGES:,} messages"),
    ("archive.md", f"{context._MOST_NAMES:,} names that bring along {context._MOST:,} attachments"),
    ("chat.md", "tried up to four\ntimes" if RetryPolicy().tries == 4 else ""),
    ("compaction.md", f"library entries over {PREVIEW_OVER:,} characters"),
    ("compaction.md", "at most three at a time" if AT_ONCE == 3 else ""),
    ("compaction.md", f"How many at most, {FOUND_AT_MOST} unless set."),
    ("compaction.md", f"The list has at most {LIST_TOKENS} tokens"),
    ("decisions/how-deep-to-cut.md", f"The chain stops at `target`, {Budget().target:.2f} of what fits"),
    ("layouts.md", f"at least 60 tokens and at most {LIST_TOKENS};"),
    ("errors.md", f"or an archive larger than {MAX_BYTES:,}, or a file of settings larger than {MAX_SETTINGS_BYTES:,}"),
    ("local-model.md", f"| `window` | {EngineOptions().window} |"),
    ("local-model.md", f"| `shelf` | {EngineOptions().shelf} |"),
    ("local-model.md", f"| `batch` | {EngineOptions().batch} |"),
    ("providers.md", f"at most {Bounds().stream >> 20} MB are read, {Bounds().event >> 20} MB of one event"),
    ("providers.md", f"of a refusal {Bounds().refusal >> 10} KB"),
    ("python.md", f"`max_tokens`: {ANSWER:,} if nothing is said"),
    ("python.md", f"instead of {RetryPolicy().silence:g},"),
    ("stores.md", f"locked for longer than {PATIENCE:g} s"),
    ("stores.md", f"could not be reached for {PATIENCE:g} s"),
    ("stores.md", "up to ten connections" if postgresql._CONNECTIONS == 10 else ""),
    ("stores.md", f"grows by {GROWS_BY} events at a time, up to {EVENTS}"),
    ("tokens-and-money.md", f"the last {cache._REMEMBERED} that no later request extends"),
    ("tools.md", f"| `seconds`, {SECONDS:g} unless set |"),
    ("tools.md", f"| `steps`, {STEPS} unless set |"),
    ("tools.md", f"up to {ANSWER_CHARACTERS:,} characters"),
]


@pytest.mark.parametrize(("page", "words"), NUMBERS, ids=lambda value: value[:40])
def test_numbers_in_prose_are_those_of_the_code(page: str, words: str) -> None:
    assert words, "the number is another one now: say so in the page and here"
    assert " ".join(words.split()) in " ".join(doc(page).split())


def test_no_page_offers_a_model_by_a_prefix_that_nothing_opens() -> None:
    closed = [name for row in PROVIDERS if row.open is None for name in row.names]
    assert "ollama" in closed
    offered = re.compile(rf"[\s`\"](?:{'|'.join(closed)}):[\w\"]")
    assert {
        shown(path): offered.findall(path.read_text(encoding="utf-8")) for path in PAGES if _finds(offered, path)
    } == {}


def _finds(pattern: re.Pattern[str], path: Path) -> bool:
    return pattern.search(path.read_text(encoding="utf-8")) is not None


def test_the_page_on_python_begins_with_every_public_module() -> None:
    begins = doc("python.md").partition("\n## ")[0]
    public = ["lamella", *(f"lamella.{name}" for name in ("attach", "providers", "testing"))]
    assert [name for name in public if f"`{name}`" not in begins] == []


def told_commands(text: str) -> Iterator[list[str]]:
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


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_every_command_that_a_page_tells_of_is_there_with_its_options(path: Path) -> None:
    unknown = [words for words in told_commands(path.read_text(encoding="utf-8")) if not _is_known(words)]
    assert unknown == []


def _is_known(words: list[str]) -> bool:
    command: object = typer.main.get_command(make_app())
    everywhere = {"--help", "--debug", "--version"}
    about = 0
    for word in words:
        inner = getattr(command, "commands", {})
        if about:
            about -= 1
        elif word in inner:
            command = inner[word]
            # What a group is about stands before its commands.
            groups = getattr(command, "params", []) if hasattr(command, "commands") else []
            about = sum(parameter.param_type_name == "argument" for parameter in groups)
        elif inner and not word.startswith("-") and word.islower() and word.isalpha():
            return False
    options = {option for parameter in getattr(command, "params", []) for option in parameter.opts} | everywhere
    return all(word.partition("=")[0] in options for word in words if word.startswith("--") and word != "--")


def test_commands_are_found_wherever_a_page_tells_of_them() -> None:
    page = (
        "Run `lamella chats list --json`.\n\n```sh\nLAMELLA_MODEL=x lamella ask 'When?' --nope | lamella nothing\n```\n"
    )
    told = list(told_commands(page))
    assert told == [["ask", "When?", "--nope"], ["nothing"], ["chats", "list", "--json"]]
    assert [_is_known(words) for words in told] == [False, False, True]
    assert (DOCS / "chat.md") in PAGES
    assert (ROOT / "README.md") in PAGES


def test_the_table_of_bounds_has_every_measure_that_has_one() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| measure | bound |")[2]
    assert set(re.findall(r"^\| `(\w+)`: ", table, re.MULTILINE)) == MEASURES.keys() - {"sending"}


def test_the_changelog_tells_nothing_twice() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = [" ".join(entry.split()) for entry in re.findall(r"^- .+(?:\n  .+)*", text, re.MULTILINE)]
    beginnings = [" ".join(entry.split()[:5]) for entry in entries]
    assert sorted(beginnings) == sorted(set(beginnings))
    added = text.partition("### Added")[2].partition("### Changed")[0]
    told = re.findall(r"^- .+(?:\n  .+)*", added, re.MULTILINE)
    names = {name for entry in told for name in re.findall(r"`([/@][a-z]+)`", entry)}
    assert names
    twice = {name for name in names if sum(f"`{name}`" in entry for entry in told) > 1}
    assert not twice
