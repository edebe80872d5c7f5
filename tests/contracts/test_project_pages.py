"""Architecture, contributing guide, changelog and decisions name what exists."""

import ast
import re
import tomllib

from tests.contracts.call_traces import walk_in_new_process
from tests.contracts.repository import DOCS, ROOT, SRC, doc, python_files, tree
from tests.contracts.tables import names

from lamella.core.budget import TokenBudget

PATH = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")
CALL = re.compile(r"`(?:\w+\.)?(\w+)\(\)`")
QUESTION = "A question, from `lamella ask` to the provider and back"
NOTE = "A note, from the file to the prompt"


def _section(page: str, heading: str) -> str:
    found: str = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    assert found, heading
    return found


def _defined(path: str) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree(SRC / path)) if isinstance(node, kinds)}


def test_architecture_has_a_line_for_every_package() -> None:
    described = set(names(_section(doc("architecture.md"), "Packages")))
    public = {"code.py", "notes.py", "testing.py", "workflows.py", "__init__.py"}
    found = {path.parent.name for path in SRC.glob("*/__init__.py")}
    found |= {path.name for path in SRC.glob("*.py")} - public
    found |= {f"core/{path.parent.name}" for path in (SRC / "core").glob("*/__init__.py")}
    found |= {f"core/{path.name}" for path in (SRC / "core").glob("*.py")} - {"core/__init__.py", "core/values.py"}
    assert described == found


def test_architecture_lists_packages_in_the_order_of_their_imports() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    ranks = {
        name.strip().removeprefix("lamella.").replace(".", "/"): rank
        for contract in contracts
        if contract["type"] == "layers"
        for rank, layer in enumerate(contract["layers"])
        for name in layer.split("|")
    }
    listed = [name.removesuffix(".py") for name in names(_section(doc("architecture.md"), "Packages"))]
    for inside in (False, True):
        found = [ranks[name] for name in listed if ("/" in name) is inside]
        assert found == sorted(found)


def test_architecture_names_files_and_functions_that_exist() -> None:
    page = doc("architecture.md")
    assert sorted({path for path in PATH.findall(page) if not (SRC / path).is_file()}) == []
    for heading in (QUESTION, NOTE):
        for step in re.split(r"^\d+\. ", _section(page, heading), flags=re.MULTILINE)[1:]:
            called = set(CALL.findall(step.partition("\n\n")[0]))
            defined = set[str]().union(*map(_defined, PATH.findall(step)))
            assert sorted(called - defined) == [], step
    classes = {
        node.name for path in python_files("src") for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)
    }
    assert sorted(set(re.findall(r"`([A-Z]\w+)`", page)) - classes) == []


def test_architecture_walks_pass_the_files_that_a_real_turn_passes() -> None:
    passed = set(walk_in_new_process()["send"].passed)
    page = doc("architecture.md")
    named = [path for heading in (QUESTION, NOTE) for path in PATH.findall(_section(page, heading))]
    # A turn without tools, compaction, embeds and queries does not pass these; the other interfaces have their own.
    elsewhere = {
        "conversation/tool_executor.py", "core/compaction/chain.py", "core/compaction/steps.py", "sources/obsidian.py",
        "sources/dataview/blocks.py", "sources/mentions.py", "core/layout/costs.py", "providers/anthropic.py",
        "core/artifacts/model.py", "core/log/turn.py", "runners/registry.py", "conversation/turn.py",
    }  # fmt: skip
    inside = {path for path in named if not path.startswith(("cli/", "server/"))}
    assert sorted(inside - passed - elsewhere) == []


def test_contributing_names_tests_and_files_that_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tests = set(re.findall(r"`(tests/[\w/.]+)`", page))
    assert tests
    assert sorted(path for path in tests if not (ROOT / path).exists()) == []
    for recipe in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        files = [SRC / path for path in PATH.findall(recipe) if (SRC / path).is_file()]
        modules = [
            ROOT / "src" / f"{name.replace('.', '/')}.py" for name in re.findall(r"`(lamella(?:\.\w+)+)`", recipe)
        ]
        text = "\n".join(path.read_text(encoding="utf-8") for path in [*files, *modules, SRC / "ports.py"])
        known = set(re.findall(r"\w+", text))
        assert sorted(set(re.findall(r"`(_?[A-Z]\w+)`", recipe)) - known) == [], recipe
    paths = {path for path in PATH.findall(page) if not path.startswith("tests/")}
    assert sorted(path for path in paths if not (SRC / path).is_file()) == []


def test_every_decision_is_listed_with_title() -> None:
    listed = {name: title for title, name in re.findall(r"- \[(.+?)\]\(([\w-]+\.md)\)", doc("decisions/README.md"))}
    records = {path.name: path for path in (DOCS / "decisions").glob("*.md") if path.name != "README.md"}
    assert listed == {
        name: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for name, path in records.items()
    }


def test_compaction_depth_states_the_default_target() -> None:
    target = TokenBudget().target
    assert f"`target`, {target:.2f} by default" in " ".join(doc("decisions/compaction-depth.md").split())


def test_source_names_decisions_that_exist() -> None:
    files = python_files("src", "tests", "bench", "mutation")
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    named = set(re.findall(r"docs/decisions/([\w-]+\.md)", text))
    assert named
    assert sorted(name for name in named if not (DOCS / "decisions" / name).exists()) == []


def test_changelog_has_no_entry_twice() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = [" ".join(entry.split()) for entry in re.findall(r"^- .+(?:\n  .+)*", text, re.MULTILINE)]
    assert entries
    assert sorted(entries) == sorted(set(entries))
