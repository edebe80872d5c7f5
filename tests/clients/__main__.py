"""Run real programs against a server on this machine, and record what they send. See ``make test-clients``.

python -m tests.clients [--record] [NAME ...]

The programs are installed once, below ``build/clients`` or in the folder that LAMELLA_CLIENTS names.
"""

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.clients.programs import (
    AIDER_PACKAGES,
    LITELLM_PACKAGES,
    NODE_PACKAGES,
    NOTES_ANSWER,
    NOTES_QUESTION,
    NOTES_TOOL,
    PROGRAMS,
    PYTHON_PACKAGES,
    Program,
    run_program,
)
from tests.server.upstreams import answer_usually, chat_body, chat_events, message_events, proxied
from tests.wire.serving import Call, Flow, Loopback, Outcome, json_answer, serve

RECORDED = Path("tests/clients/recorded")
_UPSTREAMS = {"messages": "anthropic", "chat": "openai", "responses": "openai"}
_OTHER_UPSTREAMS = {"messages": "compatible", "chat": "anthropic", "responses": "anthropic"}
_HEADERS = (
    "anthropic-version", "anthropic-beta", "session-id", "session_id", "thread-id", "x-session-id", "openai-beta",
    "x-claude-code-session-id", "conversation_id", "originator",
)  # fmt: skip
_WAITING_TOOL = "WaitForMcpServers"
# Enough of a text to see what it is. Programs send long instructions, which are theirs.
_KEPT_CHARS = 160
_PRIVATE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32,64}|/(?:tmp|root|home|work)/[\w./-]*"
    r"|20\d\d-\d\d-\d\d(?:T[\d:.]+Z?)?|ses_\w+"
)


def answer_program(call: Call) -> Outcome:
    """Answer as usual; a request for JSON gets JSON, and a question about notes calls the tool that searches them."""
    if NOTES_QUESTION.encode() in call.raw:
        return _answer_from_notes(call)
    if b'"json_schema"' not in call.raw:
        return answer_usually(call)
    text = json.dumps({"tide": "noon", "day": "today"})
    if call.path.partition("?")[0].endswith("/messages"):
        return Flow(chunks=message_events({"type": "text", "text": text}))
    return Flow(chunks=chat_events(text)) if call.body.get("stream") else json_answer(chat_body(text))


def _answer_from_notes(call: Call) -> Outcome:
    """Answer with what the tool found, or call it; without the tool the answer is not known.

    Claude Code begins while its servers still start, and offers a tool that waits for them.
    """
    offered = [tool.get("name") for tool in call.body.get("tools", ())]
    if NOTES_ANSWER.encode() in call.raw:
        return Flow(chunks=message_events({"type": "text", "text": f"{NOTES_ANSWER}."}))
    for name, given in ((NOTES_TOOL, {"query": "tide"}), (_WAITING_TOOL, {})):
        if name in offered:
            block = {"type": "tool_use", "id": f"toolu_{len(call.raw)}", "name": name, "input": given}
            return Flow(chunks=message_events(block, stop="tool_use"))
    return Flow(chunks=message_events({"type": "text", "text": "No tool for notes was offered."}))


def install(folder: Path) -> None:
    """Install the programs by their package names, if they are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules").is_dir():
        (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", *NODE_PACKAGES], cwd=folder, check=True)
    for name, packages in (("python", PYTHON_PACKAGES), ("aider", AIDER_PACKAGES), ("litellm", LITELLM_PACKAGES)):
        if not (folder / name).is_dir():
            venv.create(folder / name, with_pip=True)
            subprocess.run([folder / name / "bin/pip", "install", "--quiet", *packages], check=True)


def check(program: Program, installed: Path, kind: str) -> str | None:
    """Run a program through Lamella; return what went wrong, or None."""
    with TemporaryDirectory() as folder, proxied(kind, answer_program) as proxy:
        try:
            ran = run_program(program, installed, proxy.server.url, Path(folder))
        except subprocess.TimeoutExpired:
            return "it did not end"
    if ran.returncode == 0 and ("noon" in ran.stdout or "noon" in ran.stderr):
        return None
    return f"exit {ran.returncode}: {ran.stdout[-300:]} {ran.stderr[-700:]}"


def record(program: Program, installed: Path) -> list[dict[str, Any]]:
    """Return what a program sends to a server on this machine, without private values and long texts."""
    with TemporaryDirectory() as folder, serve(answer_program, Loopback()) as seen:
        run_program(program, installed, seen.url, Path(folder))
        calls = [call for call in seen.calls if call.method == "POST" and call.raw.startswith(b"{")]
    return [
        {
            "path": call.path,
            "headers": {name: _scrub_header(name, call.headers[name]) for name in _HEADERS if name in call.headers},
            "body": _shorten(call.body),
        }
        for call in calls
    ]


def _shorten(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        text = _scrub(value)
        return text if len(text) <= _KEPT_CHARS else f"{text[:_KEPT_CHARS]}…"
    if isinstance(value, list):
        return [_shorten(one) for one in value]
    if isinstance(value, dict):
        return {_scrub(name): _shorten(one) for name, one in value.items()}
    return value


def _scrub_header(name: str, value: str) -> str:
    # Versions of an API are dates.
    return value if name.startswith("anthropic-") else _scrub(value)


def _scrub(text: str) -> str:
    return _PRIVATE.sub(lambda found: "x" * min(len(found.group()), 12), text)


def main(arguments: Sequence[str]) -> int:
    """Check the programs with an upstream of their own API and with one of another; with ``--record``, record them."""
    installed = Path(os.environ.get("LAMELLA_CLIENTS", "build/clients")).resolve()
    install(installed)
    names = [one for one in arguments if not one.startswith("--")]
    failures: Mapping[str, str] = {}
    for program in PROGRAMS:
        if names and program.name not in names:
            continue
        if "--record" in arguments and program.is_host:
            continue
        if "--record" in arguments:
            recorded = record(program, installed)
            print(f"{program.name}: {len(recorded)} requests recorded", flush=True)
            lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in recorded]
            RECORDED.mkdir(exist_ok=True)
            (RECORDED / f"{program.name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
            continue
        # What a host calls does not depend on the upstream's API.
        for kinds in (_UPSTREAMS,) if program.is_host else (_UPSTREAMS, _OTHER_UPSTREAMS):
            kind = kinds[program.wire]
            wrong = check(program, installed, kind)
            print(f"{program.name}, upstream {kind}: {wrong or 'ok'}", flush=True)
            failures = {**failures, f"{program.name} {kind}": wrong} if wrong else failures
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
