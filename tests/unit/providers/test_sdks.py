"""SDKs are extras: loaded when a message is sent and not before, and asked for by name where they are missing."""

import json
import subprocess
import sys

import pytest

PROVIDERS = [
    ("anthropic", "lamella.providers.anthropic", "AnthropicProvider"),
    ("openai", "lamella.providers.openai_chat", "OpenAIChatProvider"),
    ("openai", "lamella.providers.openai_responses", "OpenAIResponsesProvider"),
    ("google.genai", "lamella.providers.gemini", "GeminiProvider"),
]
LOADED = """
import json, sys
import {module}
{module}.{name}(key="k")
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""
MISSING = """
import asyncio, sys
sys.modules["{sdk}"] = None
from {module} import {name}
from lamella.core.messages import ModelRequest
from lamella.errors import SdkNotInstalledError
async def run():
    try:
        await anext({name}(key="k").stream(ModelRequest(model="m", messages=())))
    except SdkNotInstalledError as error:
        print(error.message, error.hint)
asyncio.run(run())
"""


def _run(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("sdk", "module", "name"), PROVIDERS)
def test_making_a_provider_loads_no_sdk(sdk: str, module: str, name: str) -> None:
    loaded = set(json.loads(_run(LOADED.format(module=module, name=name))))
    assert "lamella" in loaded
    assert not loaded & {"anthropic", "openai", "google", "httpx2"}


@pytest.mark.parametrize(("sdk", "module", "name"), PROVIDERS)
def test_missing_sdk_names_its_extra(sdk: str, module: str, name: str) -> None:
    printed = _run(MISSING.format(sdk=sdk, module=module, name=name))
    assert "is not installed" in printed
    assert "pip install" in printed
