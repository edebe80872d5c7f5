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


def test_a_block_gives_its_path_and_its_content_wherever_it_stands_in_an_answer() -> None:
    beans = ("garden/beans.md", "# Beans\nIn May.\n")
    assert find(BLOCK) == [beans]
    assert find(f"Here it is: {BLOCK} As you wished.\n") == [beans]
    assert find(f"{BLOCK}\nand\n{BLOCK}") == [beans, beans]
    assert find("<writeToFile><path> a.md </path><content>x</content></writeToFile>") == [("a.md", "x\n")]
    assert parse_write_blocks(f"So: {BLOCK}.")[0][2] == BLOCK


def test_a_fenced_block_of_json_is_one_too_and_a_canvas_is_written_as_json() -> None:
    assert find(f"Here:\n```json\n{COMPOSED}\n```\n") == [("a.md", "# A\n```py\nx\n```\n")]
    canvas = json.dumps({"type": "composer", "path": "a.canvas", "canvas_json": {"nodes": [], "edges": []}})
    ((path, content),) = find(f"```json\n{canvas}\n```")
    assert (path, json.loads(content)) == ("a.canvas", {"nodes": [], "edges": []})


def test_a_content_may_have_fences_tags_and_blocks_of_its_own() -> None:
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
def test_what_is_shown_as_code_or_is_of_another_shape_is_no_block(text: str) -> None:
    assert find(text) == []


@given(st.integers(min_value=0, max_value=len(BLOCK) - 1))
def test_a_block_that_has_not_ended_yet_is_none(length: int) -> None:
    assert find(BLOCK[:length]) == []


def test_an_answer_made_of_beginnings_is_read_in_time() -> None:
    head = "<writeToFile><path>a.md</path><content>"
    started = perf_counter()
    assert find(head * 5_000) == []
    assert find(f"{head}</writeToFile>" * 2_000) == []
    assert perf_counter() - started < 5
