"""Invariant: an envelope has its five layers in order, and the request follows them."""

from hypothesis import given, settings
from tests.invariants.broken_prompts import broken_invariants, sealed, segments_of
from tests.invariants.playing import Seen, play
from tests.invariants.strategies import Plan, plans

from lamella import Conversation
from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")
LABEL = "[User query]:\n"
HEADING = "## Context Library\n\n"


@TRIED
@given(plan=plans())
def test_every_envelope_has_five_layers_in_order(plan: Plan) -> None:
    for seen in play(plan):
        names = [layer.id.value for layer in seen.envelope.layers]
        assert names == ["L1_SYSTEM", "L2_PREVIOUS", "L3_TURN", "L4_STRIP", "L5_USER"]


@TRIED
@given(plan=plans())
def test_request_is_the_system_then_each_exchange_then_the_question(plan: Plan) -> None:
    for seen in play(plan):
        roles = [message.role.value for message in seen.turn.messages]
        talk = ["user", "assistant"] * len(seen.expected.earlier) + ["user"]
        assert roles in (talk, ["system", *talk])


@TRIED
@given(plan=plans())
def test_system_message_is_parts_then_library(plan: Plan) -> None:
    for seen in play(plan):
        parts = segments_of(seen.envelope, LayerId.L1)
        names = [part.id for part in parts]
        assert names == [name for name in ("base", "instructions", "project", "memory") if name in names]
        said = "\n\n".join(part.text for part in parts)
        assert seen.envelope.layers[0].text == said
        shelved = "".join(s.text for s in segments_of(seen.envelope, LayerId.L2) if s.place == "system")
        library = "\n\n".join([said, HEADING] if said else [HEADING]) + shelved
        if plan.layout == "library":
            assert system_text(seen) == (library if shelved else said)
        else:
            assert system_text(seen).startswith(said)


def system_text(seen: Seen) -> str:
    first = seen.turn.messages[0]
    return first.text if first.role == "system" else ""


@TRIED
@given(plan=plans())
def test_last_message_is_tools_then_references_then_new_artifacts_then_the_question(plan: Plan) -> None:
    for seen in play(plan):
        shown = [segment for segment in segments_of(seen.envelope, LayerId.L3) if segment.text]
        tools = [s.text for s in shown if s.kind == "tool" and s.form is not ArtifactForm.REFERENCE]
        references = [s.text for s in shown if s.form is ArtifactForm.REFERENCE]
        new = [s.text for s in shown if s.kind != "tool" and s.form is not ArtifactForm.REFERENCE]
        assert [s.text for s in shown] == [*tools, *references, *new]
        text = seen.turn.messages[-1].text
        if not shown:
            assert text == seen.expected.typed
            continue
        ending = "".join([*references, *new, LABEL, seen.expected.typed])
        assert text.startswith("".join(tools))
        assert text.endswith(ending)
        between = text[len("".join(tools)) : len(text) - len(ending)]
        assert between.count("\n") == (1 if references else 0), "one line says that references follow"


@TRIED
@given(plan=plans())
def test_user_layer_is_typed_text_after_templates(plan: Plan) -> None:
    for seen in play(plan):
        assert seen.envelope.layers[4].text == seen.expected.typed


def test_layers_out_of_order_violate_invariant() -> None:
    envelope = Conversation(system="Be brief.").ask("Why?").envelope
    first, library, turn, strip, user = envelope.layers
    assert not library.segments
    assert not turn.segments
    swapped = sealed(replace(envelope, layers=(first, turn, library, strip, user)))
    assert broken_invariants(swapped) == ["layer_order"]


def test_good_envelope_violates_nothing() -> None:
    chat = Conversation(system="Be brief.")
    first = chat.ask("Why?").envelope
    assert broken_invariants(first) == []
    assert broken_invariants(chat.ask("And then?").envelope, before=first) == []
