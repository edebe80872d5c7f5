"""Write blocks: found where they are meant, and nowhere else."""

import json
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.core.text.write_blocks import parse_write_blocks

BLOCK = "<writeToFile>\n<path>garden/beans.md</path>\n<content>\n# Beans\nIn May.\n</content>\n</writeToFile>"
COMPOSED = json.dumps({"type": "composer", "path": "a.md", "content": "# A\n```py\nx\n```\n"})


def find(text: str) -> list[tuple[str, str]]:
    return [(path, content) for path, content, _ in parse_write_blocks(text)]


def test_write_block_is_found_anywhere_in_answer() -> None:
    beans = ("garden/beans.md", "# Beans\nIn May.\n")
    assert find(BLOCK) == [beans]
    assert find(f"Here it is: {BLOCK} As you wished.\n") == [beans]
    assert find(f"{BLOCK}\nand\n{BLOCK}") == [beans, beans]
    assert find("<writeToFile><path> a.md </path><content>x</content></writeToFile>") == [("a.md", "x\n")]
    assert parse_write_blocks(f"So: {BLOCK}.")[0][2] == BLOCK


def test_json_write_block_and_canvas_are_found() -> None:
    assert find(f"Here:\n```json\n{COMPOSED}\n```\n") == [("a.md", "# A\n```py\nx\n```\n")]
    canvas = json.dumps({"type": "composer", "path": "a.canvas", "canvas_json": {"nodes": [], "edges": []}})
    ((path, content),) = find(f"```json\n{canvas}\n```")
    assert (path, json.loads(content)) == ("a.canvas", {"nodes": [], "edges": []})


def test_content_may_include_fences_tags_and_blocks() -> None:
    inner = "# How\n```xml\n<content>x</content>\n```\nsay </writeToFile>\n"
    text = f"<writeToFile>\n<path>how.md</path>\n<content>\n{inner}</content>\n</writeToFile>\nDone."
    assert find(text) == [("how.md", inner)]


@pytest.mark.parametrize(
    "text",
    [
        f"```xml\n{BLOCK}\n```",
        f"~~~\n{BLOCK}\n~~~",
        f"````\n```json\n{COMPOSED}\n```\n````",
        "Write `<writeToFile><path>a.md</path><content>x</content></writeToFile>` to have a note written.",
        f"```\n{BLOCK}",
        COMPOSED,
        f"```python\n{COMPOSED}\n```",
        '```json\n{"type": "composer", "path": 3, "content": "x"}\n```',
        '```json\n{"type": "composer", "path": "a.md", "content": ["x"]}\n```',
        '```json\n{"type": "note", "about": "composer", "path": "a.md", "content": "x"}\n```',
        "```json\n" + "[" * 100_000 + '"composer"\n```',
        "<writeToFile>a.md</writeToFile>",
        "<writeToFile><content>x</content><path>a.md</path></writeToFile>",
        "<WRITETOFILE><path>a.md</path><content>x</content></WRITETOFILE>",
    ],
)
def test_fenced_or_malformed_block_is_ignored(text: str) -> None:
    assert find(text) == []


@given(st.integers(min_value=0, max_value=len(BLOCK) - 1))
def test_incomplete_block_is_ignored(length: int) -> None:
    assert find(BLOCK[:length]) == []


def test_many_block_openings_are_parsed_quickly() -> None:
    head = "<writeToFile><path>a.md</path><content>"
    started = perf_counter()
    assert find(head * 5_000) == []
    assert find(f"{head}</writeToFile>" * 2_000) == []
    assert perf_counter() - started < 5
