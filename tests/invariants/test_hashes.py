"""Invariant: every hash is the hash of what it names."""

from collections.abc import Callable
from hashlib import sha256

import pytest
from hypothesis import given, settings
from tests.invariants.broken_prompts import broken_invariants, sealed, segments_of, turns, with_layer
from tests.invariants.playing import play
from tests.invariants.strategies import Plan, plans

from lamella import Envelope
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")
FALSE = "sha256:" + "0" * 64


def hashed(text: str) -> str:
    return f"sha256:{sha256(text.encode('utf-8')).hexdigest()}"


@TRIED
@given(plan=plans())
def test_hashes_of_layers_prefix_and_whole_can_be_computed_again(plan: Plan) -> None:
    for seen in play(plan):
        envelope = seen.envelope
        assert [layer.hash for layer in envelope.layers] == [hashed(layer.text) for layer in envelope.layers]
        first = envelope.messages[0]
        assert envelope.prefix_hash == hashed(first.text if first.role == "system" else "")
        assert envelope.hash == hashed("".join(f"{layer.id.value} {hashed(layer.text)}\n" for layer in envelope.layers))


@TRIED
@given(plan=plans())
def test_segment_hash_is_hash_of_original_text(plan: Plan) -> None:
    for seen in play(plan):
        tools = {tool.id: tool for message in seen.expected.earlier for tool in message.tools}
        facts = {**tools, **seen.expected.known}
        for layer in seen.envelope.layers:
            for segment in layer.segments:
                fact = seen.expected.attached.get(segment.id) if layer.id is LayerId.L3 else facts.get(segment.id)
                if fact is not None:
                    assert segment.hash == fact.hash
                elif segment.kind in ("system", "user", "reply"):
                    assert segment.hash == hashed(segment.text)


@TRIED
@given(plan=plans())
def test_envelope_text_joins_layers_with_blank_lines(plan: Plan) -> None:
    for seen in play(plan):
        assert seen.envelope.text == "\n\n".join(layer.text for layer in seen.envelope.layers if layer.text)


def _false_layer(envelope: Envelope) -> Envelope:
    return with_layer(envelope, replace(envelope.layers[1], hash=FALSE))


def _false_typed(envelope: Envelope) -> Envelope:
    typed = segments_of(envelope, LayerId.L5)[0]
    return with_layer(envelope, replace(envelope.layers[4], segments=(replace(typed, content=FALSE),)))


@pytest.mark.parametrize(
    "falsified",
    [
        _false_layer,
        _false_typed,
        lambda envelope: replace(envelope, prefix_hash=FALSE),
        lambda envelope: replace(envelope, hash=FALSE),
        lambda envelope: sealed(replace(envelope, messages=envelope.messages[1:])),
    ],
    ids=["layer", "segment", "prefix", "whole", "message"],
)
def test_false_hash_violates_true_hashes(falsified: Callable[[Envelope], Envelope]) -> None:
    _, second = turns("library")
    assert broken_invariants(falsified(second.envelope)) == ["true_hashes"]
