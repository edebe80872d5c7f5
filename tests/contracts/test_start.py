"""Commands start fast: what takes long to import is not imported by those that do without it.

How fast is measured by ``python -m bench start``, which has the time to do it well.
"""

import subprocess
import sys
from pathlib import Path

import pytest

import lamella

PARSERS = {"pydantic", "pydantic_core", "typer._adapters"}
PROVIDERS = {"anthropic", "genai_prices", "google", "httpx2", "openai", "splintr", "xllamacpp"}
HEAVY = {"asyncio", "prompt_toolkit", "psycopg", "pydantic_settings", "ssl", "yaml"} | PARSERS | PROVIDERS
ENGINE = {
    "lamella.core.compaction",
    "lamella.core.prompt",
    "lamella.conversation",
}
# What each command must not import.
LIGHT = {
    "--version": HEAVY | ENGINE | {"lamella.stores", "msgspec", "platformdirs", "rich", "sqlite3", "typer"},
    "chats list": HEAVY | ENGINE,
    "chats list --json": {"rich.table"} | ENGINE | PROVIDERS | (HEAVY - PARSERS),
    "store migrate": (HEAVY - {"asyncio", "ssl"}) | {"rich"},
}
RUN = """
import sys
from lamella.cli import main
assert main(sys.argv[1:]) == 0
print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("words", LIGHT)
def test_command_imports_no_unneeded_heavy_module(tmp_path: Path, words: str) -> None:
    (tmp_path / ".lamella").mkdir()
    with lamella.open(f"sqlite:///{tmp_path}/.lamella/chats.db") as engine:
        engine.chat("garden").ask("What is decided?")
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words.split()],
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    loaded = set(done.stderr.split())
    assert "lamella.cli.entry_point" in loaded
    assert sorted(loaded & LIGHT[words]) == []
