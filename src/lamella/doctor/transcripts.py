"""Logged conversations as transcripts, so that they can be replayed in another layout.

A turn is a request that ends with a question; requests that end with tool results are rounds of the turn before. A text
that several questions contain becomes a note that is attached to each of them.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from lamella.doctor.blocks import MESSAGES, SYSTEM, TOOLS, Block, Prompt
from lamella.doctor.calls import get_object, get_text

# A run of repeated lines this long is a document.
_MIN_DOCUMENT_CHARS = 1_000
_WINDOW = 1_000_000
_ASKED_KINDS = frozenset({"user", "document"})
_ROUND_KINDS = frozenset({"assistant", "tool_call", "reasoning", "tool_result"})


class LoggedTurn(Struct, kw_only=True):
    """A turn as it was sent: its question, its tool rounds and its reply."""

    question: str
    at: datetime | None
    tools: list[dict[str, Any]]
    model: str
    rounds: list[dict[str, Any]] = []
    reply: str = ""


class RecordedConversation(Struct, kw_only=True):
    """The turns of a conversation in the order of the log. A conversation without its whole prompt is incomplete."""

    system: str
    is_complete: bool = True
    turns: list[LoggedTurn] = []

    def add(self, prompt: Prompt, *, at: datetime | None, model: str, reply: str) -> None:
        """Add the next request of the conversation."""
        blocks = [block for block in prompt.blocks if block.section == MESSAGES]
        tail = _take_tail(blocks, _ASKED_KINDS)
        question = "\n".join(block.text for block in tail)
        before = blocks[: len(blocks) - len(tail)]
        if self.turns and (not tail or (before and before[-1].kind == "tool_result" and not question)):
            made = _read_round(before)
            if made is None:
                return
            self.turns[-1].rounds.append(made)
            self.turns[-1].reply = reply
            return
        tools = [_read_tool(block.text) for block in prompt.blocks if block.section == TOOLS]
        self.turns.append(
            LoggedTurn(question=question, at=at, tools=[one for one in tools if one["name"]], model=model, reply=reply)
        )


class LogDocument(Struct, frozen=True, kw_only=True):
    """A text that several questions of a conversation contain."""

    path: str
    text: str


def start_recording(prompt: Prompt, *, is_complete: bool) -> RecordedConversation:
    """Return an empty conversation with the system prompt of its first request."""
    system = "\n\n".join(block.text for block in prompt.blocks if block.section == SYSTEM)
    return RecordedConversation(system=system, is_complete=is_complete)


def build_transcript(recorded: RecordedConversation, number: int) -> tuple[dict[str, Any], list[list[LogDocument]]]:
    """Return a transcript, and the documents of each of its turns."""
    repeated = _count_lines(turn.question for turn in recorded.turns)
    known: dict[str, str] = {}
    turns: list[dict[str, Any]] = []
    documents: list[list[LogDocument]] = []
    tools: list[dict[str, Any]] | None = None
    for turn in recorded.turns:
        question, texts = _split_documents(turn.question, repeated)
        own = [LogDocument(path=known.setdefault(text, f"document-{len(known) + 1}.md"), text=text) for text in texts]
        body: dict[str, Any] = {"user": question or "-", "reply": turn.reply, "model": turn.model}
        if turn.at is not None:
            body["at"] = f"{turn.at:%Y-%m-%dT%H:%M:%S}Z"
        if own:
            body["attach"] = [{"kind": "note", "path": one.path, "text": one.text} for one in own]
        if turn.rounds:
            body["rounds"] = _with_unique_calls(turn.rounds, len(turns))
        if turn.tools and turn.tools != tools:
            tools = body["tool_definitions"] = turn.tools
        turns.append(body)
        documents.append(own)
    transcript = {
        "lamella": 1, "conversation": f"conversation-{number}", "window": _WINDOW, "layout": "auto",
        "system": {"base": recorded.system}, "turns": turns,
    }  # fmt: skip
    return transcript, documents


def _take_tail(blocks: Sequence[Block], kinds: frozenset[str]) -> list[Block]:
    start = len(blocks)
    while start and blocks[start - 1].kind in kinds:
        start -= 1
    return list(blocks[start:])


def _read_round(blocks: Sequence[Block]) -> dict[str, Any] | None:
    """Return the last tool round of a prompt; None if its results have no calls."""
    results = _take_tail(blocks, frozenset({"tool_result"}))
    answer = _take_tail(blocks[: len(blocks) - len(results)], _ROUND_KINDS - {"tool_result"})
    calls = [call for block in answer if block.kind == "tool_call" and (call := _read_call(block.text)) is not None]
    outputs = {block.call: block.text for block in results}
    paired = [one for one in calls if one["id"] in outputs]
    if not paired:
        return None
    text = "\n".join(block.text for block in answer if block.kind == "assistant")
    return {
        "text": text,
        "calls": paired,
        "results": [{"call": one["id"], "output": outputs[one["id"]]} for one in paired],
    }


def _read_call(text: str) -> dict[str, Any] | None:
    try:
        call = get_object(json.loads(text))
    except (ValueError, RecursionError):
        return None
    function = get_object(call.get("function")) or call
    given = function.get("input", function.get("arguments"))
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            given = {"text": given}
    name = get_text(call.get("call_id")) or get_text(call.get("id"))
    if not name:
        return None
    arguments = given if isinstance(given, dict) else {}
    return {"id": name, "name": get_text(function.get("name")) or "tool", "arguments": arguments}


def _read_tool(text: str) -> dict[str, Any]:
    try:
        tool = get_object(json.loads(text))
    except (ValueError, RecursionError):
        tool = {}
    function = get_object(tool.get("function")) or tool
    parameters = (
        get_object(function.get("parameters")) or get_object(function.get("input_schema")) or {"type": "object"}
    )
    name, description = get_text(function.get("name")), get_text(function.get("description"))
    return {"name": name, "description": description, "parameters": parameters}


def _with_unique_calls(rounds: Sequence[Mapping[str, Any]], turn: int) -> list[dict[str, Any]]:
    """Return rounds whose call ids occur once in the transcript."""
    made = []
    for number, one in enumerate(rounds):
        names = {call["id"]: f"c{turn}-{number}-{at}" for at, call in enumerate(one["calls"])}
        made.append(
            {
                "text": one["text"],
                "calls": [{**call, "id": names[call["id"]]} for call in one["calls"]],
                "results": [{**result, "call": names[result["call"]]} for result in one["results"]],
            }
        )
    return made


def _count_lines(texts: Any) -> set[str]:  # noqa: ANN401 - an iterable of texts
    """Return the lines that more than one text contains."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(text.split("\n")))
    return {line for line, count in counts.items() if count > 1}


def _split_documents(text: str, repeated: set[str]) -> tuple[str, list[str]]:
    """Return a question without its documents, and these."""
    kept: list[str] = []
    documents: list[str] = []
    run: list[str] = []
    for line in (*text.split("\n"), None):
        if line is not None and line in repeated:
            run.append(line)
            continue
        if sum(map(len, run)) >= _MIN_DOCUMENT_CHARS:
            documents.append("\n".join(run))
        else:
            kept += run
        run = []
        if line is not None:
            kept.append(line)
    return "\n".join(kept).strip(), documents
