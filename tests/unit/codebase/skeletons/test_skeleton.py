"""Skeletons: what a file defines, without what it does."""

import subprocess
import sys

import pytest

from lamella.codebase.skeletons import GRAMMARS, SkeletonWalk, build_skeleton, find_grammar, load_parser

PYTHON = '''"""A garden."""
import os
LIMIT: int = 3
def sow(bed: int,
        seed: str = "bean") -> None:
    """Sow a seed.

    With words.
    """
    secret_body = 1
@dataclass
class Bed(Base):
    """A bed."""
    size: int = 0
    @property
    def area(self): return secret_body
'''
SKELETONS = {
    "a.py": (
        PYTHON,
        '"""A garden."""\nLIMIT: int = 3\ndef sow(bed: int,\n        seed: str = "bean") -> None:\n    """Sow a seed.'
        '\n\n    With words.\n    """'
        '\n@dataclass\nclass Bed(Base):\n    """A bed."""\n    size: int = 0\n    @property\n'
        "    def area(self): …",
    ),
    "a.js": (
        "// Adds.\nfunction add(a, b) { return a + b }\nclass A extends B {\n  get y() { return 2 }\n}\n"
        "export const f = async (x) => { return x };\n",
        "// Adds.\nfunction add(a, b) …\nclass A extends B\n  get y() …\nexport const f = async (x) => …",
    ),
    "a.ts": (
        "/** A user. */\nexport interface User { id: number }\nexport class Finder<T> {\n  /** Finds. */\n"
        "  async find(id: string): Promise<T> {\n    return this.x;\n  }\n}\n",
        "/** A user. */\nexport interface User { id: number }\nexport class Finder<T>\n  /** Finds. */\n"
        "  async find(id: string): Promise<T> …",
    ),
    "a.tsx": ("export function App(p: P) { return <div/>; }\n", "export function App(p: P) …"),
    "a.go": (
        "package main\n\n// Server serves.\ntype Server struct {\n\tAddr string\n}\n\n// Run runs.\n"
        "func (s *Server) Run() error {\n\treturn nil\n}\n",
        "package main\n// Server serves.\ntype Server struct {\n\tAddr string\n}\n// Run runs.\n"
        "func (s *Server) Run() error …",
    ),
    "a.rs": (
        "/// A point.\n#[derive(Debug)]\npub struct Point { x: f64 }\nimpl Point {\n    /// Makes one.\n"
        "    pub fn new(x: f64) -> Self { Point { x } }\n}\n",
        "/// A point.\n#[derive(Debug)]\npub struct Point { x: f64 }\nimpl Point\n    /// Makes one.\n"
        "    pub fn new(x: f64) -> Self …",
    ),
    "A.java": (
        "/** A service. */\npublic class Svc implements I {\n    private int x = 1;\n    /** Runs. */\n    @Override\n"
        "    public void run(int a) throws E {\n        go();\n    }\n}\n",
        "/** A service. */\npublic class Svc implements I\n    private int x = 1;\n    /** Runs. */\n    @Override\n"
        "    public void run(int a) throws E …",
    ),
    "a.c": (
        "#define MAX 10\n/* Adds. */\nstatic int add(int a, int b)\n{\n    return a + b;\n}\n",
        "#define MAX 10\n/* Adds. */\nstatic int add(int a, int b) …",
    ),
    "a.cpp": (
        "namespace ns {\n/// A shape.\ntemplate <typename T>\nclass Shape : public Base {\npublic:\n"
        "    virtual double area() const = 0;\n    int inl() { return 1; }\n};\n}\n",
        "namespace ns\n/// A shape.\ntemplate <typename T>\nclass Shape : public Base\npublic\n"
        "    virtual double area() const = 0;\n    int inl() …",
    ),
}  # fmt: skip
WITHOUT = """
import sys
sys.modules["tree_sitter"] = None
from lamella.codebase.skeletons import build_skeleton
print(build_skeleton("a.py", "class A:\\n    def f(self):\\n        return 1\\n"))
"""


@pytest.mark.parametrize("path", SKELETONS)
def test_parsed_language_keeps_signatures_and_docs(path: str) -> None:
    text, skeleton = SKELETONS[path]
    assert build_skeleton(path, text) == (skeleton, False)


def test_every_grammar_is_installed_for_tests_and_loads() -> None:
    assert [ending for ending, one in GRAMMARS.items() if load_parser(one.package, one.language_function) is None] == []


def test_other_language_is_processed_by_lines() -> None:
    text = "module Garden\n  def sow(bed)\n    x = 1\n  end\nend\n"
    assert build_skeleton("a.rb", text) == ("module Garden\n  def sow(bed)", False)
    assert build_skeleton("a.md", "# One\n\nwords\n\n## Two\n") == ("# One\n## Two", False)
    assert find_grammar("a.rb") is None


def test_skeleton_without_parser_works_by_lines_and_says_so() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "('class A:\\n    def f(self):', True)"


@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.cpp", "a.rs"])
@pytest.mark.parametrize(
    "text", ["", "def f(:::\n class {{{", "{" * 30_000, "(" * 30_000, "x = 1\n" * 10, "é" * 500, "class A:\n" * 300]
)
def test_any_file_content_gives_bounded_skeleton(path: str, text: str) -> None:
    skeleton, _ = build_skeleton(path, text)
    assert len(skeleton) <= len(text) * 2 + 100


def test_long_definition_is_cut_with_ellipsis() -> None:
    skeleton, _ = build_skeleton("a.go", "package a\nvar x = []int{\n" + "\t1,\n" * 50 + "}\n")
    assert skeleton.endswith("\t…")
    assert skeleton.count("\n") < 20


def test_walk_gives_pieces_in_order() -> None:
    grammar = GRAMMARS[".py"]
    parser = load_parser(grammar.package, grammar.language_function)
    assert parser is not None
    data = b"def a(): ...\ndef b(): ...\n"
    assert list(SkeletonWalk(data, grammar).render_definitions(parser.parse(data).root_node)) == [
        "def a(): \u2026",
        "def b(): \u2026",
    ]


def test_text_that_a_parser_cannot_finish_is_matched_by_lines() -> None:
    # The parser needs quadratic time for this: half an hour for a million characters.
    skeleton, _ = build_skeleton("a.py", "\\\n" * 500_000 + "def f():\n    pass\n")
    assert "def f" in skeleton
    assert build_skeleton("b.py", "def g():\n    pass\n") == ("def g(): …", False)


def test_many_definitions_on_one_line_are_found() -> None:
    assert build_skeleton("a.py", "a=1;" * 50_000)[0].count("a=1") == 50_000
    assert build_skeleton("a.cpp", "template<class T>\nclass A;\n" * 20_000)[0].count("template") == 20_000
