"""The outline of a reply keeps what a reader needs to know whether to recall it."""

from lamella.core.text.rule_detection import outline_reply, stub_reply

REPLY = (
    """The cache is keyed by the hash of the prompt. Everything else follows from that, as we shall see.

## What is stored

Entries live in `cache/entries.db` for 3,600 seconds.

## How it is read

```python
class EntryStore:
    def read_entry(self, key):
        return self.rows[key]

LIMIT = 3
```
"""
    + "And so on, and on, and on, in words that say nothing new. " * 30
)


def test_reply_outline_keeps_first_sentence_headings_definitions_and_exact_terms() -> None:
    assert outline_reply(REPLY, 12, names_recall=False) == "\n".join(
        [
            "[Outline of turn 12.]",
            "The cache is keyed by the hash of the prompt.",
            "Headings: What is stored; How it is read",
            "Its code defines: EntryStore; read_entry",
            "Exact: cache/entries.db; 3,600 seconds",
        ]
    )


def test_short_reply_is_not_outlined() -> None:
    assert outline_reply("Yes, at three.", 3, names_recall=False) is None
    assert outline_reply("", 3, names_recall=False) is None
    assert outline_reply("It opens on 2031-04-05 at the harbour, by `open --now`.", 3, names_recall=False) is None


def test_omitted_headings_are_counted() -> None:
    many = "Here it is.\n" + "\n".join(f"# Heading number {number}\nwords of it" for number in range(40))
    outline = outline_reply(many, 3, names_recall=False)
    assert outline is not None
    assert "Headings: Heading number 0; " in outline
    assert "Heading number 5; and 34 more\n" in outline
    assert len(outline) < 500


def test_definitions_are_found_in_many_languages() -> None:
    lines = (
        "export default async function loadUser(id) {",
        "pub fn parse_line() {",
        "func (s *Server) Handle() {",
        "CREATE TABLE IF NOT EXISTS orders (",
        "  private static class Node {",
        "x = 3",
    )
    reply = "Look:\n```\n" + "\n".join(lines) + "\n```\n" + "and more words " * 60
    outline = outline_reply(reply, 3, names_recall=False)
    assert outline is not None
    assert "Its code defines: loadUser; parse_line; Handle; orders; Node\n" in f"{outline}\n"


def test_removed_reply_leaves_one_line() -> None:
    assert stub_reply(12, names_recall=False) == "[Left out: turn 12.]"
