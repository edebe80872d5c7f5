"""The recipe for a provider, followed in a copy of the source."""

from pathlib import Path

import pytest
from tests.contracts.recipes import SourceCopy

PROVIDER = '''"""A provider that repeats the question."""

from collections.abc import AsyncIterator

from lamella.core.messages import Delta, ModelRequest, StopDelta, StopReason, TextDelta
from lamella.providers.registry import strip_provider


class EchoProvider:
    """Repeats the last message after the name of the model."""

    def __init__(self, *, key: str) -> None:
        self._key = key

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        yield TextDelta(text=f"{strip_provider(request.model)}: {request.messages[-1].text}")
        yield StopDelta(reason=StopReason.END)

    async def close(self) -> None:
        """There are no connections to close."""
'''
FACTS = '''"""Profiles of Echo's models."""

from lamella.core.ledger.cache_profile import CacheProfile
from lamella.profiles import ModelProfile

MODELS = (("canyon", ModelProfile(provider="echo", as_of="2026-11-17", window=4_321)),)
CACHES = (("canyon", CacheProfile(name="echo", minimum=77)),)
'''
ENTRY = """def _open_echo(model: str, *, key: str, models: ModelRegistry, options: ProviderOptions) -> ModelProvider:
    del model, models, options
    from lamella.providers.echo import EchoProvider

    return EchoProvider(key=key)


ECHO = ProviderEntry(
    names=("echo",),
    model_syntax="echo:NAME",
    display_name="Echo",
    key_variables=("ECHO_API_KEY",),
    create_provider=_open_echo,
    model_profiles=echo.MODELS,
    cache_profiles=echo.CACHES,
)


"""
ASK = """
import asyncio, sys
import lamella
from lamella.errors import LamellaError
from lamella.providers import BuiltInModelProfiles

async def ask(model):
    async with lamella.open("memory:", model=model) as engine:
        chat = await engine.conversation("hills")
        return "".join([event.text async for event in chat.send("Hello?")])

for model in sys.argv[2:]:
    try:
        print(asyncio.run(ask(model)))
    except LamellaError as error:
        print(error.code, error.hint)
found = BuiltInModelProfiles().get_model_profile("echo:canyon-2")
print(found.window, found.cache.minimum)
"""


@pytest.fixture
def copy(tmp_path: Path) -> SourceCopy:
    """A copy of the source with a provider that was added by the recipe."""
    copy = SourceCopy(tmp_path)
    copy.create("providers/echo.py", PROVIDER)
    copy.create("providers/facts/echo.py", FACTS)
    copy.replace("providers/registry.py", "facts import claude, gemini", "facts import claude, echo, gemini")
    copy.insert("providers/registry.py", ENTRY, before="PROVIDERS = (")
    copy.insert("providers/registry.py", "    ECHO,\n", before="    SCRIPTED,")
    return copy


def test_provider_recipe_gives_a_provider_that_answers(copy: SourceCopy) -> None:
    assert copy.run(ASK, "echo:canyon-1", ECHO_API_KEY="a-key-of-echo").splitlines() == [
        "canyon-1: Hello?",
        "4321 77",
    ]
    copy.check("Add a provider", name="echo")


def test_provider_entry_words_the_hints_for_a_missing_key_and_an_unknown_provider(copy: SourceCopy) -> None:
    keyless, unknown, bare, *_ = copy.run(ASK, "echo:canyon-1", "nobody:x", "canyon-1").splitlines()
    assert keyless.startswith("key_refused Set ECHO_API_KEY")
    assert "echo:NAME" in unknown
    assert bare.startswith("key_refused Set ECHO_API_KEY")
