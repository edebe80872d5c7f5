"""Symbols: the names that a source file defines, told by how lines of most languages begin.

A parser finds a few more and ranks no better with them (measured with and without: docs/decisions/tree-sitter.md), and
this needs none.
"""

import re
from collections.abc import Iterator

_WORDS = (
    "def|class|func|function|fn|interface|struct|enum|trait|type|impl|module|namespace|record|protocol|object|macro"
    "|union|package|sub|proc|defmodule|defp?|defmacro|extension|actor|mixin|typedef|contract|message|service"
)
# What may stand before such a word; each is a plain word, so that nothing is tried twice.
_KEYED = re.compile(
    rf"^[ \t]*(?:(?:[a-z]++(?:\([a-z]*\))?+[ \t]++){{0,4}}?)(?:{_WORDS})\*?[ \t]++"
    r"(?:\([^()\n]*\)[ \t]*+)?([A-Za-z_$][\w$]*)",
    re.MULTILINE,
)
_BOUND = re.compile(
    r"^(?:export[ \t]+)?(?:const|let|var|val|static|final|#define)[ \t]+([A-Za-z_$][\w$]*)", re.MULTILINE
)
_ASSIGNED = re.compile(r"^([A-Za-z_]\w{2,})(?:[ \t]*:[^=\n]{1,80})?[ \t]*=(?!=)", re.MULTILINE)
# A return type, a name and parentheses, as in C and its kin; a call ends in a semicolon.
_TYPED = re.compile(
    r"^[ \t]*+[A-Za-z_][\w<>\[\],:*& \t]{1,80}[ \t*&]([A-Za-z_]\w*)[ \t]*\([^;{}()\n]{0,200}\)[^;\n]{0,40}\{",
    re.MULTILINE,
)
_MOST = 4_000


def find_symbols(text: str) -> list[str]:
    """The names that a text defines, each once, in order."""
    return list(dict.fromkeys(_list(text)))[:_MOST]


def _list(text: str) -> Iterator[str]:
    for pattern in (_KEYED, _BOUND, _ASSIGNED, _TYPED):
        yield from (found[1] for found in pattern.finditer(text))
