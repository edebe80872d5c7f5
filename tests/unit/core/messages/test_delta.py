"""Deltas add up to a reply once their end has come, and a character that came in halves is whole again."""

import pytest

from lamella.core.messages import (
    UNKNOWN_USAGE,
    CacheDiagnosis,
    Delta,
    ModelReply,
    ProviderReply,
    ReasoningDelta,
    StopDelta,
    StopReason,
    TextDelta,
    ToolCall,
    Usage,
    join_text,
    reply_from_deltas,
)

CALL = ToolCall(id="c", name="search", arguments="{}")


def test_deltas_add_up_to_a_reply() -> None:
    usage = Usage(plain=3, read=1)
    diagnosis, carried = CacheDiagnosis(verdict="missed"), ProviderReply(format="f", json="{}")
    stop = StopDelta(reason=StopReason.TOOL_CALLS, id="m", diagnosis=diagnosis, provider_reply=carried)
    deltas: list[Delta] = [
        ReasoningDelta(text="Hm"),
        TextDelta(text="a"),
        Usage(plain=9),
        TextDelta(text="b"),
        CALL,
        usage,
        stop,
    ]
    assert reply_from_deltas(deltas) == ModelReply(
        text="ab",
        reasoning="Hm",
        calls=(CALL,),
        usage=usage,
        stop=StopReason.TOOL_CALLS,
        id="m",
        diagnosis=diagnosis,
        provider_reply=carried,
    )


def test_deltas_without_stop_give_no_reply() -> None:
    assert reply_from_deltas([TextDelta(text="a")]) is None
    assert reply_from_deltas([]) is None


def test_reply_without_usage_has_unknown_usage() -> None:
    reply = reply_from_deltas([StopDelta(reason=StopReason.END)])
    assert reply is not None
    assert reply.usage is UNKNOWN_USAGE


def test_minimal_reply_has_unknown_fields() -> None:
    reply = ModelReply(text="a", stop=StopReason.END)
    assert (reply.reasoning, reply.calls, reply.usage) == ("", (), UNKNOWN_USAGE)
    assert (reply.id, reply.diagnosis, reply.provider_reply) == (None, None, None)
    stop = StopDelta(reason=StopReason.END)
    assert (stop.id, stop.diagnosis, stop.provider_reply) == (None, None, None)
    assert CacheDiagnosis(verdict="missed") == CacheDiagnosis(verdict="missed", reason=None, missed=None)


def test_stop_reasons_are_the_stored_words() -> None:
    stored = ["end", "length", "tools", "sequence", "refused", "window", "paused", "circles", "other"]
    assert [reason.value for reason in StopReason] == stored


def test_repr_omits_provider_reply() -> None:
    assert "secret" not in repr(ProviderReply(format="f", json="secret"))


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["a", "b"], "ab"),
        (["x\ud83d", "\ude42y"], "x🙂y"),
        (["\ud83d", "\ude42"], "🙂"),
        (["a\ud83d"], "a\ufffd"),
        (["\udc00b"], "\ufffdb"),
        (["\udfff"], "\ufffd"),
        (["\ud800c"], "\ufffdc"),
        (["\ud7ff\ue000"], "\ud7ff\ue000"),
    ],
)
def test_split_surrogates_are_joined_and_lone_ones_marked(parts: list[str], text: str) -> None:
    assert join_text(parts) == text
    reply = reply_from_deltas([*(TextDelta(text=part) for part in parts), StopDelta(reason=StopReason.END)])
    assert reply is not None
    assert reply.text == text
