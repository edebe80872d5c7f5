"""Skeletons of any file: by a parser where there is one for its language, else by the lines that define something."""

import re

from lamella.adapters.sources.code.skeletons.grammars import find_grammar, load_parser
from lamella.adapters.sources.code.skeletons.parsed import SkeletonWalk
from lamella.errors import tell_install

# Raised when the same text would give another skeleton.
RULES = "1"
MISSING = "Skeletons are told by lines; a parser makes better ones. " + tell_install("code")
_LONGEST_LINE = 200
_MOST_LINES = 400
_LINE = re.compile(
    r"[ \t]*(?:(?:[a-z]+(?:\([a-z]*\))?[ \t]+){0,4})(?:def|class|func|function|fn|fun|interface|struct|enum|trait|type"
    r"|impl|module|namespace|record|protocol|object|macro_rules!|union|package|sub|proc|defmodule|defp?|defmacro"
    r"|extension|actor|mixin|typedef|contract|message|service|template|CREATE|create)[ \t*]+\S.*"
    r"|#{1,4}[ \t]+\S.*|\[{1,2}[\w.\"' -]+\]{1,2}[ \t]*|[A-Za-z_][\w.-]*:(?:[ \t].*)?|#define[ \t]+\w+.*"
    r"|[A-Za-z_][\w<>\[\],:*& \t]{1,80}[ \t*&][A-Za-z_]\w*[ \t]*\([^;]*\)[ \t]*\{?"
)


def build_skeleton(path: str, text: str) -> tuple[str, bool]:
    """The skeleton of a file, and whether a parser was missed for it."""
    grammar = find_grammar(path)
    if grammar is None:
        return _list_lines(text), False
    parser = load_parser(grammar.package, grammar.loads)
    if parser is None:
        return _list_lines(text), True
    data = text.encode()
    pieces = SkeletonWalk(data, grammar).list_pieces(parser.parse(data).root_node)
    return "\n".join(pieces) or _list_lines(text), False


def _list_lines(text: str) -> str:
    """The lines that define something, or are headings."""
    found = [line.rstrip() for line in text.split("\n") if len(line) <= _LONGEST_LINE and _LINE.fullmatch(line)]
    return "\n".join(found[:_MOST_LINES])
