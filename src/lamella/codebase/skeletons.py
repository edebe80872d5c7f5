"""Skeletons of source files: definitions with their signatures and documentation, without bodies.

``build_skeleton`` uses a tree-sitter parser for the language, or matches lines that define something if no parser is
installed. ``focus_skeleton`` shortens a long skeleton to the lines that match a question. ``Grammar`` names the nodes
of a language that are functions, whose bodies are dropped, those that are entered because they contain others, and
those that are kept unchanged. All other nodes are left out.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from lamella.errors import install_hint

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


_ELLIPSIS = "…"
_QUESTION_WORD = re.compile(r"[^\W\d_]{4,}")
_MIN_STEM_LENGTH = 4
# How many letters at the end of a word are ignored, so that forms of the same word match.
_IGNORED_ENDING_LENGTH = 2


def focus_skeleton(skeleton: str, question: str, *, max_chars: int) -> str:
    """Return a skeleton of about ``max_chars`` characters.

    Lines with words of the question come first, each with the definitions around it, then outermost lines, then the
    rest. An ellipsis marks omitted lines.
    """
    if len(skeleton) <= max_chars:
        return skeleton
    lines = skeleton.split("\n")
    stems = [
        word[: max(_MIN_STEM_LENGTH, len(word) - _IGNORED_ENDING_LENGTH)]
        for word in map(str.lower, _QUESTION_WORD.findall(question))
    ]
    matching_indexes = [at for at, line in enumerate(lines) if any(stem in line.lower() for stem in stems)]
    outermost = [at for at, line in enumerate(lines) if line[:1].strip()]
    outer = _list_parent_line_numbers(lines)
    kept: set[int] = set()
    remaining_chars = max_chars
    for at in (*matching_indexes, *outermost, *range(len(lines))):
        added = {one for one in _list_enclosing_line_numbers(at, outer) if one not in kept}
        size = sum(len(lines[one]) + 1 for one in added)
        if size <= remaining_chars:
            kept |= added
            remaining_chars -= size
    return "\n".join(_join_with_ellipses(lines, kept))


def _list_parent_line_numbers(lines: list[str]) -> list[int]:
    """Return, for each line, the last line before it with less indentation; the line itself if there is none."""
    outer: list[int] = []
    above: list[int] = []
    for at, line in enumerate(lines):
        while above and _count_indent(lines[above[-1]]) >= _count_indent(line):
            above.pop()
        outer.append(above[-1] if above else at)
        if line.strip():
            above.append(at)
    return outer


def _list_enclosing_line_numbers(line: int, parents: list[int]) -> list[int]:
    """Return a line and all lines it is nested below."""
    found = [line]
    while parents[found[-1]] != found[-1]:
        found.append(parents[found[-1]])
    return found


def _count_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _join_with_ellipses(lines: list[str], kept: set[int]) -> list[str]:
    shown: list[str] = []
    for at, line in enumerate(lines):
        if at in kept:
            shown.append(line)
        elif not shown or shown[-1] != _ELLIPSIS:
            shown.append(_ELLIPSIS)
    return shown


# Grammars: the parser of each language, and the names of its node types.


class Grammar(NamedTuple):
    """A language: the package with its parser, and its node types.

    ``containers`` have a body that is entered. ``wrappers`` are entered for their children. ``has_docstrings`` says
    that a string at the beginning of a body documents it; in other languages the comment before a definition does.
    """

    package: str
    language_function: str = "language"
    functions: frozenset[str] = frozenset()
    containers: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    verbatim: frozenset[str] = frozenset()
    has_docstrings: bool = False


_PYTHON = Grammar(
    package="tree_sitter_python",
    functions=frozenset({"function_definition"}),
    containers=frozenset({"class_definition"}),
    wrappers=frozenset({"decorated_definition", "if_statement", "else_clause", "try_statement", "block"}),
    verbatim=frozenset({"type_alias_statement", "assignment", "decorator"}),
    has_docstrings=True,
)
_JAVASCRIPT = Grammar(
    package="tree_sitter_javascript",
    functions=frozenset(
        {"function_declaration", "generator_function_declaration", "method_definition", "arrow_function"}
    ),
    containers=frozenset({"class_declaration", "class"}),
    wrappers=frozenset({"export_statement", "lexical_declaration", "variable_declaration", "variable_declarator"}),
    verbatim=frozenset({"field_definition"}),
)
_TYPESCRIPT = _JAVASCRIPT._replace(
    package="tree_sitter_typescript",
    language_function="language_typescript",
    functions=_JAVASCRIPT.functions | {"function_signature", "method_signature", "abstract_method_signature"},
    containers=_JAVASCRIPT.containers | {"abstract_class_declaration", "internal_module", "module"},
    wrappers=_JAVASCRIPT.wrappers | {"ambient_declaration", "expression_statement", "statement_block"},
    verbatim=frozenset(
        {"interface_declaration", "type_alias_declaration", "enum_declaration", "public_field_definition"}
    ),
)
_GO = Grammar(
    package="tree_sitter_go",
    functions=frozenset({"function_declaration", "method_declaration"}),
    verbatim=frozenset({"type_declaration", "const_declaration", "var_declaration", "package_clause"}),
)
_RUST = Grammar(
    package="tree_sitter_rust",
    functions=frozenset({"function_item", "function_signature_item"}),
    containers=frozenset({"impl_item", "trait_item", "mod_item", "foreign_mod_item"}),
    verbatim=frozenset(
        {"struct_item", "enum_item", "union_item", "type_item", "const_item", "static_item", "macro_definition"}
        | {"associated_type"}
    ),
)
_JAVA = Grammar(
    package="tree_sitter_java",
    functions=frozenset({"method_declaration", "constructor_declaration", "compact_constructor_declaration"}),
    containers=frozenset({"class_declaration", "interface_declaration", "record_declaration", "enum_declaration"}),
    wrappers=frozenset({"enum_body_declarations"}),
    verbatim=frozenset(
        {"field_declaration", "constant_declaration", "annotation_type_declaration", "package_declaration"}
        | {"enum_constant"}
    ),
)
_C = Grammar(
    package="tree_sitter_c",
    functions=frozenset({"function_definition"}),
    wrappers=frozenset(
        {"preproc_ifdef", "preproc_if", "preproc_else", "preproc_elif", "linkage_specification"} | {"declaration_list"}
    ),
    verbatim=frozenset(
        {"declaration", "type_definition", "struct_specifier", "enum_specifier", "union_specifier", "preproc_def"}
        | {"preproc_function_def"}
    ),
)
_CPP = _C._replace(
    package="tree_sitter_cpp",
    containers=frozenset({"class_specifier", "struct_specifier", "namespace_definition"}),
    wrappers=_C.wrappers | {"template_declaration", "field_declaration_list"},
    verbatim=(_C.verbatim - {"struct_specifier"})
    | {"field_declaration", "alias_declaration", "access_specifier", "concept_definition", "using_declaration"}
    | {"template_parameter_list"},
)
GRAMMARS: Mapping[str, Grammar] = MappingProxyType(
    {
        **dict.fromkeys((".py", ".pyi"), _PYTHON),
        **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), _JAVASCRIPT),
        **dict.fromkeys((".ts", ".mts", ".cts"), _TYPESCRIPT),
        ".tsx": _TYPESCRIPT._replace(language_function="language_tsx"),
        ".go": _GO,
        ".rs": _RUST,
        ".java": _JAVA,
        ".c": _C,
        **dict.fromkeys((".h", ".hh", ".hpp", ".hxx", ".cc", ".cpp", ".cxx"), _CPP),
    }
)


def find_grammar(path: str) -> Grammar | None:
    """Return the grammar of a file by its ending, or None."""
    return GRAMMARS.get(f".{path.rpartition('.')[2].lower()}")


# Real files of the largest size take less than a second.
_MAX_PARSE_MICROSECONDS = 5_000_000


@cache
def load_parser(package: str, language_function: str) -> "Parser | None":
    """Return a parser, or None if it is not installed. It is imported only when a file of its language is shown."""
    try:
        from tree_sitter import Language, Parser

        language = Language(getattr(import_module(package), language_function)())
    except ImportError:
        return None
    with warnings.catch_warnings():
        # Its replacement, a callback, works only for text that is read in parts.
        warnings.simplefilter("ignore", DeprecationWarning)
        return Parser(language, timeout_micros=_MAX_PARSE_MICROSECONDS)


# Building skeletons.

_MAX_DEPTH = 12
# The number of lines shown of a docstring, of a definition that is kept unchanged, and of a signature.
_MAX_DOC_LINES = 4
_MAX_VERBATIM_LINES = 12
_MAX_SIGNATURE_LINES = 20
_LONGEST_LINE = 200


class SkeletonWalk:
    """One walk through a parsed file. Each piece it yields begins on its own line."""

    def __init__(self, data: bytes, grammar: Grammar) -> None:
        self._data, self._grammar = data, grammar

    def render_definitions(self, node: "Node", depth: int = 0) -> Iterator[str]:
        """Yield the definitions among the children of a node, with the comments before them."""
        comments: list[Node] = []
        if depth > _MAX_DEPTH:
            return
        # Asking a node for its siblings takes time for each of them.
        children = node.named_children
        for at, child in enumerate(children):
            if "comment" in child.type or child.type == "attribute_item":
                comments.append(child)
                continue
            found = list(self._render_node(child, depth, siblings=children, at=at))
            if found and comments and comments[-1].end_point.row >= child.start_point.row - 1:
                yield from self._render_comments(comments, child)
            yield from found
            comments = []

    def _render_node(self, node: "Node", depth: int, *, siblings: Sequence["Node"], at: int) -> Iterator[str]:
        kind, grammar = node.type, self._grammar
        if kind in grammar.functions:
            yield from self._render_signature(node)
        elif kind in grammar.containers:
            yield from self._render_container(node, depth)
        elif kind in grammar.wrappers:
            yield from self.render_definitions(node, depth + 1)
        elif kind in grammar.verbatim and not _is_template_on_line_of_definition(siblings, at):
            yield self._truncate_lines(self._source_text(node, node.end_byte), _MAX_VERBATIM_LINES)
        elif kind == "expression_statement" and grammar.has_docstrings:
            yield from self._render_assignment(node, is_first=at == 0)

    def _render_container(self, node: "Node", depth: int) -> Iterator[str]:
        body = node.child_by_field_name("body")
        if body is None:
            yield self._truncate_lines(self._source_text(node, node.end_byte), _MAX_VERBATIM_LINES)
            return
        yield self._truncate_lines(self._source_text(node, body.start_byte).rstrip(" \t\n{"), _MAX_SIGNATURE_LINES)
        if self._grammar.has_docstrings:
            yield from self._render_docstring(body)
        yield from self.render_definitions(body, depth + 1)

    def _render_signature(self, node: "Node") -> Iterator[str]:
        body = node.child_by_field_name("body")
        end = node.end_byte if body is None else body.start_byte
        signature = self._truncate_lines(self._source_text(node, end).rstrip(" \t\n{"), _MAX_SIGNATURE_LINES)
        docstring = list(self._render_docstring(body)) if body is not None and self._grammar.has_docstrings else []
        yield signature if body is None or docstring else f"{signature} {_ELLIPSIS}"
        yield from docstring

    def _render_docstring(self, body: "Node") -> Iterator[str]:
        first = next(iter(body.named_children), None)
        if first is not None and first.type == "expression_statement":
            first = next(iter(first.named_children), None)
        if first is not None and first.type == "string":
            yield self._truncate_lines(self._source_text(first, first.end_byte), _MAX_DOC_LINES)

    def _render_assignment(self, node: "Node", *, is_first: bool) -> Iterator[str]:
        """Yield a name that Python code assigns, or the docstring of a module."""
        first = next(iter(node.named_children), None)
        if first is not None and first.type == "assignment":
            yield self._truncate_lines(self._source_text(first, first.end_byte), 3)
        elif first is not None and first.type == "string" and is_first and _is_in_module(node):
            yield self._truncate_lines(self._source_text(first, first.end_byte), _MAX_DOC_LINES)

    def _render_comments(self, comments: list["Node"], before: "Node") -> Iterator[str]:
        """Yield the block of comments that ends directly before a definition."""
        own: list[Node] = []
        row = before.start_point.row
        for one in reversed(comments):
            if one.end_point.row < row - 1:
                break
            own.append(one)
            row = one.start_point.row
        lines = "\n".join(self._source_text(one, one.end_byte).rstrip() for one in reversed(own))
        yield self._truncate_lines(lines, _MAX_DOC_LINES)

    def _source_text(self, node: "Node", end: int) -> str:
        """Return the text from the beginning of a node's line up to ``end``."""
        start = node.start_byte
        # Do not look further back than needed: a file may have all its definitions on one line.
        nearest = max(0, start - _LONGEST_LINE - 1)
        line = self._data.rfind(b"\n", nearest, start) + 1 or nearest
        # Text before the node on its line belongs to it, as ``export`` does, unless it is another definition.
        before = self._data[line:start]
        start = line if len(before) <= _LONGEST_LINE and not any(mark in before for mark in b"{};") else start
        return self._data[start:end].decode("utf-8", "replace")

    def _truncate_lines(self, text: str, lines: int) -> str:
        found = [_truncate_line(line) for line in text.strip("\n").split("\n")]
        if len(found) <= lines:
            return "\n".join(found)
        indent = found[lines][: len(found[lines]) - len(found[lines].lstrip())]
        return "\n".join((*found[:lines], f"{indent}{_ELLIPSIS}"))


def _is_template_on_line_of_definition(siblings: Sequence["Node"], at: int) -> bool:
    """Return whether a node is a template parameter list with its definition on the same line.

    Such a definition includes the list already.
    """
    if siblings[at].type != "template_parameter_list" or at + 1 == len(siblings):
        return False
    return siblings[at + 1].start_point.row == siblings[at].end_point.row


def _is_in_module(node: "Node") -> bool:
    return node.parent is not None and node.parent.type == "module"


def _truncate_line(line: str) -> str:
    return line.rstrip() if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}{_ELLIPSIS}"


# Increase this when the same text gives another skeleton. Stored skeletons with another value are ignored.
SKELETON_VERSION = "1"
PARSER_MISSING_HINT = "Skeletons are told by lines; a parser makes better ones. " + install_hint("code")
_MOST_LINES = 400
_DEFINITION_LINE = re.compile(
    r"[ \t]*(?:(?:[a-z]+(?:\([a-z]*\))?[ \t]+){0,4})(?:def|class|func|function|fn|fun|interface|struct|enum|trait|type"
    r"|impl|module|namespace|record|protocol|object|macro_rules!|union|package|sub|proc|defmodule|defp?|defmacro"
    r"|extension|actor|mixin|typedef|contract|message|service|template|CREATE|create)[ \t*]+\S.*"
    r"|#{1,4}[ \t]+\S.*|\[{1,2}[\w.\"' -]+\]{1,2}[ \t]*|[A-Za-z_][\w.-]*:(?:[ \t].*)?|#define[ \t]+\w+.*"
    r"|[A-Za-z_][\w<>\[\],:*& \t]{1,80}[ \t*&][A-Za-z_]\w*[ \t]*\([^;]*\)[ \t]*\{?"
)


def build_skeleton(path: str, text: str) -> tuple[str, bool]:
    """Return the skeleton of a file, and whether a parser for its language was missing."""
    grammar = find_grammar(path)
    if grammar is None:
        return _keep_definition_lines(text), False
    parser = load_parser(grammar.package, grammar.language_function)
    if parser is None:
        return _keep_definition_lines(text), True
    data = text.encode()
    try:
        root = parser.parse(data).root_node
    except ValueError:
        # The time was over. Text that is no code of this language can take quadratic time.
        parser.reset()
        return _keep_definition_lines(text), False
    pieces = SkeletonWalk(data, grammar).render_definitions(root)
    return "\n".join(pieces) or _keep_definition_lines(text), False


def _keep_definition_lines(text: str) -> str:
    """Return the lines that define something or are headings."""
    found = [
        line.rstrip() for line in text.split("\n") if len(line) <= _LONGEST_LINE and _DEFINITION_LINE.fullmatch(line)
    ]
    return "\n".join(found[:_MOST_LINES])
