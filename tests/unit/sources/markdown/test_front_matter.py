"""Front matter: plain values, and no text above a note that stops anything."""

from time import process_time

import pytest

from lamella.sources.markdown import PropertyValue, find_front_matter, parse_front_matter

_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("block", "properties"),
    [
        ("a: word", {"a": "word"}),
        ("a: 12\nb: -1.5\nc: 1e3", {"a": 12, "b": -1.5, "c": 1000.0}),
        ("a: true\nb: False\nc: ~\nd:", {"a": True, "b": False, "c": None, "d": None}),
        ("a: '12'\nb: \"true\"", {"a": "12", "b": "true"}),
        (
            "country: NO\nanswer: yes\nat: 12:30\nphone: 0123",
            {"country": "NO", "answer": "yes", "at": "12:30", "phone": "0123"},
        ),
        ("day: 2026-11-15\nnever: 2026-02-31", {"day": "2026-11-15", "never": "2026-02-31"}),
        ("at: 2026-11-15T10:00:00Z", {"at": "2026-11-15T10:00:00Z"}),
        ("up: [[Parent]]\nto: '[[B|c]]'", {"up": "[[Parent]]", "to": "[[B|c]]"}),
        ("up:\n  - [[A]]\n  - [[Ünï]]", {"up": ["[[A]]", "[[Ünï]]"]}),
        ("title: {{title}}", {"title": "{{title}}"}),
        ("a: {b: {c: [1, 2]}}", {"a": {"b": {"c": [1, 2]}}}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("2026: year\ntrue: word", {"2026": "year", "true": "word"}),
        ("a: !!python/object/apply:os.system [echo]", {"a": ["echo"]}),
        ("a: " + "9" * 5_000, {"a": "9" * 5_000}),
        ("a: 1e99999\nb: .nan", {"a": "1e99999", "b": ".nan"}),
        ("# only a comment", {}),
        ("", {}),
    ],
)
def test_properties_are_plain_values(block: str, properties: dict[str, PropertyValue]) -> None:
    assert parse_front_matter(block) == (properties, "")


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("title: A: B", "not YAML (line 2)"),
        ("a: 1\n\tb: 2", "not YAML (line 3)"),
        ("a: [", "not YAML"),
        ("a: \x00", "not YAML"),
        ("just words", "no properties"),
        ("- a\n- b", "no properties"),
        ("a: " + "[" * 50_000, "nested more than 30 deep"),
        ("- " * 45_000, "nested more than 30 deep"),
        ("? " * 40_000, "nested more than 30 deep"),
        ("a: b\n" * 30_000, "150,000 characters"),
        ("- a\n" * 20_000, "more than 10,000 values"),
    ],
)
def test_invalid_front_matter_gives_no_properties_and_reason(block: str, why: str) -> None:
    began = process_time()
    properties, told = parse_front_matter(block)
    assert properties == {}
    assert why in told
    assert process_time() - began < 1


def test_self_referencing_or_exploding_anchor_is_refused() -> None:
    assert parse_front_matter("a: &a [*a]") == ({"a": [None]}, "")
    properties, _ = parse_front_matter(_BOMB + "tags: [*i, wanted]")
    assert properties["tags"] == [None, "wanted"]
    assert len(str(properties)) < 50_000


@pytest.mark.parametrize(
    ("text", "block", "body"),
    [
        ("---\na: b\n---\nbody", "a: b\n", "body"),
        ("---\na: b\n...\nbody", "a: b\n", "body"),
        ("\ufeff--- \r\na: b\r\n---\t\r\nbody", "a: b\r\n", "body"),
        ("---\n---\nbody", "", "body"),
        ("---\na: b\n---", "a: b\n", ""),
        ("---\na: b\n----\nbody", "", "---\na: b\n----\nbody"),
        ("---\nnever closed\n#tag", "", "---\nnever closed\n#tag"),
        (" ---\na: b\n---\n", "", " ---\na: b\n---\n"),
        ("\n---\na: b\n---\n", "", "\n---\na: b\n---\n"),
    ],
)
def test_front_matter_is_between_two_lines_at_top(text: str, block: str, body: str) -> None:
    begin, end, offset = find_front_matter(text)
    assert (text[begin:end], text[offset:]) == (block, body)
