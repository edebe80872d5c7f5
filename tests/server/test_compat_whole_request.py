"""What the client wrote is in the upstream request, in its order, and nothing else is; for histories drawn at random."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.server.upstreams import body_for

from lamella.conversation.pasted_documents import expand_references
from lamella.server.compat import anthropic, openai_chat, openai_responses
from lamella.server.compat.model_calls import ModelAbilities, build_model_request
from lamella.server.compat.requests import (
    build_passthrough_body,
    is_equivalent_body,
    parse_request,
    plan_document_references,
)
from lamella.server.compat.translation import has_same_texts, model_request_has_same_texts, parse_neutral
from lamella.server.compat.wires import ApiFormat

Json = dict[str, Any]
# A piece of a conversation: text, image, call or result, with its role.
Piece = tuple[str, ...]
SPEC = "The sluice opens at noon, and closes when the heron leaves. " * 5
DOCUMENT = f'<document path="a.md">\n{SPEC}\n</document>'
TEXTS = st.sampled_from(
    ["hi", "  spaces  ", "e\u0301", "\u00e9", "\ud83d", "a\x00b", '{"a": 1}', '{"input": "x"}', "[cleared]", DOCUMENT,
     f"{DOCUMENT}\nWhy?", DOCUMENT.replace("noon", "[R]"), '[Document "a.md": identical to the copy above]', "[Pictures]"]
)  # fmt: skip
DATA = st.sampled_from(["iVBORw0KGgo=", "R0lGODlh"])


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[str, list[Piece]]]:
    """Turns: a role and what it says. The results of calls follow in a turn of their own."""
    turns: list[tuple[str, list[Piece]]] = []
    for number in range(draw(st.integers(1, 5))):
        said: list[Piece] = [("text", draw(TEXTS)) for _ in range(draw(st.integers(1, 3)))]
        if draw(st.booleans()):
            said.insert(draw(st.integers(0, len(said))), ("image", draw(DATA)))
        turns.append(("user", said))
        answer: list[Piece] = [("text", draw(TEXTS))] if draw(st.booleans()) else []
        names = [f"c{number}_{at}" for at in range(draw(st.integers(0, 2)))]
        calls: list[Piece] = [("call", name, draw(st.sampled_from(["{}", '{"day":"x"}']))) for name in names]
        if answer or calls:
            turns.append(("assistant", answer + calls))
        if calls:
            results: list[Piece] = [
                ("result", name, draw(TEXTS), draw(st.sampled_from(["", "R0lGODlh"]))) for name in names
            ]
            turns.append(("tool", results))
    turns.append(("user", [("text", draw(TEXTS))]))
    return turns


def to_messages(turns: Sequence[tuple[str, list[Piece]]]) -> Json:
    def block(piece: Piece) -> Json:
        match piece:
            case ("text", text):
                return {"type": "text", "text": text}
            case ("image", data):
                return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
            case ("call", name, arguments):
                return {"type": "tool_use", "id": name, "name": "look", "input": json.loads(arguments)}
            case (_, name, text, data):
                shown = [block(("text", text)), *([block(("image", data))] if data else [])]
                return {"type": "tool_result", "tool_use_id": name, "content": shown}
        raise AssertionError(piece)

    roles = {"tool": "user"}
    return body_for(
        "messages", [{"role": roles.get(role, role), "content": [*map(block, said)]} for role, said in turns]
    )


def to_chat(turns: Sequence[tuple[str, list[Piece]]]) -> Json:
    messages: list[Json] = []
    for role, said in turns:
        if role == "tool":
            messages += [{"role": "tool", "tool_call_id": one[1], "content": one[2]} for one in said]
            continue
        parts = [
            {"type": "text", "text": one[1]}
            if one[0] == "text"
            else {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{one[1]}"}}
            for one in said
            if one[0] != "call"
        ]
        calls = [
            {"id": one[1], "type": "function", "function": {"name": "look", "arguments": one[2]}}
            for one in said
            if one[0] == "call"
        ]
        messages.append({"role": role, "content": parts or None, **({"tool_calls": calls} if calls else {})})
    return body_for("chat", messages)


def to_responses(turns: Sequence[tuple[str, list[Piece]]]) -> Json:
    items: list[Json] = []
    for role, said in turns:
        kind = "output_text" if role == "assistant" else "input_text"
        for one in said:
            match one:
                case ("text", text):
                    items.append({"role": role, "content": [{"type": kind, "text": text}]})
                case ("image", data):
                    shown = {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}
                    items.append({"role": role, "content": [shown]})
                case ("call", name, arguments):
                    items.append({"type": "function_call", "call_id": name, "name": "look", "arguments": arguments})
                case (_, name, text, data):
                    output = [{"type": "input_text", "text": text}]
                    output += [{"type": "input_image", "image_url": f"data:image/png;base64,{data}"}] if data else []
                    items.append({"type": "function_call_output", "call_id": name, "output": output})
    return body_for("responses", items)


WRITERS = {ApiFormat.MESSAGES: to_messages, ApiFormat.CHAT: to_chat, ApiFormat.RESPONSES: to_responses}


def read_pieces(value: object, kind: str = "told") -> Iterator[Piece]:
    """The pieces of a body of any of the APIs, in order; texts of the user are ``text``, all others ``told``."""
    match value:
        case str():
            yield (kind, value)
        case list():
            for one in value:
                yield from read_pieces(one, kind)
        case {"type": "text" | "input_text" | "output_text", "text": text}:
            yield (kind, text)
        case {"type": "image", "source": {"data": data}}:
            yield ("image", data)
        case {"type": "image_url", "image_url": {"url": url}} | {"type": "input_image", "image_url": url}:
            yield ("image", url.partition("base64,")[2])
        case {"type": "tool_use", "id": name, "input": given}:
            yield ("call", name, json.dumps(given, separators=(",", ":")))
        case {"type": "function", "id": name, "function": {"arguments": arguments}} | {
            "type": "function_call",
            "call_id": name,
            "arguments": arguments,
        }:
            yield ("call", name, arguments)
        case dict():
            name = value.get("tool_use_id") or value.get("tool_call_id") or value.get("call_id")
            if name:
                yield ("result", name)
            inner = "text" if value.get("role") == "user" else "told"
            for field in ("content", "output", "tool_calls"):
                yield from read_pieces(value.get(field), inner)


def flat(turns: Sequence[tuple[str, list[Piece]]], *, result_images: bool) -> list[Piece]:
    pieces: list[Piece] = []
    for role, one in ((role, one) for role, said in turns for one in said):
        if one[0] == "result":
            pieces += [one[:2], ("told", one[2]), *([("image", one[3])] if one[3] and result_images else [])]
        else:
            pieces.append(("told", one[1]) if one[0] == "text" and role != "user" else one)
    return pieces


def quotes_reference(written: Sequence[Piece]) -> bool:
    """Whether a check may fail, because a reference could be taken for a text of the client."""
    return any(one[0] == "text" and "identical to" in one[1] for one in written)


def whole(pieces: Sequence[Piece], written: Sequence[Piece]) -> list[Piece]:
    """The pieces with their references replaced by the documents."""
    texts = [one[1] for one in pieces if one[0] == "text"]
    expanded = expand_references(texts, as_written={one[1] for one in written if one[0] == "text"})
    assert expanded is not None
    found = iter(expanded)
    return [("text", next(found)) if one[0] == "text" else one for one in pieces]


@given(turns=conversations())
def test_upstream_gets_all_that_the_client_wrote_in_order_and_nothing_else(
    turns: list[tuple[str, list[Piece]]],
) -> None:
    for wire, write in WRITERS.items():
        body = write(turns)
        written = flat(turns, result_images=wire is not ApiFormat.CHAT)
        client = parse_request(wire, json.dumps(body).encode())
        data = build_passthrough_body(client, model="m", layout=plan_document_references(client))
        if not is_equivalent_body(client, data, model="m", has_added_breakpoints=False):
            assert quotes_reference(written)
            data = build_passthrough_body(client, model="m")
        same = json.loads(data)
        field = "input" if wire is ApiFormat.RESPONSES else "messages"
        assert whole([*read_pieces(same[field])], written) == [*read_pieces(body[field])] == written
        for target in set(ApiFormat) - {wire}:
            neutral = parse_neutral(client, plan_document_references(client))
            made = {
                ApiFormat.MESSAGES: lambda n: anthropic.build_messages_body(n, "m", max_tokens=5),
                ApiFormat.CHAT: lambda n: openai_chat.build_chat_body(n, "m", is_openai=True),
                ApiFormat.RESPONSES: lambda n: openai_responses.build_responses_body(n, "m"),
            }[target](neutral)
            is_checked = has_same_texts(client, target, made)
            sent = [*read_pieces(made.get("input") or made["messages"])]
            if target is ApiFormat.CHAT:
                # Pictures of results follow the results, behind a line that names the call.
                sent = [one for one in sent if one[0] != "text" or not one[1].startswith("[Pictures of the result")]
                images = [one for one in sent if one[0] == "image"]
                assert sorted(images) == sorted(one for one in written if one[0] == "image")
                sent, expected = ([one for one in pieces if one[0] != "image"] for pieces in (sent, written))
            else:
                expected = written
            if is_checked:
                assert whole(sent, written) == expected
            else:
                assert quotes_reference(written)
        _check_model_request(turns, client, written)


def _check_model_request(turns: object, client: Any, written: list[Piece]) -> None:  # noqa: ANN401 - a request
    abilities = ModelAbilities(kind="gemini", max_tokens=5, takes_images=True, takes_tools=True)
    built = build_model_request(parse_neutral(client, []), "m", abilities)
    assert model_request_has_same_texts(client, built)
    texts = "".join(one[1] for one in written if one[0] in ("text", "told"))
    assert "".join("".join(one.pieces[::2]) for one in built.messages) == texts
    assert sum(len(one.images) for one in built.messages) == sum(one[0] == "image" for one in written)
    calls = [(call.id, call.arguments) for one in built.messages for call in one.calls]
    assert calls == [(one[1], one[2]) for one in written if one[0] == "call"]
    assert [one.call_id for one in built.messages if one.call_id] == [one[1] for one in written if one[0] == "result"]
