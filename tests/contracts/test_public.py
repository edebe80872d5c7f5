"""The public modules: their names are pinned, importing them is light, and pages import nothing else."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.contracts.repository import ROOT, SRC, markdown_files, shown

PROVIDERS = [
    "AnthropicProvider",
    "AuthenticationError",
    "BreakpointPlacement",
    "BuiltInModelProfiles",
    "BuiltInWireFormats",
    "CacheBoundaries",
    "CacheDiagnosis",
    "CacheForecast",
    "CacheForecaster",
    "CacheProfile",
    "CacheStorageAssumptions",
    "CacheUsage",
    "ContextOverflowError",
    "Delta",
    "GeminiProvider",
    "ImageData",
    "InvalidReplyError",
    "LlamaServerOptions",
    "LocalProvider",
    "Message",
    "ModelNotFoundError",
    "ModelProfile",
    "ModelProvider",
    "ModelRegistry",
    "ModelReply",
    "ModelRequest",
    "OpenAIChatProvider",
    "OpenAIResponsesProvider",
    "PromptProgress",
    "ProviderError",
    "ProviderOverloadedError",
    "ProviderReply",
    "ProviderTimeoutError",
    "ProviderUnreachableError",
    "RateLimitError",
    "ReasoningDelta",
    "RemoteCacheManager",
    "RequestRejectedError",
    "RetryableProviderError",
    "Role",
    "SdkNotInstalledError",
    "StopDelta",
    "StopReason",
    "TextDelta",
    "ToolCall",
    "ToolDefinition",
    "ToolOutput",
    "ToolRound",
    "Usage",
    "UserModels",
    "WrongEndpointError",
    "estimate_storage_costs",
    "load_profiles",
    "open_provider",
    "parse_profiles",
    "reply_from_deltas",
    "round_messages",
]
PLUGINS = [
    "CompactionStep",
    "KindReader",
    "PluginGroup",
    "PluginInfo",
    "PluginWarning",
    "PriceBook",
    "ProviderOpener",
    "ReadText",
    "ReplyInPrompt",
    "RunnerPlugin",
    "SecretScannerPlugin",
    "StoreOpener",
    "TokenCounterPlugin",
    "list_plugins",
    "register",
    "unregister",
]
TESTING = [
    "InMemoryStore",
    "PluginCheckError",
    "ScriptedProvider",
    "ScriptedReply",
    "SettableClock",
    "check_compaction_step",
    "check_kind",
    "check_price_book",
    "check_provider",
    "check_runner",
    "check_secret_scanner",
    "check_store",
    "check_token_counter",
    "check_tool",
]
CODE = [
    "CodeAnswer",
    "CodeFile",
    "CodeForm",
    "CodeSelection",
    "CodeTask",
    "CodeTaskTurn",
    "FilterResponseJson",
    "Instruction",
    "InstructionsInPrompt",
    "SolutionJson",
    "ask_about_code",
    "build_task_turn",
    "get_task_state",
    "select_code",
    "select_files",
    "select_files_for_request",
    "selection_to_attachments",
    "solve_request",
]
NOTES = ["Citation", "FileChange", "IndexReport", "NoteHit", "NoteIndex", "open_index"]
WORKFLOWS = [
    "DocumentProblem",
    "DocumentSection",
    "StageDecision",
    "StageProgress",
    "StageSpec",
    "StageWrite",
    "WorkflowDocument",
    "WorkflowError",
    "WorkflowProgress",
    "WorkflowSpec",
    "get_workflow",
    "list_citation_styles",
    "list_workflows",
    "read_references",
    "write_document",
]
PINNED = {
    "lamella.code": CODE,
    "lamella.notes": NOTES,
    "lamella.plugins": PLUGINS,
    "lamella.providers": PROVIDERS,
    "lamella.testing": TESTING,
    "lamella.workflows": WORKFLOWS,
}
# Each imports the package of a framework, so they are imported one by one and not with ``lamella``.
FRAMEWORKS = {
    "lamella.integrations.langchain": ["LamellaMiddleware"],
    "lamella.integrations.openai_agents": ["LamellaSession"],
    "lamella.integrations.pydantic_ai": ["LamellaCapability"],
    "lamella.integrations.chat_messages": ["ChatHistories", "ChatMessage"],
}
PUBLIC = {"lamella", "lamella.attach", *PINNED, *FRAMEWORKS}
HEAVY = ("anthropic", "genai_prices", "google", "httpx2", "openai", "pydantic", "rich", "typer", "xllamacpp")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("module", PINNED)
def test_names_of_a_public_module_are_pinned_and_there(module: str) -> None:
    found = import_module(module)
    assert found.__all__ == PINNED[module]
    assert [name for name in found.__all__ if not hasattr(found, name)] == []
    assert set(found.__all__) <= set(dir(found))


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_names_of_a_framework_module_are_pinned_and_there(module: str) -> None:
    assert import_module(module).__all__ == FRAMEWORKS[module]


def test_unknown_public_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        _ = import_module("lamella.providers").Nobody


@pytest.mark.parametrize("module", PINNED)
def test_importing_public_module_loads_no_heavy_modules(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert sorted(loaded & set(HEAVY)) == []


def test_names_for_custom_providers_load_no_adapter() -> None:
    names = "ModelProvider, ModelRequest, StopDelta, TextDelta"
    code = f"import sys; from lamella.providers import {names}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if name.startswith("lamella.providers.")] == []


def find_private(code: str) -> Iterator[str]:
    """Every module of Lamella that a program imports although it is not public."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case _:
                modules = []
        yield from (name for name in modules if name.partition(".")[0] == "lamella" and name not in PUBLIC)


def programs() -> Iterator[tuple[Path, str]]:
    """The code of the pages that people read, and the examples."""
    for page in markdown_files():
        yield from ((page, block) for block in BLOCK.findall(page.read_text(encoding="utf-8")))
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield path, path.read_text(encoding="utf-8")


def test_pages_and_examples_import_public_modules_only() -> None:
    found = list(programs())
    assert len(found) > 10
    assert sorted({f"{shown(path)}: {name}" for path, code in found for name in find_private(code)}) == []


def test_private_imports_are_recognized() -> None:
    code = "import lamella\nimport lamella.core.log\nfrom lamella.ports import Store\nfrom lamella.testing import X\n"
    assert list(find_private(code)) == ["lamella.core.log", "lamella.ports"]


def test_public_modules_are_files_at_the_top() -> None:
    there = {f"lamella.{path.stem}" for path in SRC.glob("*.py")} | {
        f"lamella.{path.parent.name}" for path in SRC.glob("*/__init__.py")
    }
    assert {"lamella.code", "lamella.notes", "lamella.providers", "lamella.testing"} <= there
