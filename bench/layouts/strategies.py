"""Strategies: the requests that the naive layout, appending and each layout make of the same turns."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from pathlib import Path
from tempfile import gettempdir
from types import SimpleNamespace
from typing import Any

from bench.layouts.caches import Block
from bench.layouts.workloads import Round, Workload
from lamella import Conversation, Note, Tool, ToolOutput, ToolResult, Turn

START = datetime(2026, 11, 17, tzinfo=UTC)
# The second of a request, and its blocks.
Sent = tuple[float, list[Block]]
_SHORT = "5m"

_FACTS = """
[[model]]
match = "bench-marks"
as_of = 2026-11-17
like = "claude-sonnet-5"
minimum = 1024
lifetime = 300
read = 0.1
lifetimes = [{name = "5m", seconds = 300, write = 1.25}]

[[model]]
match = "bench-hours"
as_of = 2026-11-17
like = "claude-sonnet-5"
minimum = 1024
lifetime = 300
read = 0.1
lifetimes = [{name = "5m", seconds = 300, write = 1.25}, {name = "1h", seconds = 3600, write = 2}]

[[model]]
match = "bench-steps"
as_of = 2026-11-17
like = "claude-sonnet-5"
minimum = 1024
granularity = 128
lifetime = 300
read = 0.1
breakpoints = 0
implicit = true
lifetimes = [{name = "5m", seconds = 300, write = 1.25}]

[[model]]
match = "bench-dear"
as_of = 2026-11-17
like = "claude-sonnet-5"
minimum = 1024
granularity = 128
lifetime = 600
bills_writes = false
read = 0.5
breakpoints = 0
implicit = true
lifetimes = [{name = "10m", seconds = 600, write = 1}]
"""


def write_facts() -> str:
    """The file that says what the caches of these measures do."""
    file = Path(gettempdir()) / "lamella-bench-layouts.toml"
    file.write_text(_FACTS, encoding="utf-8")
    return str(file)


def glue(workload: Workload) -> Iterator[Sent]:
    """Everything attached in the last message, every turn; earlier turns as they were typed."""
    at, said = 0.0, _begin(workload)
    for step in workload.steps:
        at += step.pause
        carried = [_block(path, text) for path, text in step.held.items()]
        carried += [_result(step.output)] if step.output else []
        past = [*said[:-1], said[-1]._replace(mark=_SHORT)]
        asked = [Block("".join([*carried, step.text]), _SHORT)]
        yield at, [*past, *asked]
        after = list(_work(step.rounds))
        for number in range(1, len(step.rounds) + 1):
            yield at, [*past, *asked, *after[: 2 * number - 1], after[2 * number - 1]._replace(mark=_SHORT)]
        said = [*said, Block(step.text), *after, Block(step.reply)]


def append(workload: Workload, *, diffs: bool = False) -> Iterator[Sent]:
    """Every message stays as it was sent; what is attached comes once, and again or as a difference when it changed."""
    at, said = 0.0, _begin(workload)
    standing: dict[str, str] = {}
    for step in workload.steps:
        at += step.pause
        carried: list[str] = []
        for path, text in step.held.items():
            if standing.get(path) != text:
                carried.append(_update(path, standing.get(path), text) if diffs else _block(path, text))
            standing[path] = text
        carried += [_result(step.output)] if step.output else []
        said.append(Block("".join([*carried, step.text])))
        yield at, [*said[:-1], said[-1]._replace(mark=_SHORT)]
        for number, block in enumerate(_work(step.rounds)):
            said.append(block)
            if number % 2:
                yield at, [*said[:-1], said[-1]._replace(mark=_SHORT)]
        said.append(Block(step.reply))


def _begin(workload: Workload) -> list[Block]:
    """Tools and the system prompt, as every strategy sends them."""
    names = sorted({one.name for step in workload.steps for one in step.rounds})
    tools = [Block(json.dumps({"name": name, "description": "", "input_schema": {}})) for name in names]
    return [*tools, Block(workload.system, _SHORT)]


def _block(path: str, text: str) -> str:
    # The same wrapper as that of layouts: what is compared is where things are, not what is written around them.
    title = path.rpartition("/")[2].removesuffix(".md")
    head = f"<title>{title}</title>\n<path>{path}</path>"
    return f"<note_context>\n{head}\n<content>\n{text}\n</content>\n</note_context>\n"


def _result(output: str) -> str:
    return f"<tool_result>look_up()\n{output}\n</tool_result>\n"


def _update(path: str, old: str | None, text: str) -> str:
    if old is None:
        return _block(path, text)
    changed = "\n".join(unified_diff(old.split("\n"), text.split("\n"), lineterm="", n=2))
    return _block(path, min(changed, text, key=len))


def _work(rounds: Sequence[Round]) -> Iterator[Block]:
    for one in rounds:
        yield Block(f"{one.name} {json.dumps(one.arguments)}")
        yield Block(one.output)


def play(
    workload: Workload, *, facts: str, model: str, layout: str, linger: int | None = 0
) -> Iterator[tuple[Sent, Turn]]:
    """The requests of a conversation that Lamella makes, told what is attached and what is detached.

    With ``linger`` other than 0 it is told in each turn what is attached; None is the default of the setting.
    """
    lists_all = linger != 0
    retention: dict[str, Any] = {} if linger is None else {"linger": linger}
    chat = Conversation(
        system=workload.system,
        model=f"anthropic:{model}",
        model_facts=facts,
        window=workload.window,
        keep_ledger=False,
        attachments="turn" if lists_all else "sticky",
        layout=layout,
        **retention,
    )
    tools = [Tool(name=name) for name in sorted({one.name for step in workload.steps for one in step.rounds})]
    at, known = 0.0, dict[str, str]()
    for number, step in enumerate(workload.steps):
        at += step.pause
        new = step.held if lists_all else {p: t for p, t in step.held.items() if known.get(p) != t}
        turn = chat.ask(
            step.text,
            attach=[Note(path=path, text=text) for path, text in new.items()],
            results=[ToolResult(name="look_up", arguments={"turn": number}, output=step.output)] if step.output else [],
            detach=[] if lists_all else step.detach,
            tools=tools if tools and not number else None,
            at=START + timedelta(seconds=at),
        )
        known = dict(step.held)
        yield (at, read_blocks(turn.request("anthropic"))), turn
        for place, one in enumerate(step.rounds):
            reply = chat.reply(_call(f"c{number}-{place}", one), at=START + timedelta(seconds=at))
            given = [ToolOutput(call=call.id, output=one.output) for call in reply.calls]
            turn = chat.submit_tool_outputs(given, at=START + timedelta(seconds=at))
            yield (at, read_blocks(turn.request("anthropic"))), turn
        chat.reply(step.reply, at=START + timedelta(seconds=at))


def _call(name: str, one: Round) -> object:
    function = SimpleNamespace(name=one.name, arguments=json.dumps(one.arguments))
    message = {"content": "", "tool_calls": [{"id": name, "type": "function", "function": vars(function)}]}
    return {"object": "chat.completion", "choices": [{"message": message, "finish_reason": "tool_calls"}]}


def read_blocks(body: dict[str, Any]) -> list[Block]:
    """The blocks of a request as it goes over the wire, with their marks."""
    tools = body.get("tools", [])
    blocks = [*tools, *body.get("system", []), *(one for said in body["messages"] for one in said["content"])]
    return [Block(_text(block), _find_mark(block)) for block in blocks]


def _text(block: dict[str, Any]) -> str:
    if block.get("type") == "text":
        return str(block["text"])
    if block.get("type") == "tool_use":
        return f"{block['name']} {json.dumps(block['input'])}"
    if block.get("type") == "tool_result":
        content = block.get("content", "")
        return content if isinstance(content, str) else "".join(str(part.get("text")) for part in content)
    return json.dumps({key: value for key, value in block.items() if key != "cache_control"})


def _find_mark(block: dict[str, Any]) -> str | None:
    mark = block.get("cache_control")
    return None if mark is None else str(mark.get("ttl", _SHORT))
