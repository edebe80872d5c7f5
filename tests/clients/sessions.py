"""Record the session files and traces that real programs write about two questions, as fixtures for ``lamella doctor``.

python -m tests.clients.sessions

The programs run against a server on this machine: see ``tests.clients``. Machine paths are replaced, and long texts,
which are the programs' own instructions, are cut.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.clients.__main__ import answer_program, install
from tests.clients.programs import KEY, PROGRAMS, QUESTION, Program, Run, run_program
from tests.wire.serving import Loopback, serve

SESSIONS = Path("tests/clients/recorded_sessions")
_SECOND = "And when is low tide?"
_KEPT_CHARS = 200
_TRACING_PACKAGES = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-common")
_AGENTS = ("claude-code", "codex", "opencode", "aider")

_LITELLM = """
import json, sys, time
import litellm
from litellm.integrations.custom_logger import CustomLogger
class Log(CustomLogger):
    def log_success_event(self, kwargs, response_obj, start_time, end_time):
        with open(sys.argv[2], "a") as out:
            out.write(json.dumps(kwargs["standard_logging_object"], default=str) + "\\n")
litellm.callbacks = [Log()]
messages = [{"role": "system", "content": "You know the tides."}]
for question in QUESTIONS:
    messages.append({"role": "user", "content": question})
    made = litellm.completion(model="openai/gpt-5", messages=messages, api_base=sys.argv[1] + "/v1", api_key="sk-unused")
    messages.append({"role": "assistant", "content": made.choices[0].message.content})
time.sleep(2)
"""
_PYDANTIC_AI = """
import json, sys
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings
kept, traces = InMemorySpanExporter(), TracerProvider()
traces.add_span_processor(SimpleSpanProcessor(kept))
agent = Agent("openai-chat:gpt-5", instructions="You know the tides.")
Agent.instrument_all(InstrumentationSettings(tracer_provider=traces))
history = []
for question in QUESTIONS:
    history = agent.run_sync(question, message_history=history).all_messages()
with open(sys.argv[2], "w") as out:
    json.dump(MessageToDict(encode_spans(kept.get_finished_spans())), out)
"""
_LANGCHAIN = """
import sys
from langchain_openai import ChatOpenAI
model, messages = ChatOpenAI(model="gpt-5"), [("system", "You know the tides.")]
for question in QUESTIONS:
    messages.append(("user", question))
    messages.append(("assistant", model.invoke(messages).content))
"""


def _continue_session(name: str, command: list[str]) -> list[str]:
    """Return the command that asks the second question in the same session."""
    program = command[0]
    return {
        "claude-code": [program, "--continue", "-p", _SECOND],
        "codex": [program, "exec", "--skip-git-repo-check", "resume", "--last", _SECOND],
        "opencode": [*command[:-1], "--continue", _SECOND],
        "aider": [*command[:-1], _SECOND, "--restore-chat-history", "--llm-history-file", "requests.log"],
    }[name]


def _record_agent(program: Program, installed: Path) -> dict[str, str]:
    def make_second(installed: Path, address: str, folder: Path) -> Run:
        run = program.make_run(installed, address, folder)
        command = _continue_session(program.name, list(run.command))
        return Run(command=command, environment=run.environment, files=run.files)

    second = Program(name=program.name, wire=program.wire, make_run=make_second)
    with TemporaryDirectory() as name, serve(answer_program, Loopback()) as seen:
        folder = Path(name)
        for one in (program, second):
            run_program(one, installed, seen.url, folder)
        return {
            file: text.replace(str(installed), "/opt/clients").replace(str(folder), "/home/user/project")
            for file, text in _read_session(program.name, folder, installed).items()
        }


def _read_session(name: str, folder: Path, installed: Path) -> dict[str, str]:
    match name:
        case "claude-code":
            (file,) = folder.glob(".claude/projects/*/*.jsonl")
            return {"claude-code.jsonl": _cut_lines(file.read_text(encoding="utf-8"))}
        case "codex":
            (file,) = folder.glob(".codex/sessions/**/rollout-*.jsonl")
            return {"codex.jsonl": _cut_lines(file.read_text(encoding="utf-8"))}
        case "opencode":
            with closing(sqlite3.connect(folder / ".local/share/opencode/opencode.db")) as connection:
                ((session,),) = connection.execute("SELECT id FROM session")
            command = [str(installed / "node_modules/.bin/opencode"), "export", session]
            environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "OPENCODE_DISABLE_AUTOUPDATE": "1"}
            ran = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=True,
            )
            return {"opencode.json": json.dumps(_cut(json.loads(ran.stdout[ran.stdout.index("{") :])), indent=1) + "\n"}
        case _:
            history = (folder / ".aider.chat.history.md").read_text(encoding="utf-8")
            return {
                "aider.history.md": history,
                "aider-requests.log": (folder / "requests.log").read_text(encoding="utf-8"),
            }


def _record_script(script: str, installed: Path) -> tuple[str, list[dict[str, Any]]]:
    """Run a Python script against the server; return what it wrote, and the requests that the server got."""
    with TemporaryDirectory() as name, serve(answer_program, Loopback()) as seen:
        out = Path(name) / "out"
        out.touch()
        own = {"OPENAI_BASE_URL": f"{seen.url}/v1", "OPENAI_API_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        code = f"QUESTIONS = {[QUESTION, _SECOND]!r}\n{script}"
        command = [str(installed / "python/bin/python"), "-c", code, seen.url, str(out)]
        subprocess.run(command, env={"PATH": os.environ["PATH"], "HOME": name, **own}, check=True)
        calls = [{"path": call.path, "body": call.body} for call in seen.calls if call.method == "POST"]
        return out.read_text(encoding="utf-8"), calls


def _cut_lines(text: str) -> str:
    return "".join(json.dumps(_cut(json.loads(line)), ensure_ascii=False) + "\n" for line in text.splitlines())


def _cut(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        return value if len(value) <= _KEPT_CHARS else f"{value[:_KEPT_CHARS]}…"
    if isinstance(value, list):
        return [_cut(one) for one in value]
    return {name: _cut(one) for name, one in value.items()} if isinstance(value, dict) else value


def main() -> int:
    """Record all session files again."""
    installed = Path(os.environ.get("LAMELLA_CLIENTS", "build/clients")).resolve()
    install(installed)
    subprocess.run([installed / "python/bin/pip", "install", "--quiet", *_TRACING_PACKAGES], check=True)
    files: dict[str, str] = {}
    for program in PROGRAMS:
        if program.name in _AGENTS:
            files |= _record_agent(program, installed)
    files["litellm.jsonl"] = re.sub(
        r"http://127\.0\.0\.1:\d+", "http://localhost", _record_script(_LITELLM, installed)[0]
    )
    files["pydantic-ai-otlp.json"] = _record_script(_PYDANTIC_AI, installed)[0] + "\n"
    for name, script in (("langchain", _LANGCHAIN), ("pydantic-ai", _PYDANTIC_AI)):
        files[f"{name}-requests.jsonl"] = "".join(
            json.dumps(one) + "\n" for one in _record_script(script, installed)[1]
        )
    SESSIONS.mkdir(exist_ok=True)
    for name, text in files.items():
        (SESSIONS / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text):,} characters", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
