"""Tokens: the total of a request equals a count of the rendered messages with the vocabulary alone."""

import json
from functools import cache
from math import ceil

from hypothesis import given, settings
from splintr import AnyTokenizer, Tokenizer
from tests.invariants.broken_prompts import segments_of
from tests.invariants.playing import play
from tests.invariants.strategies import Plan, plans
from tests.invariants.texts import without_stubs

from lamella import Envelope, Message
from lamella.core.prompt.layers.model import LayerId

TRIED = settings.get_profile("invariants")
PER_MESSAGE, PER_REQUEST = 4, 3
HEADINGS = {"## Context Library", "[User query]:", "Attached to this message; the text stands above:"}


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
def test_total_tokens_match_rendered_messages(plan: Plan) -> None:
    for seen in play(plan):
        counted = sum(weight(message) for message in seen.turn.messages)
        assert seen.turn.tokens.total == counted + tool_tokens(seen.envelope) + PER_REQUEST


@TRIED
@given(plan=plans(models=False))
def test_layer_and_segment_tokens_match_their_text(plan: Plan) -> None:
    for seen in play(plan):
        for layer in seen.envelope.layers:
            for segment in layer.segments:
                if segment.form.value in ("full", "preview", "reference") and segment.text.count("<title>") <= 1:
                    pictures = segment.tokens if segment.kind == "image" and not segment.text else 0
                    assert segment.tokens == len(tokens(segment.text)) + pictures
        by_layer = seen.turn.tokens.by_layer
        assert {name: by_layer[name] for name in by_layer if name != "overhead"} == claimed(seen.envelope)


@TRIED
@given(plan=plans(models=False))
def test_overhead_is_chat_format_and_text_outside_layers(plan: Plan) -> None:
    for seen in play(plan):
        by_layer, messages = seen.turn.tokens.by_layer, seen.turn.messages
        assert sum(by_layer.values()) == seen.turn.tokens.total
        added = PER_MESSAGE * len(messages) + PER_REQUEST
        written = sum(len(tokens(message.text)) for message in messages)
        earlier = sum(picture_tokens(message) for message in messages[:-1])
        claims = sum(claimed(seen.envelope).values()) - picture_tokens(messages[-1]) - tool_tokens(seen.envelope)
        assert by_layer["overhead"] == added + earlier + written - claims


@TRIED
@given(plan=plans(models=False))
def test_only_headings_references_images_and_old_handles_are_outside_segments(
    plan: Plan,
) -> None:
    for seen in play(plan):
        claimed_later = {s.id for s in segments_of(seen.envelope, LayerId.L4) if s.kind == "tool"}
        for left in unclaimed(seen.envelope):
            # A result that was given again appears as its call in both turns, and L4 claims the newer.
            unclaimed_lines = without_stubs(left, claimed_later).split("\n")
            lines = [line for line in unclaimed_lines if line and not line.startswith(("- ", "[Picture: "))]
            assert set(lines) <= HEADINGS, left


def claimed(envelope: Envelope) -> dict[str, int]:
    """The tokens of each layer's own text: L1 and L3 as one, the others segment by segment."""
    system, library, turn, strip, user = envelope.layers
    return {
        system.id.value: len(tokens(system.text)),
        library.id.value: sum(len(tokens(segment.text)) for segment in library.segments),
        turn.id.value: len(tokens(turn.text)) + picture_tokens(envelope.messages[-1]),
        strip.id.value: sum(len(tokens(segment.text)) for segment in strip.segments),
        user.id.value: len(tokens(user.text)),
        "tools": tool_tokens(envelope),
    }


def unclaimed(envelope: Envelope) -> list[str]:
    """The text of each message without what its layers claim of it; a claim that is not there fails."""
    system, library, turn, strip, user = envelope.layers
    left = [message.text for message in envelope.messages]
    left[-1] = cut_end(cut_start(left[-1], turn.text), user.text)
    left[0] = cut_start(left[0], system.text)
    for index, message in enumerate(envelope.messages):
        messages = [
            s for s in strip.segments if s.place == f"message:{index}" and s.kind in ("user", "reply") and s.text
        ]
        if message.role == "assistant":
            left[index] = cut_start(left[index], "\n\n".join(segment.text for segment in messages))
        else:
            left[index] = cut_end(left[index], "".join(segment.text for segment in messages))
    results = [s.text for s in strip.segments if s.kind not in ("user", "reply")]
    carried = [piece for placed in envelope.prompt.unlayered_artifacts for piece in placed.pieces]
    for text in sorted((*(s.text for s in library.segments), *results, *carried), key=len, reverse=True):
        take(text, left)
    return left


def cut_start(text: str, claim: str) -> str:
    assert text.startswith(claim)
    return text[len(claim) :]


def cut_end(text: str, claim: str) -> str:
    assert text.endswith(claim)
    return text[: len(text) - len(claim)]


def take(claim: str, left: list[str]) -> None:
    """Take a claim out of the messages: as one, or as a copy in one message and its updates in later ones."""
    while claim:
        ends = [at + 1 for at, character in enumerate(claim) if character == "\n"]
        found = next((end, i) for end in reversed(ends) for i, text in enumerate(left) if claim[:end] in text)
        left[found[1]] = left[found[1]].replace(claim[: found[0]], "", 1)
        claim = claim[found[0] :]


@TRIED
@given(plan=plans(models=False, turns=4))
def test_common_tokens_are_counted_token_by_token(plan: Plan) -> None:
    for seen in play(plan, ledger=True):
        if seen.before is not None and seen.before.tools == seen.envelope.tools:
            shared = _shared(seen.before.messages, seen.turn.messages)
            tools = tool_tokens(seen.envelope) if shared else 0
            assert seen.turn.prefix_change.common_tokens == shared + tools


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
