"""Provider names appear only in ``providers``."""

import ast
import re
from collections.abc import Iterator

from tests.contracts.repository import SRC, python_files, shown, tree

# Providers, their models, and what runs models in this process.
NAMES = re.compile(
    r"anthropic|azure|bedrock|claude|deepseek|gemini|gemma|gguf|google|gpt|grok|llama|mistral|ollama|openai|openrouter"
    r"|qwen|smollm|vertex|vllm|\bxai\b",
    re.IGNORECASE,
)
# Families of vocabularies are named by who made them, the public module by whom it can talk to, and endpoints of the server
# by whose clients come in. Logs and agent hosts are those of somebody.
HOMES = (
    "providers/",
    "tokenizers/",
    "server/compat/",
    "server/app.py",
    "server/errors.py",
    "integrations/",
    "doctor/",
    "cli/skill.py",
)


def find_names(module: ast.Module) -> Iterator[str]:
    """Providers by name in what the program acts by; sentences for people, such as help and hints, may name them."""
    for node in ast.walk(module):
        match node:
            case ast.Constant(value=str(text)) if " " not in text.strip() and NAMES.search(text):
                yield f"{node.lineno}: {text!r}"
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield from (f"{node.lineno}: {name}" for _ in NAMES.findall(name)[:1])
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield from (f"{node.lineno}: {name}" for _ in NAMES.findall(name)[:1])
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                module_name = getattr(node, "module", "") or ""
                words = " ".join((module_name, *(one.name for one in names)))
                yield from (f"{node.lineno}: imports {words}" for _ in NAMES.findall(words)[:1])


def test_provider_names_appear_only_in_providers_package() -> None:
    outside = [path for path in python_files("src") if not path.relative_to(SRC).as_posix().startswith(HOMES)]
    assert len(outside) > 100
    assert [f"{shown(path)}:{name}" for path in outside for name in find_names(tree(path))] == []


def test_names_of_providers_are_recognized() -> None:
    named = """
from lamella.providers.gemini import GeminiProvider
def ask_openai(claude=None):
    if model.startswith("gguf:"):
        return connect(ollama=1, text="Ask Anthropic for a key.")
"""
    assert [name.partition(": ")[0] for name in find_names(ast.parse(named))] == ["2", "3", "3", "4", "5"]
    assert list(find_names(ast.parse('"""Speaks with OpenAI."""\nlocal = "local"'))) == []
