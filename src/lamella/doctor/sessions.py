"""Model calls in the session files of coding agents: Claude Code, Codex, opencode and aider.

Session files have the messages and the usage of each call, but neither the system prompt nor the tools. A call's
prompt is what stands before its answer. Each reader takes the records of one file in order.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lamella.doctor.calls import (
    Json,
    LoggedCall,
    ReportedUsage,
    WireFormat,
    first_count,
    get_list,
    get_object,
    get_text,
    parse_time,
    parse_usage,
)
from lamella.doctor.log_records import find_reply_text

_CODEX_TYPES = frozenset(
    {
        "session_meta", "response_item", "event_msg", "turn_context", "compacted", "token_usage_record", "world_state",
        "ghost_snapshot",
    }
)  # fmt: skip
_UNIT = {"": 1, "k": 1_000, "m": 1_000_000}


class ClaudeCodeReader:
    """Reads the lines of Claude Code sessions; one file may have several sessions and subagents."""

    def __init__(self) -> None:
        self._sessions: dict[str, _ClaudeSession] = {}

    def recognises(self, record: Json) -> bool:
        return ("sessionId" in record and isinstance(record.get("type"), str) and "traceId" not in record) or (
            get_text(record.get("type")) in ("summary", "file-history-snapshot")
            and ("leafUuid" in record or "snapshot" in record)
        )

    def read(self, record: Json) -> Iterator[LoggedCall]:
        name = (
            f"{get_text(record.get('sessionId'))} {get_text(record.get('agentId'))}{record.get('isSidechain') is True}"
        )
        session = self._sessions.setdefault(name, _ClaudeSession(get_text(record.get("sessionId"))))
        yield from session.read(record)

    def finish(self) -> Iterator[LoggedCall]:
        for session in self._sessions.values():
            yield from session.flush()


class _ClaudeSession:
    """One session: its lines form a tree, and the prompt of a call is the path to it."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._path: list[tuple[str, Json | None]] = []
        self._positions: dict[str, int] = {}
        self._answer: dict[str, Any] | None = None
        self._answer_end = ""
        self._asked: list[Json] = []
        self._at: object = None

    def read(self, record: Json) -> Iterator[LoggedCall]:
        message = get_object(record.get("message"))
        kind, name = record.get("type"), get_text(record.get("uuid"))
        if (
            kind == "assistant"
            and self._answer is not None
            and message.get("id") == self._answer.get("id")
            and (record.get("parentUuid") == self._answer_end)
        ):
            self._answer["content"] = [*get_list(self._answer.get("content")), *get_list(message.get("content"))]
            self._answer["usage"] = message.get("usage") or self._answer.get("usage")
            self._append(name, {"role": "assistant", "content": message.get("content")})
            self._answer_end = name
            return
        if not name:
            return
        yield from self.flush()
        self._follow(record.get("parentUuid"))
        if kind == "user" and message:
            if record.get("isCompactSummary") is True:
                self._clear()
            self._append(name, {"role": "user", "content": message.get("content")})
        elif kind == "assistant" and message and record.get("isApiErrorMessage") is not True:
            self._answer = dict(message)
            self._answer_end = name
            self._at = record.get("timestamp")
            self._asked = [one for _, one in self._path if one is not None]
            self._append(name, {"role": "assistant", "content": message.get("content")})
        else:
            if record.get("subtype") == "compact_boundary":
                self._clear()
            self._append(name, None)

    def flush(self) -> Iterator[LoggedCall]:
        """Yield the call of the answer that is complete now."""
        answer, self._answer = self._answer, None
        if answer is None or answer.get("model") == "<synthetic>":
            return
        reason = get_object(answer.get("diagnostics")).get("cache_miss_reason")
        yield LoggedCall(
            format="Claude Code session",
            wire=WireFormat.MESSAGES,
            body={"messages": self._asked},
            model=get_text(answer.get("model")) or None,
            at=parse_time(self._at),
            usage=parse_usage(answer.get("usage")),
            reply=find_reply_text(answer),
            label=self._label,
            has_whole_prompt=False,
            miss_reason=get_text(get_object(reason).get("type")) or get_text(reason) or None,
        )

    def _follow(self, parent: object) -> None:
        """Go back to a line's parent, if it is not the last line: the user went back in the conversation."""
        at = self._positions.get(parent) if isinstance(parent, str) else None
        if at is None or at == len(self._path) - 1:
            return
        for name, _ in self._path[at + 1 :]:
            self._positions.pop(name, None)
        del self._path[at + 1 :]

    def _append(self, name: str, message: Json | None) -> None:
        self._positions[name] = len(self._path)
        self._path.append((name, message))

    def _clear(self) -> None:
        self._path.clear()
        self._positions.clear()


class CodexReader:
    """Reads the lines of a Codex rollout."""

    def __init__(self) -> None:
        self._label: str | None = None
        self._instructions = ""
        self._model: str | None = None
        self._items: list[Json] = []
        self._answer_start: int | None = None
        self._total: Json = {}
        self._has_records = False

    def recognises(self, record: Json) -> bool:
        return get_text(record.get("type")) in _CODEX_TYPES and isinstance(record.get("payload"), dict)

    def read(self, record: Json) -> Iterator[LoggedCall]:
        payload = get_object(record.get("payload"))
        match record.get("type"):
            case "session_meta":
                self._label = get_text(payload.get("id")) or None
                base = payload.get("base_instructions")
                self._instructions = get_text(get_object(base).get("text")) or get_text(payload.get("instructions"))
            case "turn_context":
                self._model = get_text(payload.get("model")) or self._model
            case "response_item":
                self._add_item(payload)
            case "compacted":
                replaced = get_list(payload.get("replacement_history"))
                summary = {"type": "message", "role": "user", "content": get_text(payload.get("message"))}
                self._items = [get_object(one) for one in replaced] or [summary]
                self._answer_start = None
            case "token_usage_record":
                self._has_records = True
                yield from self._read_usage(record, get_object(payload.get("usage")))
            case "event_msg" if payload.get("type") == "token_count" and not self._has_records:
                info = get_object(payload.get("info"))
                total = get_object(info.get("total_token_usage"))
                if total != self._total:
                    self._total = total
                    yield from self._read_usage(record, get_object(info.get("last_token_usage")))

    def finish(self) -> Iterator[LoggedCall]:
        return iter(())

    def _add_item(self, item: Json) -> None:
        kind = get_text(item.get("type"))
        is_answer = item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")
        if is_answer and self._answer_start is None:
            self._answer_start = len(self._items)
        self._items.append(item)

    def _read_usage(self, record: Json, usage: Json) -> Iterator[LoggedCall]:
        end = len(self._items) if self._answer_start is None else self._answer_start
        asked, answer = self._items[:end], self._items[end:]
        self._answer_start = None
        if not asked or not usage:
            return
        body: dict[str, Any] = {"input": asked}
        if self._instructions:
            body["instructions"] = self._instructions
        yield LoggedCall(
            format="Codex rollout",
            wire=WireFormat.RESPONSES,
            body=body,
            model=self._model,
            at=parse_time(record.get("timestamp")),
            usage=parse_usage(usage),
            reply="".join(find_reply_text(item) for item in answer if item.get("role") == "assistant"),
            label=self._label,
            has_whole_prompt=False,
        )


def is_opencode_session(record: Json) -> bool:
    """Return whether a document is what ``opencode export`` prints."""
    first = get_object(next(iter(get_list(record.get("messages"))), None))
    return "info" in first and "parts" in first


def read_opencode_session(record: Json) -> Iterator[LoggedCall]:
    """Yield the calls of an opencode session: each step of an answer is one."""
    label = get_text(get_object(record.get("info")).get("id")) or None
    messages: list[Json] = []
    for value in get_list(record.get("messages")):
        info, parts = get_object(get_object(value).get("info")), get_list(get_object(value).get("parts"))
        if info.get("role") == "user":
            texts = [get_text(get_object(part).get("text")) for part in parts]
            messages.append({"role": "user", "content": [{"type": "text", "text": text} for text in texts if text]})
            continue
        yield from _read_opencode_answer(info, parts, messages, label)


def _read_opencode_answer(
    info: Json, parts: Iterable[Any], messages: list[Json], label: str | None
) -> Iterator[LoggedCall]:
    times = get_object(info.get("time"))
    content: list[Json] = []
    results: list[Json] = []
    asked = list(messages)
    for value in parts:
        part = get_object(value)
        match part.get("type"):
            case "text":
                content.append({"type": "text", "text": get_text(part.get("text"))})
            case "tool":
                state, call = get_object(part.get("state")), get_text(part.get("callID"))
                content.append({"type": "tool_use", "id": call, "name": part.get("tool"), "input": state.get("input")})
                output = get_text(state.get("output")) or get_text(state.get("error"))
                results.append({"type": "tool_result", "tool_use_id": call, "content": output})
            case "step-finish":
                yield LoggedCall(
                    format="opencode session",
                    wire=WireFormat.MESSAGES,
                    body={"messages": asked},
                    model=get_text(info.get("modelID")) or None,
                    at=parse_time(get_object(part.get("time")).get("end")) or parse_time(times.get("created")),
                    usage=_parse_opencode_usage(get_object(part.get("tokens"))),
                    reply=find_reply_text({"content": content}),
                    label=label,
                    has_whole_prompt=False,
                )
                messages += [{"role": "assistant", "content": content}]
                messages += [{"role": "user", "content": results}] if results else []
                content, results, asked = [], [], list(messages)
    if content:
        messages.append({"role": "assistant", "content": content})


def _parse_opencode_usage(tokens: Json) -> ReportedUsage | None:
    plain, cache = first_count(tokens, "input"), get_object(tokens.get("cache"))
    if plain is None:
        return None
    read, written = first_count(cache, "read"), first_count(cache, "write")
    return ReportedUsage(
        input=plain + (read or 0) + (written or 0), cached=read, written=written,
        output=first_count(tokens, "output") or 0,
    )  # fmt: skip


_AIDER_START = "# aider chat started at "
_AIDER_TOKENS = re.compile(r"([\d.]+)([kM]?) (sent|cache write|cache hit|received)")
_AIDER_MODEL = re.compile(r"^> (?:Main m|M)odel: (\S+)")
_AIDER_REQUEST = re.compile(r"^TO LLM (\S+)$")
_AIDER_RESPONSE = re.compile(r"^LLM RESPONSE (\S+)$")
_AIDER_ROLE = re.compile(r"^(SYSTEM|USER|ASSISTANT) ?(.*)$")


def is_aider_history(text: str) -> bool:
    """Return whether a text begins as aider's chat history or its log of requests."""
    start = text.lstrip()
    return start.startswith(_AIDER_START) or bool(_AIDER_REQUEST.match(start.partition("\n")[0]))


def read_aider_history(lines: Iterable[str]) -> Iterator[LoggedCall]:
    """Yield the calls of ``.aider.chat.history.md`` or of aider's log of requests."""
    reader = _AiderReader()
    for line in lines:
        yield from reader.read(line.rstrip("\n"))
    yield from reader.finish()


class _AiderReader:
    """Reads both of aider's files, whose lines never look alike."""

    def __init__(self) -> None:
        self._number = 0
        self._started: object = None
        self._model: str | None = None
        self._messages: list[dict[str, str]] = []
        self._request: list[dict[str, str]] | None = None
        self._asked_at: object = None
        self._in_response = False

    def read(self, line: str) -> Iterator[LoggedCall]:
        request, response = _AIDER_REQUEST.match(line), _AIDER_RESPONSE.match(line)
        if request or response:
            if request:
                yield from self.finish()
                self._request, self._asked_at = [], request.group(1)
            self._in_response = bool(response)
        elif self._request is not None:
            self._read_request_line(line)
        elif line.startswith(_AIDER_START):
            self._number += 1
            self._started, self._messages = line.removeprefix(_AIDER_START).strip(), []
        else:
            yield from self._read_history_line(line)

    def finish(self) -> Iterator[LoggedCall]:
        """Yield the logged request that is complete now."""
        request, self._request = self._request, None
        if request:
            yield LoggedCall(
                format="aider request log",
                wire=WireFormat.CHAT,
                body={"messages": request},
                at=parse_time(self._asked_at),
            )

    def _read_request_line(self, line: str) -> None:
        assert self._request is not None
        role = _AIDER_ROLE.match(line)
        if self._in_response:
            return
        if role is None:
            self._request.append({})  # a line of dashes ends a message
            self._request = [one for one in self._request[:-1] if one] + [{}]
            return
        name, text = role.group(1).lower(), role.group(2)
        last = self._request[-1] if self._request else None
        if last is not None and last.get("role") == name:
            last["content"] += "\n" + text
        elif last == {}:
            self._request[-1] = {"role": name, "content": text}
        else:
            self._request.append({"role": name, "content": text})

    def _read_history_line(self, line: str) -> Iterator[LoggedCall]:
        model = _AIDER_MODEL.match(line)
        if model:
            self._model = model.group(1)
        elif line.startswith("#### "):
            self._add("user", line.removeprefix("#### ").strip())
        elif line.startswith("> Tokens: "):
            yield from self._read_tokens(line)
        elif not line.startswith(">") and self._messages:
            self._add("assistant", line)

    def _add(self, role: str, text: str) -> None:
        if self._messages and self._messages[-1]["role"] == role:
            self._messages[-1] = {"role": role, "content": f"{self._messages[-1]['content']}\n{text}".strip()}
        elif text:
            self._messages.append({"role": role, "content": text})

    def _read_tokens(self, line: str) -> Iterator[LoggedCall]:
        counts: Mapping[str, int] = {
            name: int(float(number) * _UNIT[unit.lower()])
            for number, unit, name in _AIDER_TOKENS.findall(line)
            if number.count(".") < 2 and number != "."
        }
        if "sent" not in counts or not self._messages:
            return
        answered = self._messages[-1]["role"] == "assistant"
        read, written = counts.get("cache hit"), counts.get("cache write")
        yield LoggedCall(
            format="aider history",
            wire=WireFormat.CHAT,
            body={"messages": list(self._messages[:-1] if answered else self._messages)},
            model=self._model,
            at=parse_time(self._started),
            usage=ReportedUsage(
                input=counts["sent"] + (read or 0) + (written or 0), cached=read, written=written,
                output=counts.get("received", 0),
            ),
            reply=self._messages[-1]["content"] if answered else "",
            label=f"aider {self._number}",
            has_whole_prompt=False,
        )  # fmt: skip
