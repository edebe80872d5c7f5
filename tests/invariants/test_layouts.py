"""The layouts differ in the position of the library, not in its contents."""

from dataclasses import replace

from hypothesis import given, settings
from tests.invariants.blocks import block_text, find_blocks
from tests.invariants.broken_prompts import segments_of
from tests.invariants.playing import Seen, play
from tests.invariants.strategies import Plan, plans

from lamella.core.prompt.layers.model import LayerId

TRIED = settings.get_profile("invariants")


def both(plan: Plan) -> list[tuple[Seen, Seen]]:
    return list(zip(play(replace(plan, layout="library")), play(replace(plan, layout="in_place")), strict=True))


@TRIED
@given(plan=plans(layout="library", turns=5))
def test_layouts_agree_on_the_librarys_ids_order_and_hashes(plan: Plan) -> None:
    for library, in_place in both(plan):
        entries = [
            [(s.id, s.hash) for s in segments_of(seen.envelope, LayerId.L2) if s.id not in seen.expected.inlined]
            for seen in (library, in_place)
        ]
        assert entries[0] == entries[1]


@TRIED
@given(plan=plans(layout="library", turns=5))
def test_layouts_agree_on_messages_question_and_system(plan: Plan) -> None:
    for library, in_place in both(plan):
        for layer in (0, 4):
            assert library.envelope.layers[layer].text == in_place.envelope.layers[layer].text
        talk = [
            [s.text for s in segments_of(seen.envelope, LayerId.L4) if s.kind != "tool"] for seen in (library, in_place)
        ]
        assert talk[0] == talk[1]
        assert library.envelope.message_id == in_place.envelope.message_id


@TRIED
@given(plan=plans(layout="library", turns=5))
def test_model_can_read_the_same_texts_in_either_layout(plan: Plan) -> None:
    full = replace(plan, carry_forward="full")
    for library, in_place in both(full):
        texts = [
            {name: block_text(found) for name, found in find_blocks(seen.turn.messages).items()}
            for seen in (library, in_place)
        ]
        held = set(library.expected.known) | set(library.expected.attached)
        for name in held & set(texts[0]):
            if name not in library.expected.inlined:
                assert texts[0][name] == texts[1][name]
