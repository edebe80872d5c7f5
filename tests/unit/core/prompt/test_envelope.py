"""The envelope: five layers whose text, hashes and counts are those of the prompt that would be sent."""

import pytest
from tests.unit.core.compaction.stories import IN_PLACE, LIBRARY, NOW, QUARTERS, ROOM, Story, attaching, note, result

from lamella.core.artifacts.kinds import make_tool_definition
from lamella.core.budget import TokenBudget
from lamella.core.log.turn import SystemParts, TurnSettings
from lamella.core.messages import Message, Role, ToolCall, ToolOutput, ToolRound, derive_cache_boundaries
from lamella.core.prompt.advance import get_pending_prompt, replace_tool_rounds_of_waiting_turn
from lamella.core.prompt.envelope import ENVELOPE_VERSION, hash_layers, hash_system_message, make_envelope, make_request
from lamella.core.prompt.invariants import iter_violations
from lamella.core.prompt.layers.model import LAYER_ORDER, LayerId, hash_pieces
from lamella.core.text.content import hash_text
from lamella.core.values import replace

BOTH = pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])
ROUND = ToolRound(
    text="Looking.",
    calls=(ToolCall(id="c", name="search", arguments="{}"),),
    outputs=(ToolOutput(call="c", output="found " * 20),),
)


def story_of(terms: TurnSettings) -> Story:
    first = replace(
        attaching(note("a.md", "A" * 40), result("x", "found " * 9)),
        system=SystemParts(base="Be brief."),
        tools=(make_tool_definition("search", description="finds", parameters={}),),
    )
    return Story(terms=terms).say("one?", "one.", first)


@BOTH
def test_envelope_has_five_layers_and_violates_nothing(terms: TurnSettings) -> None:
    story = story_of(terms)
    prompt = get_pending_prompt(story.open(attaching(note("a.md", "A" * 40), note("b.md", "B"))))
    envelope = make_envelope(prompt, ROOM)
    assert tuple(layer.id for layer in envelope.layers) == LAYER_ORDER
    assert all(envelope.segments(layer) == prompt.segments(layer) for layer in LayerId)
    assert envelope.messages is prompt.messages
    assert list(iter_violations(envelope, before=story.state.last_prompt)) == []
    assert (envelope.conversation_id, envelope.message_id) == ("story", prompt.question.id)
    assert envelope.version == ENVELOPE_VERSION == 1
    assert (envelope.epoch, envelope.layout, envelope.model) == (prompt.epoch, terms.layout, None)


@BOTH
def test_every_token_belongs_to_a_layer_to_tools_or_to_overhead(terms: TurnSettings) -> None:
    envelope = make_envelope(get_pending_prompt(story_of(terms).open(attaching(note("b.md", "B")))), ROOM)
    counts = envelope.tokens
    assert counts.total == envelope.total == envelope.prompt.total
    assert sum(counts.by_layer.values()) == counts.total
    assert set(counts.by_layer) == {*LayerId, "tools", "overhead"}
    assert counts.by_layer["tools"] > 0
    assert counts.limit == ROOM.limit


def test_tool_rounds_are_in_turn_layer_and_counted() -> None:
    opened = story_of(IN_PLACE).open(NOW)
    plain = make_envelope(get_pending_prompt(opened), ROOM)
    envelope = make_envelope(get_pending_prompt(replace_tool_rounds_of_waiting_turn(opened, [ROUND])), ROOM)
    assert [segment.kind for segment in envelope.segments(LayerId.L3)] == ["call", "tool"]
    added = sum(message.tokens for message in envelope.messages[len(plain.messages) :])
    assert envelope.layer(LayerId.L3).tokens == added == envelope.total - plain.total
    assert envelope.layer(LayerId.L3).text == "".join(s.text for s in envelope.segments(LayerId.L3))
    assert list(iter_violations(envelope, before=plain.prompt)) == []
    assert envelope.hash != plain.hash


@BOTH
def test_turn_layer_tokens_are_sum_of_segments(terms: TurnSettings) -> None:
    for notes in ([], [note("b.md", "B")], [note("b.md", "B"), note("c.md", "C" * 90)]):
        envelope = make_envelope(get_pending_prompt(Story(terms=terms).open(attaching(*notes))), ROOM)
        weights = sum(segment.tokens for segment in envelope.segments(LayerId.L3))
        assert envelope.tokens.by_layer[LayerId.L3] == envelope.layer(LayerId.L3).tokens == weights


def test_request_counts_stable_messages() -> None:
    for turn_settings, asked, stays in [
        (LIBRARY, NOW, 4),
        (LIBRARY, attaching(note("b.md", "B")), 3),
        (IN_PLACE, attaching(note("b.md", "B")), 4),
    ]:
        opened = story_of(turn_settings).open(asked)
        envelope = make_envelope(get_pending_prompt(opened), ROOM)
        request = make_request(envelope, model="m", max_output_tokens=9, expected_pause=1.5, previous_reply_id="r")
        assert len(envelope.messages) == 4
        assert request.cache_boundaries == replace(derive_cache_boundaries(envelope.messages), stable_messages=stays)
        assert (request.messages, request.tools) == (envelope.messages, envelope.tools)
        assert (request.model, request.max_output_tokens, request.conversation) == ("m", 9, "story")
        assert (request.expected_pause, request.previous_reply_id) == (1.5, "r")
        # The next request of the same turn has the question as it is, and its results after it.
        called = make_envelope(get_pending_prompt(replace_tool_rounds_of_waiting_turn(opened, [ROUND])), ROOM)
        seams = make_request(called, model="m", max_output_tokens=9).cache_boundaries
        assert seams == replace(derive_cache_boundaries(called.messages), stable_messages=6)


def test_repr_omits_texts() -> None:
    envelope = make_envelope(get_pending_prompt(story_of(LIBRARY).open(NOW)), ROOM)
    shown = repr(envelope)
    assert shown.startswith("Envelope(prefix_hash='sha256:")
    assert not [name for name in ("prompt=", "layers=", "messages=", "seals=", "AAAA") if name in shown]
    layer = repr(envelope.layer(LayerId.L2))
    assert layer.startswith("Layer(id=")
    assert not [name for name in ("segments=", "pieces=", "AAAA") if name in layer]


def test_turn_warnings_precede_budget_warnings() -> None:
    story = Story()
    prompt = get_pending_prompt(story.open(replace(NOW, warnings=("as typed",), text="x" * 400)))
    tight = TokenBudget(window=110, reserve=0)
    first, *others = make_envelope(prompt, tight).warnings
    assert first == "as typed"
    assert others
    assert make_envelope(prompt, ROOM).warnings == ("as typed",)


def test_hashes_follow_from_the_text_alone() -> None:
    envelope = make_envelope(get_pending_prompt(story_of(LIBRARY).open(NOW)), ROOM)
    assert envelope.prefix_hash == hash_text(envelope.messages[0].text)
    assert hash_system_message(envelope.messages[1:]) == hash_system_message(()) == hash_pieces(())
    assert hash_system_message((Message(role=Role.SYSTEM, pieces=("a", "b")),)) == hash_text("ab")
    lines = "".join(f"{layer.id} {layer.hash}\n" for layer in envelope.layers)
    assert envelope.hash == hash_layers(envelope.layers) == hash_text(lines)


def test_envelope_text_joins_layers_with_blank_lines() -> None:
    envelope = make_envelope(get_pending_prompt(story_of(LIBRARY).open(NOW)), ROOM)
    assert envelope.text == "\n\n".join(layer.text for layer in envelope.layers if layer.text)
    assert envelope.layer(LayerId.L3).text == ""
    assert envelope.tokens.by_layer[LayerId.L5] == QUARTERS.count("And now?")
