"""Bodies for an upstream of the same API: the client's bytes, but for the model, breakpoints and references."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.conversation.pasted_documents import expand_references
from lamella.server.compat.refusals import RefusedFieldError
from lamella.server.compat.requests import (
    Breakpoints,
    ClientRequest,
    build_passthrough_body,
    is_equivalent_body,
    parse_request,
    plan_breakpoints,
    plan_document_references,
)
from lamella.server.compat.wires import ApiFormat

BODY = "The sluice opens at noon\tand “closes” when the heron leaves 🪶. " * 8
DOCUMENT = f'<document path="a.md">\n{BODY}\n</document>'
# Key order, number spelling, escapes, an unknown field and a signature.
ODD = (
    b'{ "temperature":1.0,"max_tokens": 1e2, "model":"lamella", "x_unknown":{"b":1,"a":[2.50]},\n'
    b' "messages":[{"content":"caf\\u00e9 \\/ \\ud83d\\ude00","role":"user"},'
    b'{"role":"assistant","content":[{"type":"thinking","thinking":"..","signature":"s1"}]},'
    b'{"role":"user","content":[{"text":"And?","type":"text"}]}], "stream":false }'
)


def request_of(wire: ApiFormat, messages: object, **more: object) -> ClientRequest:
    field = "input" if wire is ApiFormat.RESPONSES else "messages"
    return parse_request(wire, json.dumps({"model": "lamella", field: messages, **more}).encode())


def test_body_differs_only_in_the_model() -> None:
    request = parse_request(ApiFormat.MESSAGES, ODD)
    sent = build_passthrough_body(request, model="claude-opus-5-5")
    assert sent == ODD.replace(b'"lamella"', b'"claude-opus-5-5"')
    assert is_equivalent_body(request, sent, model="claude-opus-5-5", has_added_breakpoints=False)
    assert build_passthrough_body(request, model="lamella") is request.data


def test_automatic_breakpoint_is_the_only_other_change() -> None:
    request = parse_request(ApiFormat.MESSAGES, ODD)
    sent = build_passthrough_body(request, model="lamella", breakpoints=Breakpoints())
    assert sent == b'{"cache_control":{"type":"ephemeral"},' + ODD[1:]
    assert is_equivalent_body(request, sent, model="lamella", has_added_breakpoints=True)
    assert not is_equivalent_body(request, sent, model="lamella", has_added_breakpoints=False)


def test_distant_previous_request_gets_breakpoint() -> None:
    blocks = [{"type": "text", "text": str(number)} for number in range(30)]
    messages = [{"role": "user", "content": blocks[:1]}, {"role": "assistant", "content": "a"}]
    request = request_of(ApiFormat.MESSAGES, [*messages, {"role": "user", "content": blocks}])
    breakpoints = plan_breakpoints(request, seen_messages=1)
    assert breakpoints.after_message == 0
    sent = build_passthrough_body(request, model="lamella", breakpoints=breakpoints)
    assert json.loads(sent)["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert is_equivalent_body(request, sent, model="lamella", has_added_breakpoints=True)
    assert plan_breakpoints(request_of(ApiFormat.MESSAGES, messages), seen_messages=1).after_message is None


@pytest.mark.parametrize("wire", ApiFormat)
@pytest.mark.parametrize("in_parts", [False, True])
def test_repeated_documents_become_references(wire: ApiFormat, *, in_parts: bool) -> None:
    kind = "input_text" if wire is ApiFormat.RESPONSES else "text"

    def say(text: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": kind, "text": text}] if in_parts else text}

    messages = [say(f"{DOCUMENT}\nWhen?"), {"role": "assistant", "content": DOCUMENT}, say(f"Hm\n{DOCUMENT}\nWhy?")]
    request = request_of(wire, messages)
    sent = build_passthrough_body(request, model="m", layout=plan_document_references(request))
    last = json.loads(sent)["input" if wire is ApiFormat.RESPONSES else "messages"][2]["content"]
    assert (last[0]["text"] if in_parts else last) == 'Hm\n[Document "a.md": identical to the copy above]\nWhy?'
    assert sent.count(b"the heron leaves") == 16
    assert is_equivalent_body(request, sent, model="m", has_added_breakpoints=False)


def test_whole_input_as_one_text_is_laid_out() -> None:
    request = request_of(ApiFormat.RESPONSES, f"{DOCUMENT}\n{DOCUMENT}\nWhy?")
    sent = build_passthrough_body(request, model="m", layout=plan_document_references(request))
    assert json.loads(sent)["input"] == f'{DOCUMENT}\n[Document "a.md": identical to the copy above]\nWhy?'
    assert is_equivalent_body(request, sent, model="m", has_added_breakpoints=False)


def test_redacted_first_copy_leaves_the_second_whole() -> None:
    redacted = DOCUMENT.replace("noon", "[R]")
    request = request_of(ApiFormat.CHAT, [{"role": "user", "content": redacted}, {"role": "user", "content": DOCUMENT}])
    assert plan_document_references(request) == []


@pytest.mark.parametrize("wire", ApiFormat)
def test_client_text_that_looks_like_a_reference_stays_and_leaves_others_alone(wire: ApiFormat) -> None:
    quoted = f'You wrote [Document "a.md": identical to the copy above], and: [Document "x": identical to version 7 of 9 above]\n{DOCUMENT}'
    texts = [DOCUMENT, DOCUMENT, quoted, DOCUMENT]
    request = request_of(wire, [{"role": "user", "content": text} for text in texts])
    sent = build_passthrough_body(request, model="m", layout=plan_document_references(request))
    field = "input" if wire is ApiFormat.RESPONSES else "messages"
    line = '[Document "a.md": identical to the copy above]'
    assert [one["content"] for one in json.loads(sent)[field]] == [DOCUMENT, line, quoted, line]
    assert is_equivalent_body(request, sent, model="m", has_added_breakpoints=False)


def test_reference_that_lost_its_document_fails_the_check() -> None:
    line = '[Document "a.md": identical to the copy above]'
    request = request_of(ApiFormat.CHAT, [{"role": "user", "content": text} for text in ("Hi", DOCUMENT, line)])
    for texts in (("Hi", line, line), (line, DOCUMENT, "Hi"), ("Hi", DOCUMENT, DOCUMENT)):
        sent = json.dumps({"model": "m", "messages": [{"role": "user", "content": text} for text in texts]}).encode()
        assert not is_equivalent_body(request, sent, model="m", has_added_breakpoints=False)


def test_each_repeated_model_field_gets_the_model_of_the_upstream() -> None:
    request = parse_request(ApiFormat.CHAT, b'{"model":"a","messages":[{"role":"user"}],"mod\\u0065l" : "b"}')
    sent = build_passthrough_body(request, model="m")
    assert sent == b'{"model":"m","messages":[{"role":"user"}],"mod\\u0065l" : "m"}'


def test_breakpoint_takes_the_place_of_null() -> None:
    blocks = [{"type": "text", "text": str(number), "cache_control": None} for number in range(30)]
    messages = [{"role": "user", "content": blocks[:1]}, {"role": "user", "content": blocks}]
    request = request_of(ApiFormat.MESSAGES, messages, cache_control=None, system=[{"cache_control": None}])
    assert not request.has_breakpoints
    sent = build_passthrough_body(request, model="m", breakpoints=plan_breakpoints(request, seen_messages=1))
    assert is_equivalent_body(request, sent, model="m", has_added_breakpoints=True)
    assert sent.count(b'"cache_control"') == request.data.count(b'"cache_control"')
    made = json.loads(sent)
    assert made["cache_control"] == made["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize("content", [[1], [None], [[]], ["x"], [], "x", None, {"a": 1}])
def test_content_of_a_wrong_type_gets_no_breakpoint(content: object) -> None:
    later = {"role": "user", "content": [{"type": "text", "text": "x"}] * 30}
    request = request_of(ApiFormat.MESSAGES, [{"role": "user", "content": content}, later])
    assert plan_breakpoints(request, seen_messages=1) == Breakpoints()


def test_lost_added_or_changed_text_fails_the_check() -> None:
    request = parse_request(ApiFormat.MESSAGES, ODD)
    for old, new in ((b"And?", b"And!"), (b'"And?"', b'"And?","more":"x"'), (b',"signature":"s1"', b"")):
        changed = ODD.replace(old, new)
        assert changed != ODD
        assert not is_equivalent_body(request, changed, model="lamella", has_added_breakpoints=False)


@pytest.mark.parametrize("written", ['"lamella":{"conversation":"x"},', '"lamella" : { } , '])
def test_field_for_lamella_is_not_sent(written: str) -> None:
    plain = '{"model":"m","messages":[{"role":"user","content":"Hi"}]}'
    for text in (plain.replace("{", "{" + written, 1), plain.replace(',"mess', f', {written[:-1].rstrip(", ")},"mess')):
        request = parse_request(ApiFormat.CHAT, text.encode())
        sent = build_passthrough_body(request, model="m")
        assert json.loads(sent) == json.loads(plain)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ("[]", None),
        ("{", None),
        ('{"messages":[{}],"x":1e999}', None),
        ('{"messages":[{}],"x":NaN}', None),
        ('{"model":1,"messages":[]}', "model"),
        ('{"messages":"hi"}', "messages"),
        ('{"messages":[]}', "messages"),
        ('{"messages":[1]}', "messages"),
        ('{"messages":[{}],"stream":"yes"}', "stream"),
        ('{"messages":[{}],"lamella":1}', "lamella"),
        ('{"messages":[{}],"lamella":{"attach":[]}}', "lamella.attach"),
    ],
)
def test_unreadable_request_names_its_field(body: str, param: str | None) -> None:
    with pytest.raises(RefusedFieldError) as refused:
        parse_request(ApiFormat.CHAT, body.encode())
    assert refused.value.param == param


PIECES = st.sampled_from([DOCUMENT, DOCUMENT.replace("noon", "one"), "Why?", "é\ud83d", '\\ "quoted"'])
TEXTS = st.lists(PIECES, min_size=1, max_size=4).map("\n".join)
ROLES = st.sampled_from(["user", "user", "assistant", "system"])


@given(messages=st.lists(st.tuples(ROLES, TEXTS, st.booleans()), min_size=1, max_size=8), is_ascii=st.booleans())
def test_every_laid_out_request_passes_the_check(messages: list[tuple[str, str, bool]], *, is_ascii: bool) -> None:
    said = [
        {"role": role, "content": [{"type": "text", "text": text}] if in_parts else text}
        for role, text, in_parts in messages
    ]
    data = json.dumps({"messages": said, "model": "x"}, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    request = parse_request(ApiFormat.CHAT, data)
    sent = build_passthrough_body(request, model="m", layout=plan_document_references(request))
    assert is_equivalent_body(request, sent, model="m", has_added_breakpoints=False)
    texts = [one.text for one in parse_request(ApiFormat.CHAT, sent).user_texts()]
    assert expand_references(texts) == [one.text for one in request.user_texts()]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_body_that_is_no_utf_8_is_refused(encoding: str) -> None:
    with pytest.raises(RefusedFieldError):
        parse_request(ApiFormat.CHAT, '{"messages":[{}]}'.encode(encoding))


def test_byte_order_mark_is_kept() -> None:
    mark = b"\xef\xbb\xbf"
    request = parse_request(ApiFormat.CHAT, mark + b'{"model":"a","messages":[{}]}')
    assert build_passthrough_body(request, model="m") == mark + b'{"model":"m","messages":[{}]}'
