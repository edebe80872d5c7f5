"""Tokens: the total of a request is what its rendered messages weigh, counted here from the vocabulary alone."""

import json
from functools import cache
from math import ceil

from hypothesis import given, settings
from splintr import AnyTokenizer, Tokenizer
from tests.invariants.playing import play
from tests.invariants.strategies import Plan, plans

from lamella import Envelope, Message

TRIED = settings.get_profile("invariants")
PER_MESSAGE, PER_REQUEST = 4, 3


@cache
def _vocabulary() -> AnyTokenizer:
    return Tokenizer.from_pretrained("o200k_base")


def tokens(text: str) -> list[int]:
    return _vocabulary().encode_ordinary(text)


def picture_tokens(message: Message) -> int:
    return sum(min(1_600, ceil(image.width * image.height / 750)) for image in message.images)


def tool_tokens(envelope: Envelope) -> int:
    bodies = [
        {"name": tool.name, "description": tool.description, "parameters": json.loads(tool.parameters)}
        for tool in envelope.tools
    ]
    return sum(
        len(tokens(json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":")))) for body in bodies
    )


def weight(message: Message) -> int:
    return len(tokens(message.text)) + picture_tokens(message) + PER_MESSAGE


@TRIED
@given(plan=plans(models=False))
def test_the_total_is_the_weight_of_the_rendered_messages(plan: Plan) -> None:
    for seen in play(plan):
        counted = sum(weight(message) for message in seen.turn.messages)
        assert seen.turn.tokens.total == counted + tool_tokens(seen.envelope) + PER_REQUEST


@TRIED
@given(plan=plans(models=False))
def test_each_layer_and_segment_weighs_what_its_text_weighs(plan: Plan) -> None:
    for seen in play(plan):
        for layer in seen.envelope.layers:
            for segment in layer.segments:
                if segment.form.value in ("full", "preview", "reference") and segment.text.count("<title>") <= 1:
                    pictures = segment.tokens if segment.kind == "image" and not segment.text else 0
                    assert segment.tokens == len(tokens(segment.text)) + pictures
        by_layer = seen.turn.tokens.by_layer
        assert sum(by_layer.values()) >= seen.turn.tokens.total
        assert by_layer["tools"] == tool_tokens(seen.envelope)


@TRIED
@given(plan=plans(models=False, turns=4))
def test_what_two_requests_share_is_counted_token_by_token(plan: Plan) -> None:
    for seen in play(plan, ledger=True):
        if seen.before is not None and seen.before.tools == seen.envelope.tools:
            shared = _shared(seen.before.messages, seen.turn.messages)
            tools = tool_tokens(seen.envelope) if shared else 0
            assert seen.turn.prefix.common_tokens == shared + tools


def _shared(before: tuple[Message, ...], now: tuple[Message, ...]) -> int:
    total = 0
    for old, new in zip(before, now, strict=False):
        if old.to_dict() == new.to_dict():
            total += weight(old)
            continue
        if old.role == new.role:
            total += _common(tokens(old.text), tokens(new.text))
        break
    return total


def _common(old: list[int], new: list[int]) -> int:
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
