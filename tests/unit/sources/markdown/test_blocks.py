"""Named blocks: what ``^id`` belongs to."""

import pytest

from lamella.sources.markdown import parse_named_blocks, parse_note, parse_structure_in_bytes


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("words ^a\n\nmore", {"a": "words ^a"}),
        ("two\nlines ^a", {"a": "two\nlines ^a"}),
        ("words\n^a\n", {"a": "words\n^a"}),
        ("- one ^a\n  - below ^B-2\n- two", {"a": "- one ^a\n  - below ^B-2", "b-2": "- below ^B-2"}),
        ("- loose ^a\n\n- two", {"a": "- loose ^a"}),
        ("- loose\n\n  second ^a\n", {"a": "second ^a"}),
        ("|a|\n|-|\n|b|\n\n^t\n", {"t": "|a|\n|-|\n|b|"}),
        ("> quoted\n> more\n\n^q\n", {"q": "> quoted\n> more"}),
        ("> quoted ^in\n", {"in": "quoted ^in"}),
        ("```\ncode\n```\n\n^c\n", {"c": "```\ncode\n```"}),
        ("- a\n- b\n\n^l\n", {"l": "- a\n- b"}),
        ("# Title ^h\n\nwords", {"h": "# Title ^h"}),
        ("é 日本 ^a", {"a": "é 日本 ^a"}),
        ("---\nx: y\n---\nwords ^a", {"a": "words ^a"}),
        ("one ^a\n\ntwo ^a", {"a": "one ^a"}),
        ("words ^a more", {}),
        ("words ^a\nmore", {}),
        ("^alone", {}),
        ("x^2\n\n`a ^b`\n\n```\na ^c\n```", {}),
        ("%%\nhidden ^a\n%%", {}),
        ("note[^1] ^a\n\n[^1]: foot", {"a": "note[^1] ^a"}),
    ],
)
def test_block_id_belongs_to_its_or_previous_block(text: str, blocks: dict[str, str]) -> None:
    assert {name: text[start:end] for name, (start, end) in parse_note(text).blocks.items()} == blocks


def test_names_are_looked_for_from_an_offset_on() -> None:
    text = "one ^a\n\ntwo ^b\n"
    spans = parse_structure_in_bytes(text).blocks
    assert parse_named_blocks(text, 0, spans) == {"a": (0, 6), "b": (8, 14)}
    assert parse_named_blocks(text, 8, spans) == {"b": (8, 14)}
