"""The recipe for a provider, done in a copy: one new folder, one line more in the registry, and it answers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.contracts.places import ROOT

HOME = Path("lamella/adapters/providers")
REGISTRY = HOME / "registry.py"
DOOR = '''"""Echo: a provider that says back what it was asked.

Enters: neutral requests. Leaves: deltas.
May not enter: anything that needs a model.
"""
'''
PROVIDER = '''"""A provider that says back what it was asked."""

from collections.abc import AsyncIterator

from lamella.adapters.providers.registry import bare_model
from lamella.core.messages.delta import Delta, Stop, StopReason, TextDelta
from lamella.core.messages.request import Request


class EchoProvider:
    """Says the last message again, by the name of the model."""

    def __init__(self, *, key: str) -> None:
        self._key = key

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        yield TextDelta(text=f"{bare_model(request.model)}: {request.messages[-1].text}")
        yield Stop(reason=StopReason.END)

    async def close(self) -> None:
        """There is nothing to give back."""
'''
ROW = '''"""Echo's row in the registry."""

from lamella.adapters.providers.row import ProviderOptions, ProviderRow
from lamella.core.ledger.cache import CacheProfile
from lamella.profiles import ModelProfile
from lamella.ports import ChatProvider, ModelBook


def _open(model: str, *, key: str, models: ModelBook, options: ProviderOptions) -> ChatProvider:
    from lamella.adapters.providers.echo.provider import EchoProvider

    return EchoProvider(key=key)


ECHO = ProviderRow(
    names=("echo",),
    form="echo:NAME",
    title="Echo",
    keys=("ECHO_API_KEY",),
    open=_open,
    models=(("canyon", ModelProfile(provider="echo", as_of="2026-11-17", window=4_321)),),
    caches=(("canyon", CacheProfile(name="echo", minimum=77)),),
)
'''
ASK = """
import asyncio, sys
import lamella
from lamella.errors import LamellaError
from lamella.providers import BuiltInModels

async def ask(model):
    async with lamella.open("memory:", model=model) as engine:
        chat = await engine.conversation("hills")
        return "".join([event.text async for event in chat.send("Hello?")])

for model in sys.argv[1:]:
    try:
        print(asyncio.run(ask(model)))
    except LamellaError as error:
        print(error.code, error.hint)
found = BuiltInModels().model("echo:canyon-2")
print(found.window, found.cache.minimum)
print(lamella.__file__)
"""


def _follow_recipe(src: Path) -> None:
    folder = src / HOME / "echo"
    folder.mkdir()
    for name, text in {"__init__": DOOR, "provider": PROVIDER, "row": ROW}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    registry = src / REGISTRY
    text = registry.read_text(encoding="utf-8")
    text = text.replace("from lamella.adapters.providers.facts", _IMPORT + "from lamella.adapters.providers.facts", 1)
    registry.write_text(text.replace("    SCRIPTED,\n", "    SCRIPTED,\n    ECHO,\n", 1), encoding="utf-8")


_IMPORT = "from lamella.adapters.providers.echo.row import ECHO\n"


def _texts(src: Path) -> dict[Path, str]:
    return {path.relative_to(src): path.read_text(encoding="utf-8") for path in src.rglob("*.py")}


def _run(src: Path, home: Path, *models: str, key: str = "") -> list[str]:
    env = {**os.environ, "PYTHONPATH": str(src), "HOME": str(home), "ECHO_API_KEY": key}
    done = subprocess.run(
        [sys.executable, "-c", ASK, *models], cwd=home, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_provider_is_one_new_folder_and_one_edited_file(tmp_path: Path) -> None:
    src = tmp_path / "src"
    shutil.copytree(ROOT / "src", src)
    before = _texts(src)
    _follow_recipe(src)
    after = _texts(src)
    assert {path.parent for path in after if path not in before} == {HOME / "echo"}
    assert {path for path in before if before[path] != after[path]} == {REGISTRY}

    answered, known, place = _run(src, tmp_path, "echo:canyon-1", key="a-key-of-echo")
    assert answered == "canyon-1: Hello?"
    assert known == "4321 77"
    assert Path(place).is_relative_to(src)


def test_what_the_row_says_is_asked_for_and_told(tmp_path: Path) -> None:
    src = tmp_path / "src"
    shutil.copytree(ROOT / "src", src)
    _follow_recipe(src)
    keyless, unknown, bare, *_ = _run(src, tmp_path, "echo:canyon-1", "nobody:x", "canyon-1")
    assert keyless.startswith("key_refused Set ECHO_API_KEY")
    assert "echo:NAME" in unknown
    assert bare.startswith("key_refused Set ECHO_API_KEY")


def test_the_recipe_is_told_to_contributors() -> None:
    told = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipe = told[told.index("**A provider.**") :].partition("\n\n")[0]
    for name in ("row.py", "registry.py", "ProviderRow", "__init__.py", "conformance"):
        assert name in recipe
