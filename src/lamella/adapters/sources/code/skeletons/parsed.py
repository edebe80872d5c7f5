"""Parsed skeletons: definitions with their signatures and what is said of them, without what they do."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lamella.adapters.sources.code.skeletons.grammars import Grammar

if TYPE_CHECKING:
    from tree_sitter import Node

_LEFT_OUT = "…"
_DEEPEST = 12
# How many lines of a docstring, of a definition that stands as it is, and of a signature are shown.
_DOC_LINES = 4
_KEPT_LINES = 12
_SIGNATURE_LINES = 20
_LONGEST_LINE = 200


class SkeletonWalk:
    """One walk through a parsed file; each piece that it gives begins on a line of its own."""

    def __init__(self, data: bytes, grammar: Grammar) -> None:
        self._data, self._grammar = data, grammar

    def list_pieces(self, node: "Node", depth: int = 0) -> Iterator[str]:
        """The definitions among the children of a node, with the comments before them."""
        comments: list[Node] = []
        if depth > _DEEPEST:
            return
        for child in node.named_children:
            if "comment" in child.type or child.type == "attribute_item":
                comments.append(child)
                continue
            found = list(self._describe(child, depth))
            if found and comments and comments[-1].end_point.row >= child.start_point.row - 1:
                yield from self._tell_comments(comments, child)
            yield from found
            comments = []

    def _describe(self, node: "Node", depth: int) -> Iterator[str]:
        kind, grammar = node.type, self._grammar
        if kind in grammar.functions:
            yield from self._tell_signature(node)
        elif kind in grammar.holders:
            yield from self._tell_holder(node, depth)
        elif kind in grammar.wrappers:
            yield from self.list_pieces(node, depth + 1)
        elif kind in grammar.kept and not _is_on_line_of_next(node):
            yield self._cut(self._read_lines(node, node.end_byte), _KEPT_LINES)
        elif kind == "expression_statement" and grammar.documented:
            yield from self._tell_assigned(node)

    def _tell_holder(self, node: "Node", depth: int) -> Iterator[str]:
        body = node.child_by_field_name("body")
        if body is None:
            yield self._cut(self._read_lines(node, node.end_byte), _KEPT_LINES)
            return
        yield self._cut(self._read_lines(node, body.start_byte).rstrip(" \t\n{"), _SIGNATURE_LINES)
        if self._grammar.documented:
            yield from self._tell_docstring(body)
        yield from self.list_pieces(body, depth + 1)

    def _tell_signature(self, node: "Node") -> Iterator[str]:
        body = node.child_by_field_name("body")
        end = node.end_byte if body is None else body.start_byte
        signature = self._cut(self._read_lines(node, end).rstrip(" \t\n{"), _SIGNATURE_LINES)
        said = list(self._tell_docstring(body)) if body is not None and self._grammar.documented else []
        yield signature if body is None or said else f"{signature} {_LEFT_OUT}"
        yield from said

    def _tell_docstring(self, body: "Node") -> Iterator[str]:
        first = next(iter(body.named_children), None)
        if first is not None and first.type == "expression_statement":
            first = next(iter(first.named_children), None)
        if first is not None and first.type == "string":
            yield self._cut(self._read_lines(first, first.end_byte), _DOC_LINES)

    def _tell_assigned(self, node: "Node") -> Iterator[str]:
        """A name that Python binds, and the text that a module begins with."""
        first = next(iter(node.named_children), None)
        if first is not None and first.type == "assignment":
            yield self._cut(self._read_lines(first, first.end_byte), 3)
        elif first is not None and first.type == "string" and _opens_module(node):
            yield self._cut(self._read_lines(first, first.end_byte), _DOC_LINES)

    def _tell_comments(self, comments: list["Node"], before: "Node") -> Iterator[str]:
        """The comment that ends right before a definition, from its beginning."""
        own: list[Node] = []
        row = before.start_point.row
        for one in reversed(comments):
            if one.end_point.row < row - 1:
                break
            own.append(one)
            row = one.start_point.row
        lines = "\n".join(self._read_lines(one, one.end_byte).rstrip() for one in reversed(own))
        yield self._cut(lines, _DOC_LINES)

    def _read_lines(self, node: "Node", end: int) -> str:
        """The text from the beginning of the line that a node begins on."""
        start = node.start_byte
        line = self._data.rfind(b"\n", 0, start) + 1
        # What stands before it on its line belongs to it, as `export` does, unless that is another definition.
        before = self._data[line:start]
        start = line if len(before) <= _LONGEST_LINE and not any(mark in before for mark in b"{};") else start
        return self._data[start:end].decode("utf-8", "replace")

    def _cut(self, text: str, lines: int) -> str:
        found = [_shorten(line) for line in text.strip("\n").split("\n")]
        if len(found) <= lines:
            return "\n".join(found)
        indent = found[lines][: len(found[lines]) - len(found[lines].lstrip())]
        return "\n".join((*found[:lines], f"{indent}{_LEFT_OUT}"))


def _is_on_line_of_next(node: "Node") -> bool:
    """Whether what a node is said of follows on its line, and brings it along: so do parameters of a template."""
    behind = node.next_named_sibling
    told = node.type == "template_parameter_list" and behind is not None
    return bool(told and behind and behind.start_point.row == node.end_point.row)


def _opens_module(node: "Node") -> bool:
    return node.prev_named_sibling is None and node.parent is not None and node.parent.type == "module"


def _shorten(line: str) -> str:
    return line.rstrip() if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}{_LEFT_OUT}"
