"""Opening a provider by model name; a missing requirement is reported before sending, and no key is shown."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.wire.material import ask, collect, reply_to, user
from tests.wire.openai_caching import KEY, LOCAL_MODEL
from tests.wire.openai_chat_server import Dialect, chat_server

from lamella.core.messages import TextDelta
from lamella.errors import LamellaError
from lamella.providers.anthropic import AnthropicProvider
from lamella.providers.gemini import GeminiProvider
from lamella.providers.local import LocalProvider
from lamella.providers.open_provider import open_provider
from lamella.providers.openai_chat import OpenAIChatProvider
from lamella.providers.openai_responses import OpenAIResponsesProvider
from lamella.providers.registry import KEY_VARIABLES, MODEL_SYNTAXES, strip_provider
from lamella.providers.scripted import ScriptedProvider
from lamella.providers.user_models import parse_profiles

SECRET = "sk-secret-1"
KEYS = dict.fromkeys(KEY_VARIABLES, SECRET)
HTTP = "http://127.0.0.1:9/v1"

OPENED = {
    "anthropic:claude-opus-5-5": AnthropicProvider,
    "Anthropic:claude-opus-5-5": AnthropicProvider,
    "openai:gpt-6": OpenAIResponsesProvider,
    "openai-responses:gpt-6": OpenAIResponsesProvider,
    "openai-chat:gpt-6": OpenAIChatProvider,
    "gemini:gemini-3.8-flash": GeminiProvider,
    "google:gemini-3.8-flash": GeminiProvider,
    f"openai-compatible:{HTTP}#qwen3:8b": OpenAIChatProvider,
    "claude-opus-5-5": AnthropicProvider,
    "gpt-6.1-sol": OpenAIResponsesProvider,
    "gemini-3.8-flash": GeminiProvider,
    "local": LocalProvider,
}


@pytest.mark.parametrize(("model", "kind"), OPENED.items(), ids=OPENED)
def test_model_name_opens_its_provider_without_showing_key(model: str, kind: type) -> None:
    provider = open_provider(model, keys=KEYS)
    assert type(provider) is kind
    assert SECRET not in repr(provider)


@pytest.mark.parametrize(
    ("model", "own"),
    [
        (f"openai-compatible:{HTTP}#qwen3:8b", "qwen3:8b"),
        ("openai-chat:gpt-6", "gpt-6"),
        ("openai-responses:gpt-6", "gpt-6"),
        ("openai-compatible:odd", "openai-compatible:odd"),
    ],
)
def test_provider_prefix_is_stripped(model: str, own: str) -> None:
    assert strip_provider(model) == own


REFUSED = {
    "no provider of that name": ("acme:rocket", "bad_setting", "There is no provider 'acme'", MODEL_SYNTAXES),
    "an unknown name": ("rocket-1", "bad_setting", "Unknown model: 'rocket-1'", MODEL_SYNTAXES),
    "no name at all": ("", "bad_setting", "Unknown model: ''", MODEL_SYNTAXES),
    "no model": ("anthropic:", "bad_setting", "'anthropic:' names no model", "anthropic:NAME"),
    "no file of weights": ("gguf:/nowhere/m.gguf", "model_missing", "/nowhere/m.gguf", "GGUF"),
    "no path of weights": ("gguf:", "bad_setting", "There is no provider 'gguf'", "gguf:PATH"),
    "more than local": ("local:big", "bad_setting", "There is no provider 'local'", "local, gguf:PATH"),
    "no address": ("openai-compatible:#m", "bad_address", "'' is not an address", "http://"),
    "an address of another kind": ("openai-compatible:ftp://h/v1#m", "bad_address", "not an address", "http://"),
    "no model at an address": (f"openai-compatible:{HTTP}", "bad_setting", "is asked for no model", "#name"),
    "a user in an address": (f"openai-compatible:http://me:{SECRET}@h#m", "bad_address", "more in it", "KEY"),
    "a key in an address": (f"openai-compatible:{HTTP}?key={SECRET}#m", "bad_address", "more in it", "KEY"),
    "no script": ("scripted:/nowhere.json", "bad_setting", "/nowhere.json cannot be read", "Check the path"),
}


@pytest.mark.parametrize(("model", "code", "what", "hint"), REFUSED.values(), ids=REFUSED)
def test_invalid_model_name_is_refused_with_valid_forms(model: str, code: str, what: str, hint: str) -> None:
    with pytest.raises(LamellaError) as caught:
        open_provider(model, keys=KEYS)
    assert caught.value.code == code
    assert what in caught.value.message
    assert hint in caught.value.hint
    assert SECRET not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("anthropic:claude-opus-5-5", "ANTHROPIC_API_KEY"),
        ("openai:gpt-6", "OPENAI_API_KEY"),
        ("openai-chat:gpt-6", "OPENAI_API_KEY"),
        ("gemini:gemini-3.8-flash", "GEMINI_API_KEY or GOOGLE_API_KEY"),
    ],
)
def test_missing_key_names_its_variable(model: str, names: str) -> None:
    for keys in ({}, dict.fromkeys(KEY_VARIABLES, "")):
        with pytest.raises(LamellaError) as caught:
            open_provider(model, keys=keys)
        assert caught.value.code == "key_refused"
        assert names in caught.value.hint


def test_key_invalid_in_header_is_refused_without_showing_it() -> None:
    with pytest.raises(LamellaError) as caught:
        open_provider("gemini:gemini-3.8-flash", keys={"GOOGLE_API_KEY": f"{SECRET}\n"})
    assert caught.value.code == "key_refused"
    assert "GOOGLE_API_KEY" in caught.value.message
    assert SECRET not in caught.value.message + caught.value.hint


PACKAGES = [
    ("anthropic", "anthropic:claude-opus-5-5", ".[anthropic]"),
    ("openai", "openai:gpt-6", ".[openai]"),
    ("openai", f"openai-compatible:{HTTP}#m", ".[openai]"),
    ("google.genai", "gemini:gemini-3.8-flash", ".[gemini]"),
    ("google", "gemini:gemini-3.8-flash", ".[gemini]"),
    ("xllamacpp", "local", ".[local]"),
]
MISSING = """
import sys
sys.modules[{package!r}] = None
from lamella.providers.open_provider import open_provider
from lamella.errors import SdkNotInstalledError
try:
    open_provider({model!r}, keys={{"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}})
except SdkNotInstalledError as error:
    print(error.message, error.hint)
"""


@pytest.mark.parametrize(("package", "model", "extra"), PACKAGES)
def test_missing_package_names_install_command(package: str, model: str, extra: str) -> None:
    script = MISSING.format(package=package, model=model)
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "is not installed" in printed
    assert f'pip install "{extra}"' in printed


def test_compatible_server_gets_bare_model_name_and_key() -> None:
    with chat_server(dialect=Dialect.VLLM) as server:
        model = f"openai-compatible:{server.url}/v1#{LOCAL_MODEL}"
        provider = open_provider(model, keys={"LAMELLA_API_KEY": KEY})
        reply = reply_to(provider, ask(user("When is high tide?"), model=model))
    assert reply.text == "Certainly."
    assert server.bodies[0]["model"] == LOCAL_MODEL
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"


def test_facts_of_server_model_are_found_by_its_own_name() -> None:
    own = parse_profiles('[[model]]\nmatch = "qwen3"\nas_of = 2026-11-16\nwindow = 40960\n', name="own.toml")
    assert own.get_model_profile(f"openai-compatible:{HTTP}#Qwen3:8b").window == 40_960
    assert own.get_model_profile(f"openai-compatible:{HTTP}#other").window is None


def test_script_gives_replies_in_order(tmp_path: Path) -> None:
    script = tmp_path / "replies.json"
    script.write_text(json.dumps(["At noon.", {"text": "At six.", "chunk": 3, "usage": {"plain": 9, "read": 4}}]))
    provider = open_provider(f"scripted:{script}", keys={})
    assert isinstance(provider, ScriptedProvider)
    request = ask(user("When?"), model=f"scripted:{script}")
    first, second = collect(provider, request), collect(provider, request)
    assert [delta.text for delta in first if isinstance(delta, TextDelta)] == ["At noon."]
    assert [delta.text for delta in second if isinstance(delta, TextDelta)] == ["At ", "six", "."]


@pytest.mark.parametrize(
    ("text", "place"),
    [("{", "the file"), ("{}", "the file"), ("[7]", "0."), ('[{"txt": "a"}]', "0."), ("[{}]", "0.")],
)
def test_invalid_script_is_refused_with_position(tmp_path: Path, text: str, place: str) -> None:
    script = tmp_path / "replies.json"
    script.write_text(text)
    with pytest.raises(LamellaError, match=place) as caught:
        open_provider(f"scripted:{script}", keys={})
    assert caught.value.code == "bad_setting"
    assert "JSON list" in caught.value.hint


def test_server_is_not_contacted_before_first_message() -> None:
    with chat_server() as server:
        provider = open_provider(f"openai-compatible:{server.url}/v1#m", keys={})
        asyncio.run(provider.close())
    assert server.calls == []
