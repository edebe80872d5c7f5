"""Programs that speak to OpenAI or Anthropic, and how each is asked one question at an address."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

QUESTION = "When is high tide?"
# For an agent host with the MCP server: the answer is only in the notes.
NOTES_QUESTION = "What do my notes say about the tide?"
NOTES_ANSWER = "The bridge opens at noon"
NOTES_TOOL = "mcp__lamella__search_notes"
KEY = "sk-unused"
_SECONDS = 900

NODE_PACKAGES = ("@anthropic-ai/claude-code", "@openai/codex", "opencode-ai", "openai", "@anthropic-ai/sdk")
PYTHON_PACKAGES = (
    "openai", "anthropic", "langchain-openai", "langchain-anthropic", "pydantic-ai-slim[openai,anthropic]", "litellm",
    "llm",
)  # fmt: skip
# Its dependencies are pinned to versions that the others do not accept.
AIDER_PACKAGES = ("aider-chat",)
# Lamella itself is in one environment with LiteLLM there, which its own cannot be.
LITELLM_PACKAGES = ("litellm", "--editable", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A command with its environment and the files it reads, at an address and in a folder of its own."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program, the API that it speaks, and how it is run; with ``is_host`` it calls the MCP server's tools."""

    name: str
    wire: str
    make_run: Callable[[Path, str, Path], Run]
    is_host: bool = False


def run_program(program: Program, installed: Path, address: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Ask the question; the program sees no other settings than those given here."""
    run = program.make_run(installed, address, folder)
    for name, text in run.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "NO_PROXY": "*",
        **run.environment,
    }
    return subprocess.run(
        run.command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def _claude_code(installed: Path, address: str, _folder: Path) -> Run:
    own = {
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    return Run(command=[str(installed / "node_modules/.bin/claude"), "-p", QUESTION], environment=own)


def _claude_code_host(installed: Path, address: str, folder: Path) -> Run:
    command = [sys.executable, "-c", "import sys; from lamella.cli import main; sys.exit(main())"]
    server = {"command": command[0], "args": [*command[1:], "mcp", "serve", str(folder / "notes")]}
    flags = ["--mcp-config", str(folder / "mcp.json"), "--strict-mcp-config", "--allowedTools", NOTES_TOOL]
    return Run(
        command=[str(installed / "node_modules/.bin/claude"), "-p", NOTES_QUESTION, *flags],
        environment=_claude_code(installed, address, folder).environment,
        files={
            "mcp.json": json.dumps({"mcpServers": {"lamella": server}}),
            "notes/tides.md": f"# Tides\n\nThe tide is high at dusk. {NOTES_ANSWER}.\n",
        },
    )


def _codex(installed: Path, address: str, folder: Path) -> Run:
    config = f"""model = "gpt-5-codex"
model_provider = "lamella"
[model_providers.lamella]
name = "lamella"
base_url = "{address}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""
    own = {"CODEX_HOME": str(folder / ".codex"), "OPENAI_API_KEY": KEY}
    command = [str(installed / "node_modules/.bin/codex"), "exec", "--skip-git-repo-check", QUESTION]
    return Run(command=command, environment=own, files={".codex/config.toml": config})


def _opencode(installed: Path, address: str, _folder: Path) -> Run:
    model = {"name": "lamella", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Lamella",
        "options": {"baseURL": f"{address}/v1", "apiKey": KEY},
        "models": {"lamella": model},
    }
    config = {"provider": {"lamella": provider}, "model": "lamella/lamella", "autoupdate": False, "share": "disabled"}
    command = [str(installed / "node_modules/.bin/opencode"), "run", "--model", "lamella/lamella", QUESTION]
    return Run(
        command=command, environment={"OPENCODE_DISABLE_AUTOUPDATE": "1"}, files={"opencode.json": json.dumps(config)}
    )


def _aider(installed: Path, address: str, _folder: Path) -> Run:
    flags = [
        "--yes-always",
        "--no-git",
        "--no-check-update",
        "--no-show-model-warnings",
        "--no-analytics",
        "--map-tokens",
        "0",
    ]
    command = [str(installed / "aider/bin/aider"), "--model", "openai/lamella", *flags, "--message", QUESTION]
    return Run(command=command, environment={"OPENAI_API_BASE": f"{address}/v1", "OPENAI_API_KEY": KEY})


def _llm_schema(installed: Path, address: str, folder: Path) -> Run:
    models = f'- model_id: lamella\n  model_name: lamella\n  api_base: "{address}/v1"\n  supports_schema: true\n'
    command = [str(installed / "python/bin/llm"), "--schema", "tide, day", "--key", KEY, "-m", "lamella", QUESTION]
    return Run(
        command=command,
        environment={"LLM_USER_PATH": str(folder / "llm")},
        files={"llm/extra-openai-models.yaml": models},
    )


def _python(script: str, *, environment: str = "python") -> Callable[[Path, str, Path], Run]:
    def make(installed: Path, address: str, _folder: Path) -> Run:
        own = {
            "OPENAI_BASE_URL": f"{address}/v1",
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": KEY,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        command = [str(installed / environment / "bin/python"), "-c", f"QUESTION = {QUESTION!r}\n{script}"]
        return Run(command=command, environment=own)

    return make


def _node(script: str) -> Callable[[Path, str, Path], Run]:
    def make(installed: Path, address: str, _folder: Path) -> Run:
        own = {
            "OPENAI_BASE_URL": f"{address}/v1",
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": KEY,
            "NODE_PATH": str(installed / "node_modules"),
        }
        command = ["node", "-e", f"const QUESTION = {json.dumps(QUESTION)}; (async () => {{ {script} }})()"]
        return Run(command=command, environment=own)

    return make


_OPENAI = """
import openai
client = openai.OpenAI()
asked = [{"role": "user", "content": QUESTION}]
for chunk in client.chat.completions.create(model="lamella", messages=asked, stream=True):
    print(chunk.choices[0].delta.content or "" if chunk.choices else "", end="")
print(client.responses.create(model="lamella", input=QUESTION, store=False).output_text)
"""
_ANTHROPIC = """
import anthropic
client = anthropic.Anthropic()
with client.messages.stream(model="lamella", max_tokens=50, messages=[{"role": "user", "content": QUESTION}]) as answer:
    print("".join(answer.text_stream))
"""
_LANGCHAIN = """
from langchain_openai import ChatOpenAI
print(ChatOpenAI(model="lamella").invoke(QUESTION).content)
"""
_LANGCHAIN_ANTHROPIC = """
from langchain_anthropic import ChatAnthropic
print(ChatAnthropic(model="claude-opus-5-5").invoke(QUESTION).content)
"""
_PYDANTIC_AI = """
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
class Tide(BaseModel):
    tide: str
print(Agent("openai-chat:lamella", output_type=NativeOutput(Tide)).run_sync(QUESTION).output)
"""
_LITELLM = """
import litellm
asked = [{"role": "user", "content": QUESTION}]
print(litellm.completion(model="openai/lamella", messages=asked).choices[0].message.content)
"""
_LITELLM_HOOK = """
import asyncio, litellm
from lamella.integrations.litellm import LamellaHook
hook = LamellaHook(); litellm.callbacks = [hook]
plan = '<document path="plan.md">\\n' + "The bridge opens at noon. " * 50 + "\\n</document>\\n"
asked = [{"role": "user", "content": plan + QUESTION}]
async def ask():
    answer = await litellm.acompletion(model="openai/lamella", messages=asked)
    await asyncio.sleep(2)
    return answer.choices[0].message
async def main():
    asked.append({"role": "assistant", "content": (await ask()).content}); asked.append({"role": "user", "content": plan + QUESTION})
    print((await ask()).content)
asyncio.run(main())
calls = [call for turn in hook.conversations[-1].ledger() for call in turn]
assert (hook.counts.prepared, hook.counts.unchanged) == (2, 0), hook.counts
assert len(hook.conversations) == 1 and len(calls) == 2 and calls[0].usage.output, calls
assert calls[1].by_layer["L5_USER"] < calls[0].by_layer["L5_USER"] / 2, calls
"""
_NODE_OPENAI = """
const OpenAI = require("openai").default; const client = new OpenAI();
const stream = await client.chat.completions.create(
  {model: "lamella", messages: [{role: "user", content: QUESTION}], stream: true});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content || "");
const made = await client.responses.create({model: "lamella", input: QUESTION, store: false}); console.log(made.output_text);
"""
_NODE_ANTHROPIC = """
const Anthropic = require("@anthropic-ai/sdk").default; const client = new Anthropic();
const made = await client.messages.stream(
  {model: "lamella", max_tokens: 50, messages: [{role: "user", content: QUESTION}]}).finalMessage();
console.log(made.content[0].text);
"""

PROGRAMS = (
    Program(name="claude-code", wire="messages", make_run=_claude_code),
    Program(name="claude-code-host", wire="messages", make_run=_claude_code_host, is_host=True),
    Program(name="codex", wire="responses", make_run=_codex),
    Program(name="opencode", wire="chat", make_run=_opencode),
    Program(name="aider", wire="chat", make_run=_aider),
    Program(name="llm-schema", wire="chat", make_run=_llm_schema),
    Program(name="openai-python", wire="chat", make_run=_python(_OPENAI)),
    Program(name="anthropic-python", wire="messages", make_run=_python(_ANTHROPIC)),
    Program(name="langchain-openai", wire="chat", make_run=_python(_LANGCHAIN)),
    Program(name="langchain-anthropic", wire="messages", make_run=_python(_LANGCHAIN_ANTHROPIC)),
    Program(name="pydantic-ai", wire="chat", make_run=_python(_PYDANTIC_AI)),
    Program(name="litellm", wire="chat", make_run=_python(_LITELLM)),
    Program(name="litellm-hook", wire="chat", make_run=_python(_LITELLM_HOOK, environment="litellm")),
    Program(name="openai-node", wire="chat", make_run=_node(_NODE_OPENAI)),
    Program(name="anthropic-node", wire="messages", make_run=_node(_NODE_ANTHROPIC)),
)
