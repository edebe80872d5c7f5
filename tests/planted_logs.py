"""Generated logs with one planted cause of lost money each, and clean ones, billed by a simple provider cache.

The cache here compares bytes and counts four characters as a token. It shares no code with the analysis.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

Json = dict[str, Any]
WIRES = ("chat", "responses", "messages")
_MODELS = {"chat": "gpt-5", "responses": "gpt-5.4", "messages": "claude-sonnet-4-5"}
_SMALL_MODELS = {"chat": "gpt-5-mini", "responses": "gpt-5.4-mini", "messages": "claude-haiku-4-5"}
_SYLLABLES = (
    "ka",
    "lo",
    "mi",
    "ren",
    "tas",
    "vo",
    "shu",
    "bel",
    "dor",
    "fin",
    "gra",
    "hul",
    "jet",
    "pol",
    "qui",
    "wex",
)
_TOKEN_CHARS = 4
_MINIMUM = {"chat": 1_024, "responses": 1_024, "messages": 1_024}
_LIFETIME = {"chat": 600, "responses": 600, "messages": 300}


@dataclass(slots=True)
class Sent:
    """One request with its time; ``usage_rule`` may change what the provider reports."""

    at: datetime
    body: Json
    reply: str
    cached_rule: Callable[[int, int], int] | None = None


@dataclass(slots=True)
class Plan:
    """A conversation before it is rendered for an API."""

    random: Random
    wire: str
    system: str
    tools: list[Json]
    turns: int
    pauses: list[float] = field(default_factory=list)
    model: str = ""


def words(random: Random, count: int) -> str:
    """Return sentences of made-up words."""
    made = ["".join(random.choices(_SYLLABLES, k=random.randint(1, 3))) for _ in range(count)]
    sentences = [" ".join(made[at : at + 9]).capitalize() + "." for at in range(0, count, 9)]
    return " ".join(sentences)


def _make_tool(random: Random, number: int) -> Json:
    names = [words(random, 1).strip(".").lower() + str(number) for _ in range(3)]
    return {
        "name": f"tool_{number}_{names[0]}",
        "description": words(random, 25),
        "parameters": {
            "type": "object",
            "properties": {name: {"type": "string", "description": words(random, 8)} for name in names},
            "required": names[:1],
        },
    }


def make_plan(random: Random, wire: str) -> Plan:
    """Return a conversation whose system prompt alone is long enough for a cache."""
    return Plan(
        random=random,
        wire=wire,
        system=words(random, 1_200),
        tools=[_make_tool(random, number) for number in range(random.randint(3, 7))],
        turns=random.randint(6, 11),
        pauses=[random.uniform(4, 60) for _ in range(40)],
        model=_MODELS[wire],
    )


# A message is (role, text) or (role, text, call id) for calls and results.
Message = tuple[str, ...]


def render(plan: Plan, system: str, tools: Sequence[Json], messages: Sequence[Message], **extra: Any) -> Json:  # noqa: ANN401
    """Return the body of a request in the plan's API."""
    body: Json = {"model": plan.model}
    if plan.wire == "messages":
        body["max_tokens"] = 1_000
        body["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        body["tools"] = [
            {"name": one["name"], "description": one["description"], "input_schema": one["parameters"]} for one in tools
        ]
        body["messages"] = [_anthropic_message(one) for one in messages]
        last = body["messages"][-1]["content"]
        last[-1] = {**last[-1], "cache_control": {"type": "ephemeral"}}
    elif plan.wire == "chat":
        body["messages"] = [{"role": "system", "content": system}, *(_chat_message(one) for one in messages)]
        body["tools"] = [{"type": "function", "function": one} for one in tools]
    else:
        body["instructions"] = system
        body["input"] = [_response_item(one) for one in messages]
        body["tools"] = [{"type": "function", **one} for one in tools]
    return {**body, **extra}


def _anthropic_message(message: Message) -> Json:
    role, text, *call = message
    if role == "call":
        use = {"type": "tool_use", "id": call[0], "name": "lookup", "input": json.loads(text)}
        return {"role": "assistant", "content": [use]}
    if role == "result":
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call[0], "content": text}]}
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _chat_message(message: Message) -> Json:
    role, text, *call = message
    if role == "call":
        function = {"name": "lookup", "arguments": text}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call[0], "type": "function", "function": function}],
        }
    if role == "result":
        return {"role": "tool", "tool_call_id": call[0], "content": text}
    return {"role": role, "content": text}


def _response_item(message: Message) -> Json:
    role, text, *call = message
    if role == "call":
        return {"type": "function_call", "call_id": call[0], "name": "lookup", "arguments": text}
    if role == "result":
        return {"type": "function_call_output", "call_id": call[0], "output": text}
    return {"role": role, "content": text}


def play(plan: Plan, change: Callable[[int, Plan, list[Message]], Json | None] | None = None) -> list[Sent]:
    """Play a conversation with tool calls; ``change`` may render a request in another way."""
    random = plan.random
    at = datetime(2026, 11, 2, 9, tzinfo=UTC) + timedelta(minutes=random.randint(0, 600))
    history: list[Message] = []
    sent: list[Sent] = []

    def send(reply: str) -> None:
        nonlocal at
        number = len(sent)
        body = (change(number, plan, list(history)) if change else None) or render(
            plan, plan.system, plan.tools, history
        )
        sent.append(Sent(at, body, reply))
        at += timedelta(seconds=plan.pauses[number % len(plan.pauses)])

    for turn in range(plan.turns):
        history.append(("user", words(random, random.randint(30, 120))))
        if turn % 3 == 1:
            call = f"call_{turn}_{random.randrange(16**6):06x}"
            arguments = {"query": words(random, 4), "limit": random.randint(1, 9), "exact": True}
            send("")
            history.append(("call", json.dumps(arguments), call))
            history.append(("result", words(random, random.randint(250, 400)), call))
        answer = words(random, random.randint(40, 150))
        send(answer)
        history.append(("assistant", answer))
    return sent


# Planted causes. Each returns the requests of one conversation.


def _clean(plan: Plan) -> list[Sent]:
    return play(plan)


def _time(plan: Plan) -> list[Sent]:
    formats = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%A, %d %B %Y, %H:%M:%S", "%d %b %Y %I:%M:%S %p")
    style, start = plan.random.choice(formats), datetime(2026, 11, 2, 9, 3, 7, tzinfo=UTC)
    at_front = plan.random.random() < 0.5

    def change(number: int, plan: Plan, history: list[Message]) -> Json:
        now = f"Current time: {start + timedelta(seconds=97 * number):{style}}."
        system = f"{now}\n{plan.system}" if at_front else f"{plan.system[:2_000]}\n{now}\n{plan.system[2_000:]}"
        return render(plan, system, plan.tools, history)

    return play(plan, change)


def _id(plan: Plan) -> list[Sent]:
    def make_id() -> str:
        bits = plan.random.getrandbits(128)
        shape = plan.random.randint(0, 2)
        return (str(UUID(int=bits)), f"req_{bits:032x}"[:20], f"trace-{bits:032x}"[:22])[shape]

    return play(
        plan, lambda _n, plan, history: render(plan, f"Session {make_id()}.\n{plan.system}", plan.tools, history)
    )


def _tools_reordered(plan: Plan) -> list[Sent]:
    def change(number: int, plan: Plan, history: list[Message]) -> Json:
        at = number % len(plan.tools)
        return render(plan, plan.system, [*plan.tools[at:], *plan.tools[:at]], history)

    return play(plan, change)


def _tools_changed(plan: Plan) -> list[Sent]:
    extra = [_make_tool(plan.random, 50 + number) for number in range(4)]
    first = plan.random.randint(2, 3)
    return play(
        plan,
        lambda number, plan, history: render(
            plan, plan.system, [extra[number % 4], *plan.tools] if number >= first else plan.tools, history
        ),
    )


def _keys_reordered(plan: Plan) -> list[Sent]:
    def turned(tool: Json) -> Json:
        properties = tool["parameters"]["properties"]
        return {**tool, "parameters": {**tool["parameters"], "properties": dict(reversed(properties.items()))}}

    return play(
        plan,
        lambda number, plan, history: render(
            plan, plan.system, [turned(one) for one in plan.tools] if number % 2 else plan.tools, history
        ),
    )


def _whitespace(plan: Plan) -> list[Sent]:
    padding = plan.random.choice(("\n", "  ", "\n\n"))
    return play(
        plan,
        lambda number, plan, history: render(plan, plan.system.replace(". ", f".{padding}") if number % 2 else plan.system,
                                             plan.tools, history),
    )  # fmt: skip


def _history_rewritten(plan: Plan) -> list[Sent]:
    kept = plan.random.randint(4, 6)

    def change(_number: int, plan: Plan, history: list[Message]) -> Json:
        cut = history[-kept:] if len(history) > kept else history
        while cut and cut[0][0] == "result":
            cut = cut[1:]
        return render(plan, plan.system, plan.tools, cut)

    plan.turns += 4
    return play(plan, change)


def _document_repeated(plan: Plan) -> list[Sent]:
    document = "\n".join(words(plan.random, 40) for _ in range(20))
    moves = plan.random.random() < 0.5

    def change(_number: int, plan: Plan, history: list[Message]) -> Json:
        asked = [at for at, one in enumerate(history) if one[0] == "user"]
        glued = asked[-1:] if moves else asked
        shown = [
            (one[0], f"<document>\n{document}\n</document>\n{one[1]}", *one[2:]) if at in glued else one
            for at, one in enumerate(history)
        ]
        return render(plan, plan.system, plan.tools, shown)

    return play(plan, change)


def _tool_result_cleared(plan: Plan) -> list[Sent]:
    def change(_number: int, plan: Plan, history: list[Message]) -> Json:
        results = [at for at, one in enumerate(history) if one[0] == "result"]
        cleared = set(results[:-1])
        shown = [(one[0], "[Old tool result content cleared]", one[2]) if at in cleared else one
                 for at, one in enumerate(history)]  # fmt: skip
        return render(plan, plan.system, plan.tools, shown)

    plan.turns += 6
    return play(plan, change)


def _summary(plan: Plan) -> list[Sent]:
    text = f"Summary of the conversation so far: {words(plan.random, 120)}"
    keep = 8

    def change(_number: int, plan: Plan, history: list[Message]) -> Json:
        cut = len(history) // keep * keep - 4
        if len(history) <= keep:
            return render(plan, plan.system, plan.tools, history)
        rest = history[cut:]
        while rest and rest[0][0] in ("result", "call"):
            rest = rest[1:]
        return render(plan, plan.system, plan.tools, [("user", f"{text} {cut}"), *rest])

    plan.turns += 4
    return play(plan, change)


def _model_changed(plan: Plan) -> list[Sent]:
    other = _SMALL_MODELS[plan.wire]
    return play(
        plan,
        lambda number, plan, history: {
            **render(plan, plan.system, plan.tools, history), "model": other if number % 3 == 2 else plan.model
        },
    )  # fmt: skip


def _parameters_changed(plan: Plan) -> list[Sent]:
    def change(number: int, plan: Plan, history: list[Message]) -> Json:
        effort = ("low", "high")[number % 2]
        by_wire: dict[str, Json] = {
            "chat": {"reasoning_effort": effort},
            "responses": {"reasoning": {"effort": effort}},
            "messages": {"tool_choice": {"type": ("auto", "any")[number % 2]}},
        }
        extra = by_wire[plan.wire]
        return render(plan, plan.system, plan.tools, history, **extra)

    return play(plan, change)


def _below_minimum(plan: Plan) -> list[Sent]:
    plan.system, plan.tools, plan.turns = words(plan.random, 60), [], 4
    random = plan.random
    history: list[Message] = []
    sent: list[Sent] = []
    at = datetime(2026, 11, 2, 9, tzinfo=UTC)
    for number in range(6):
        history.append(("user", words(random, 12)))
        answer = words(random, 12)
        sent.append(Sent(at + timedelta(seconds=20 * number), render(plan, plan.system, plan.tools, history), answer))
        history.append(("assistant", answer))
    return sent


def _expired(plan: Plan) -> list[Sent]:
    plan.pauses = [plan.random.uniform(5, 40) if number % 3 else 4_000 for number in range(40)]
    return play(plan)


def _without_marks(body: Json) -> Json:
    return json.loads(json.dumps(body).replace(', "cache_control": {"type": "ephemeral"}', ""))  # type: ignore[no-any-return]


def _breakpoint_missing(plan: Plan) -> list[Sent]:
    return play(plan, lambda _n, plan, history: _without_marks(render(plan, plan.system, plan.tools, history)))


def _breakpoints_exceeded(plan: Plan) -> list[Sent]:
    def change(_number: int, plan: Plan, history: list[Message]) -> Json:
        body: Json = render(plan, plan.system, plan.tools, history)
        for message in body["messages"]:
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}
        return body

    return play(plan, change)


def _constant_cached(plan: Plan) -> list[Sent]:
    sent = play(plan)
    for one in sent[1:]:
        one.cached_rule = lambda _cached, first: first - first % 128
    return sent


def _provider_miss(plan: Plan) -> list[Sent]:
    sent = play(plan)
    for number in plan.random.sample(range(2, len(sent)), 2):
        sent[number].cached_rule = lambda _cached, _first: 0
    return sent


CAUSES: dict[str, Callable[[Plan], list[Sent]]] = {
    "time_in_prompt": _time,
    "id_in_prompt": _id,
    "tools_reordered": _tools_reordered,
    "tools_changed": _tools_changed,
    "keys_reordered": _keys_reordered,
    "whitespace": _whitespace,
    "history_rewritten": _history_rewritten,
    "document_repeated": _document_repeated,
    "tool_result_cleared": _tool_result_cleared,
    "summary": _summary,
    "model_changed": _model_changed,
    "parameters_changed": _parameters_changed,
    "below_minimum": _below_minimum,
    "expired": _expired,
    "breakpoint_missing": _breakpoint_missing,
    "breakpoints_exceeded": _breakpoints_exceeded,
    "constant_cached": _constant_cached,
    "provider_miss": _provider_miss,
}
# Causes that only reported usage shows.
NEED_USAGE = frozenset({"constant_cached", "provider_miss"})
ONLY_MESSAGES = frozenset({"breakpoint_missing", "breakpoints_exceeded"})
ONLY_OPENAI = frozenset({"constant_cached"})


def fits(cause: str, wire: str, *, usage: bool) -> bool:
    """Return whether a cause can happen in an API, and be seen with or without usage."""
    if cause in ONLY_MESSAGES and wire != "messages":
        return False
    if cause in ONLY_OPENAI and wire == "messages":
        return False
    return usage or cause not in NEED_USAGE


# The provider.


def _segments(body: Json) -> tuple[list[str], list[int]]:
    """Return what the cache sees of a request, in order, and the numbers of the segments with a breakpoint."""
    parts: list[tuple[str, bool]] = []
    parts += [(json.dumps(one), False) for one in body.get("tools", ())]
    for one in body.get("system", ()):
        parts.append((one["text"], "cache_control" in one))
    if "instructions" in body:
        parts.append((body["instructions"], False))
    for message in body.get("messages") or body.get("input") or ():
        content = message.get("content")
        if isinstance(content, list):
            for one in content:
                plain = {name: value for name, value in one.items() if name != "cache_control"}
                parts.append((message["role"] + json.dumps(plain), "cache_control" in one))
        else:
            parts.append((json.dumps(message), False))
    return [text for text, _ in parts], [at for at, (_, marked) in enumerate(parts) if marked]


_DEPENDS_ON = ("model", "reasoning", "reasoning_effort", "tool_choice")


def bill(sent: Sequence[Sent], wire: str) -> list[Json]:
    """Return the usage that the provider reports for each request."""
    seen: list[tuple[datetime, str, list[str], list[int]]] = []
    reports: list[Json] = []
    first = 0
    for one in sent:
        segments, marks = _segments(one.body)
        total = sum(map(len, segments)) // _TOKEN_CHARS
        key = json.dumps([one.body.get(name) for name in _DEPENDS_ON])
        cached = 0
        for at, other_key, other, other_marks in seen:
            if other_key != key or (one.at - at).total_seconds() > _LIFETIME[wire]:
                continue
            same = next(
                (i for i, (a, b) in enumerate(zip(segments, other, strict=False)) if a != b),
                min(len(segments), len(other)),
            )
            if wire == "messages":
                ends = [end for end in other_marks if end < same and any(0 <= mark - end < 20 for mark in marks)]
                length = sum(map(len, segments[: max(ends) + 1])) if ends and len(marks) <= 4 else 0
            else:
                length = sum(map(len, segments[:same]))
            cached = max(cached, length // _TOKEN_CHARS)
        if wire != "messages":
            cached -= cached % 128
        cached = cached if cached >= _MINIMUM[wire] else 0
        first = first or total
        if one.cached_rule:
            cached = one.cached_rule(cached, first)
        seen.append((one.at, key, segments, marks))
        output = len(one.reply) // _TOKEN_CHARS
        if wire == "messages":
            rest = total - cached
            written = rest if marks and total >= _MINIMUM[wire] else 0
            reports.append(
                {"input_tokens": rest - written, "cache_read_input_tokens": cached,
                 "cache_creation_input_tokens": written, "output_tokens": output}
            )  # fmt: skip
        elif wire == "chat":
            reports.append(
                {
                    "prompt_tokens": total,
                    "completion_tokens": output,
                    "prompt_tokens_details": {"cached_tokens": cached},
                }
            )
        else:
            reports.append(
                {"input_tokens": total, "output_tokens": output, "input_tokens_details": {"cached_tokens": cached}}
            )
    return reports


def _response(wire: str, model: str, reply: str, usage: Json | None) -> Json:
    counted = {} if usage is None else {"usage": usage}
    if wire == "messages":
        return {
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": reply}],
            **counted,
        }
    if wire == "chat":
        message = {"role": "assistant", "content": reply}
        return {"object": "chat.completion", "model": model, "choices": [{"index": 0, "message": message}], **counted}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": reply}]}
    return {"object": "response", "model": model, "output": [said], **counted}


def make_lines(sent: Sequence[Sent], wire: str, *, usage: bool) -> list[tuple[datetime, Json]]:
    """Return the log lines of a conversation with their times."""
    reports = bill(sent, wire)
    return [
        (
            one.at,
            {
                "timestamp": f"{one.at:%Y-%m-%dT%H:%M:%S.%fZ}",
                "request": one.body,
                "response": _response(wire, one.body["model"], one.reply, report if usage else None),
            },
        )
        for one, report in zip(sent, reports, strict=True)
    ]


def make_log(
    seed: int, cause: str | None, wire: str, *, usage: bool = True, conversations: int = 1, interleaved: bool = False
) -> list[str]:
    """Return the lines of a log in which each conversation has the same planted cause, or none."""
    random = Random(f"{seed} {cause} {wire}")
    lines: list[tuple[datetime, Json]] = []
    for _ in range(conversations):
        plan = make_plan(random, wire)
        sent = (CAUSES[cause] if cause else _clean)(plan)
        lines += make_lines(sent, wire, usage=usage)
    if interleaved:
        lines.sort(key=lambda one: one[0])
    return [json.dumps(line) for _, line in lines]
