"""Scanners of foreign texts take time in proportion to the text, for any repeated characters."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from time import process_time

import pytest

from lamella.archive.markdown.legacy import extract_blocks
from lamella.cli.chat.output import _FENCE_LANGUAGE
from lamella.codebase.index import files_named_in
from lamella.codebase.repository import parse_ignore_rule
from lamella.core.artifacts.embeds import embedded_images, replace_pasted_images
from lamella.core.prompt.templates import TemplateResolution, expand_typed_text
from lamella.core.text.directives import find_directives
from lamella.core.text.exact_terms import extract_exact_strings
from lamella.core.text.mentions import find_mentions
from lamella.core.text.rule_detection import detect_rules, extract_quotes, find_injected_instruction
from lamella.errors import LamellaError
from lamella.memory import parse_facts
from lamella.retrieval.chunks import split_into_chunks_and_tags
from lamella.settings.word_lists import load_word_lists
from lamella.sources.dataview.notes import parse_note_content
from lamella.sources.markdown import parse_note
from lamella.sources.obsidian import EmbedExpander

WORDS, NUMBERS = load_word_lists(), count()
SIZE = 2_000
GROWTH = 16
# Quadratic work would take 16 times as long as linear work. Times below this are too short to compare.
MAX_RATIO = 4 * GROWTH
MIN_SECONDS = 0.3
REPEATED: tuple[str, ...] = (
    "[",
    "[[",
    "]",
    "![[",
    "![",
    "[a](",
    "[]",
    "(",
    "<",
    "{",
    "`",
    "$a ",
    "%%",
    "<!--",
    "#",
    " #",
    "*",
    "> ",
)
REPEATED += (
    "- [ ] ",
    "a:: b ",
    "[a:: b] ",
    "|",
    "\\",
    " ",
    "\t",
    "\n",
    "\n ",
    "“",
    '"',
    "'a ",
    "@[[",
    "^a ",
    "a, ",
    "1,",
    "1.",
    "-",
    "&",
    "Never\n",
    "never do x. ",
)
NESTED = {"[": "]", "[[": "]]", "![": "]", "(": ")", "{": "}", "“": "”", "«": "»", "<a_b>\n": "</a_b>\n"}


def expand_embed_of_block(text: str) -> object:
    note = f"a{text}x\n\n^end\n"
    return EmbedExpander("n.md", find_notes=lambda *_: ["o.md"], read_text=lambda _: note).expand("![[o#^end]]")


def find_nothing(_template: object) -> TemplateResolution:
    return TemplateResolution()


SCANNERS: dict[str, Callable[[str], object]] = {
    "note": parse_note,
    "aliases": lambda text: parse_note(f"---\naliases: 'a{text}b'\n---\n"),
    "embeds": embedded_images,
    "pasted images": replace_pasted_images,
    "embedded block": expand_embed_of_block,
    "dataview": parse_note_content,
    "chunks": split_into_chunks_and_tags,
    "mentions": find_mentions,
    "exact terms": extract_exact_strings,
    "rules": detect_rules,
    "instruction": find_injected_instruction,
    "quotes": extract_quotes,
    "old blocks": extract_blocks,
    "ignore rule": lambda text: parse_ignore_rule(f"a{text}b".replace("\n", "")),
    "fences of answers": lambda text: re.sub(_FENCE_LANGUAGE, "", text),
    "facts": lambda text: parse_facts(f"a{text}b", is_recent_file=False),
    # What was read of a text is remembered: each text is another one.
    "directives": lambda text: find_directives({"a": f"{text}{next(NUMBERS)}"}, WORDS),
    "file names": lambda text: files_named_in(text, ["beds.py"]),
    "templates": lambda text: expand_typed_text(text, find_nothing),
}


def make_texts(size: int) -> Iterator[tuple[str, str]]:
    for unit in REPEATED:
        yield unit, unit * (size // len(unit))
    for opening, closing in NESTED.items():
        count = size // len(opening + closing)
        yield opening + closing, opening * count + closing * count


def measure(scan: Callable[[str], object], text: str) -> float:
    """The processor time of one scan; a text that is refused is scanned as far as that."""
    started = process_time()
    with suppress(LamellaError, re.error):
        scan(text)
    return process_time() - started


@pytest.mark.parametrize("name", SCANNERS)
def test_scan_time_is_linear_in_text(name: str) -> None:
    scan = SCANNERS[name]
    small = dict(make_texts(SIZE))
    for text in small.values():
        measure(scan, text)
    slow = []
    for unit, text in make_texts(SIZE * GROWTH):
        seconds = measure(scan, text)
        # Slow texts are measured again: another program may have used the caches of the processor.
        if seconds > MIN_SECONDS and measure(scan, text) > MAX_RATIO * max(
            measure(scan, small[unit]) for _ in range(3)
        ):
            slow.append(unit)
    assert slow == []
