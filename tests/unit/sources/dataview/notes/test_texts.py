"""A note as queries see it: properties and lines together, without code."""

from lamella.sources.dataview.notes import parse_note_content

NOTE = """---
tags: [a/b]
rating: 4
aliases: Other
---
rating:: 5
```
code:: 1
- [ ] no task
```
## Later
- item:: x
- [ ] do [when:: now]
See [[Target#x]], ![[pic.png]], [web](https://example.org), [[#here]]. #c
"""


def test_note_has_fields_of_properties_and_lines() -> None:
    note = parse_note_content(NOTE)
    assert note.fields == {"tags": ("a/b",), "rating": (4, 5), "aliases": "Other", "item": "x"}
    assert note.tags == ("a/b", "c")
    assert note.aliases == ("Other",)


def test_links_are_those_to_files() -> None:
    assert parse_note_content(NOTE).links == ("Target", "pic.png")


def test_tasks_know_their_line_and_the_heading_above() -> None:
    (task,) = parse_note_content(NOTE).tasks
    assert (task.line, task.section, task.fields) == (13, "Later", {"when": "now"})


def test_any_text_is_a_note() -> None:
    for text in ("", "---", "---\n[\n---\n", "\x00\ufffd", "a\r\nb:: c\r\n"):
        parse_note_content(text)
