"""Imports point one way, and importing the package does nothing else."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.contracts.repository import CORE, ROOT, SRC, python_files, shown

import lamella

EXPORTS = [
    "ActiveNote",
    "BadInputError",
    "Canvas",
    "Code",
    "CompactionMarker",
    "CompactionProposal",
    "CompactionReceipt",
    "ConflictError",
    "ContextBudgetExceededError",
    "Conversation",
    "ConversationErasedError",
    "ConversationListItem",
    "Dataview",
    "Engine",
    "Envelope",
    "EventName",
    "Fact",
    "Folder",
    "Image",
    "ImportOutcome",
    "InvalidOperationError",
    "InvariantViolatedError",
    "LamellaError",
    "Layer",
    "LedgerTotals",
    "MentionOutcome",
    "Message",
    "MessageHit",
    "ModelCall",
    "ModelReply",
    "Note",
    "Office",
    "Pdf",
    "PromptExplanation",
    "RecallHit",
    "ReplyOnOtherBranchError",
    "RequestFingerprint",
    "Segment",
    "Selection",
    "StoreError",
    "StoreProblem",
    "StoreStats",
    "SuggestedAction",
    "Tag",
    "Tool",
    "ToolCall",
    "ToolOutput",
    "ToolResult",
    "Turn",
    "TurnEvent",
    "TurnLedgerRow",
    "TurnRecord",
    "Unknown",
    "Url",
    "WebTab",
    "YouTube",
    "build_ledger_rows",
    "find_mentions",
    "total_ledger_rows",
]

# What ``import lamella`` opens, connects to and starts, and which modules it loads, as JSON on stdout.
WATCH = """
import json, sys
seen = []
sys.addaudithook(lambda event, args: seen.append([event, str(args[0]) if args else "", str(args[1:2])]))
import lamella
print(json.dumps({"seen": seen, "modules": sorted(sys.modules), "path": sys.path}))
"""
HEAVY = {"genai_prices", "httpx2", "rich", "typer"}


def test_public_names_are_pinned() -> None:
    assert lamella.__all__ == EXPORTS
    # What a method gives, takes or raises can be named by whoever calls it, without a look into private rooms.
    assert len(lamella.__all__) <= 60
    assert [name for name in lamella.__all__ if not hasattr(lamella, name)] == []


def test_dir_lists_public_names_without_importing_them() -> None:
    code = "import lamella; print(*dir(lamella)); print(lamella.open.__name__, lamella.Note.__name__); lamella.Nobody"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    listed, found = done.stdout.splitlines()
    assert {*EXPORTS, "open", "__version__"} <= set(listed.split())
    assert found == "open_engine Note"
    assert done.stderr.endswith("AttributeError: module 'lamella' has no attribute 'Nobody'\n")


def test_version_is_the_one_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{lamella.__version__}]" in changelog


def test_import_contracts_are_kept() -> None:
    linter = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "0 broken" in result.stdout


def _contracts() -> list[dict[str, Any]]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts: list[dict[str, Any]] = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return contracts


def _named(contracts: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (contract,) = [contract for contract in contracts if contract["name"] == name]
    return contract


def test_core_packages_have_one_order_without_exceptions() -> None:
    contract = _named(_contracts(), "Packages of core import in one order")
    order = [
        "workflow", "compaction", "layout", "ledger | lamella.core.search", "prompt", "log", "budget", "messages",
        "artifacts", "text",
    ]  # fmt: skip
    assert contract == {
        "name": contract["name"],
        "type": "layers",
        "layers": [f"lamella.core.{name}" for name in order],
    }
    named = {name.strip().removeprefix("lamella.core.") for line in contract["layers"] for name in line.split("|")}
    there = {path.parent.name for path in CORE.glob("*/__init__.py")} | {path.stem for path in CORE.glob("*.py")}
    assert named == there - {"__init__", "values"}


def test_import_contracts_match_architecture() -> None:
    contracts = _contracts()
    layers = _named(contracts, "Imports point one way")["layers"]
    order = [name.strip().removeprefix("lamella.") for line in layers for name in line.split("|")]
    # A package that no layer names would be free to import anything.
    there = {path.parent.name for path in SRC.glob("*/__init__.py")} | {path.stem for path in SRC.glob("*.py")}
    public_modules = {"__init__", "code", "notes", "testing", "workflows"}
    assert sorted(there - public_modules - set(order)) == []
    assert order.index("cli") < order.index("wiring") < order.index("conversation") < order.index("core")
    forbidden = next(c for c in contracts if c["type"] == "forbidden" and c["source_modules"] == ["lamella.core"])
    assert {"os", "time", "random", "pydantic", "pathlib", "asyncio", "sqlite3"} <= set(forbidden["forbidden_modules"])
    faces = next(
        c for c in contracts if c["type"] == "forbidden" and c["source_modules"] == ["lamella.cli", "lamella.server"]
    )
    assert faces["forbidden_modules"] == ["lamella.core"]
    views = next(c for c in contracts if c["type"] == "forbidden" and c["source_modules"] == ["lamella.schemas"])
    assert {"os", "time", "random", "pathlib", "sys", "rich", "typer"} <= set(views["forbidden_modules"])


def test_cli_imports_nothing_from_core() -> None:
    importing = [
        shown(path) for path in python_files("src/lamella/cli") if "lamella.core" in path.read_text(encoding="utf-8")
    ]
    assert importing == []


def test_importing_lamella_has_no_side_effects(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        [sys.executable, "-c", WATCH], cwd=tmp_path, env=home, capture_output=True, text=True, check=True
    )
    report = json.loads(result.stdout)
    code = (*(str(Path(place).resolve()) for place in report["path"] if place), str(SRC))
    opened = [name for event, name, _ in report["seen"] if event == "open"]
    assert [name for name in opened if not str(Path(name).resolve()).startswith(code)] == []
    assert [event for event, *_ in report["seen"] if event.startswith(("socket.", "subprocess.", "os.mkdir"))] == []
    assert result.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_importing_lamella_loads_no_heavy_modules(tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, "-c", WATCH], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(result.stdout)["modules"]}
    assert "lamella" in loaded
    assert sorted(loaded & HEAVY) == []
