"""Grammars: which parser knows a language, and what its nodes are called there.

A row says which nodes are functions, whose bodies go; which hold others and are entered; which stand as they are. What
no row names is left out.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Parser


class Grammar(NamedTuple):
    """A language: the package that carries its parser, and the names of its nodes.

    ``holders`` have a body that is entered, ``wrappers`` are entered for what stands in them. ``documented`` says that
    a text at the beginning of a body tells of it; elsewhere the comment before a definition does.
    """

    package: str
    loads: str = "language"
    functions: frozenset[str] = frozenset()
    holders: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    documented: bool = False


_PYTHON = Grammar(
    package="tree_sitter_python",
    functions=frozenset({"function_definition"}),
    holders=frozenset({"class_definition"}),
    wrappers=frozenset({"decorated_definition", "if_statement", "else_clause", "try_statement", "block"}),
    kept=frozenset({"type_alias_statement", "assignment", "decorator"}),
    documented=True,
)
_SCRIPT = Grammar(
    package="tree_sitter_javascript",
    functions=frozenset(
        {"function_declaration", "generator_function_declaration", "method_definition", "arrow_function"}
    ),
    holders=frozenset({"class_declaration", "class"}),
    wrappers=frozenset({"export_statement", "lexical_declaration", "variable_declaration", "variable_declarator"}),
    kept=frozenset({"field_definition"}),
)
_TYPED_SCRIPT = _SCRIPT._replace(
    package="tree_sitter_typescript",
    loads="language_typescript",
    functions=_SCRIPT.functions | {"function_signature", "method_signature", "abstract_method_signature"},
    holders=_SCRIPT.holders | {"abstract_class_declaration", "internal_module", "module"},
    wrappers=_SCRIPT.wrappers | {"ambient_declaration", "expression_statement", "statement_block"},
    kept=frozenset({"interface_declaration", "type_alias_declaration", "enum_declaration", "public_field_definition"}),
)
_GO = Grammar(
    package="tree_sitter_go",
    functions=frozenset({"function_declaration", "method_declaration"}),
    kept=frozenset({"type_declaration", "const_declaration", "var_declaration", "package_clause"}),
)
_RUST = Grammar(
    package="tree_sitter_rust",
    functions=frozenset({"function_item", "function_signature_item"}),
    holders=frozenset({"impl_item", "trait_item", "mod_item", "foreign_mod_item"}),
    kept=frozenset(
        {"struct_item", "enum_item", "union_item", "type_item", "const_item", "static_item", "macro_definition"}
        | {"associated_type"}
    ),
)
_JAVA = Grammar(
    package="tree_sitter_java",
    functions=frozenset({"method_declaration", "constructor_declaration", "compact_constructor_declaration"}),
    holders=frozenset({"class_declaration", "interface_declaration", "record_declaration", "enum_declaration"}),
    wrappers=frozenset({"enum_body_declarations"}),
    kept=frozenset(
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
    kept=frozenset(
        {"declaration", "type_definition", "struct_specifier", "enum_specifier", "union_specifier", "preproc_def"}
        | {"preproc_function_def"}
    ),
)
_CPP = _C._replace(
    package="tree_sitter_cpp",
    holders=frozenset({"class_specifier", "struct_specifier", "namespace_definition"}),
    wrappers=_C.wrappers | {"template_declaration", "field_declaration_list"},
    kept=(_C.kept - {"struct_specifier"})
    | {"field_declaration", "alias_declaration", "access_specifier", "concept_definition", "using_declaration"}
    | {"template_parameter_list"},
)
GRAMMARS: Mapping[str, Grammar] = MappingProxyType(
    {
        **dict.fromkeys((".py", ".pyi"), _PYTHON),
        **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), _SCRIPT),
        **dict.fromkeys((".ts", ".mts", ".cts"), _TYPED_SCRIPT),
        ".tsx": _TYPED_SCRIPT._replace(loads="language_tsx"),
        ".go": _GO,
        ".rs": _RUST,
        ".java": _JAVA,
        ".c": _C,
        **dict.fromkeys((".h", ".hh", ".hpp", ".hxx", ".cc", ".cpp", ".cxx"), _CPP),
    }
)


def find_grammar(path: str) -> Grammar | None:
    """The grammar of a file, by its ending."""
    return GRAMMARS.get(f".{path.rpartition('.')[2].lower()}")


@cache
def load_parser(package: str, loads: str) -> "Parser | None":
    """A parser; none where it is not installed. Imported when the first file of its language is shown."""
    try:
        from tree_sitter import Language, Parser

        return Parser(Language(getattr(import_module(package), loads)()))
    except ImportError:
        return None
