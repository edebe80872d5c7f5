"""Four turns: a spec, an API note beside it, the spec alone, then a log. The library only grows."""

import pytest
from tests.golden.cases import CARRY_FORWARD, LAYOUTS
from tests.golden.conftest import Replay

SPEC, API, LOG = "Piano Lessons/project-spec.md", "Piano Lessons/api-docs.md", "Piano Lessons/error-log.md"
PROMOTES = pytest.mark.moves_prefix(reason="in layout library a promoted note goes into the system message")
EACH_LAYOUT = pytest.mark.parametrize("layout", [pytest.param("library", marks=PROMOTES), "in_place"])


@EACH_LAYOUT
@pytest.mark.parametrize("carry_forward", CARRY_FORWARD)
def test_library_keeps_earlier_attachments_and_never_shrinks(replayed: Replay, layout: str, carry_forward: str) -> None:
    turns = replayed("growing", layout, carry_forward)
    assert [[name for name, _ in turn.forms("L2_PREVIOUS")] for turn in turns] == [[], [SPEC], [SPEC, API], [SPEC, API]]


@EACH_LAYOUT
def test_turn_references_known_notes_and_sends_new_ones_in_full(replayed: Replay, layout: str) -> None:
    turns = replayed("growing", layout, "full")
    assert [turn.forms("L3_TURN") for turn in turns] == [
        [(SPEC, "full")],
        [(SPEC, "reference"), (API, "full")],
        [(SPEC, "reference")],
        [(SPEC, "reference"), (LOG, "full")],
    ]


@PROMOTES
def test_turn_without_new_notes_keeps_library_bytes(replayed: Replay) -> None:
    turns = replayed("growing", "library", "full")
    assert turns[3].hash("L2_PREVIOUS") == turns[2].hash("L2_PREVIOUS")
    assert turns[3].body["envelope"]["prefix_hash"] == turns[2].body["envelope"]["prefix_hash"]
    assert str(turns[3].movement) == f"epoch_folded({SPEC})"


@PROMOTES
def test_library_of_previews_gets_the_text_of_the_spec_back_when_it_is_attached_again(replayed: Replay) -> None:
    turns = replayed("growing", "library", "preview")
    assert [dict(turn.forms("L3_TURN"))[SPEC] for turn in turns] == ["full", *["reference"] * 3]
    assert turns[3].forms("L2_PREVIOUS") == [(SPEC, "full"), (API, "full")]


@EACH_LAYOUT
def test_envelope_has_five_layers_and_ids(replayed: Replay, layout: str) -> None:
    for turn in replayed("growing", layout, "full"):
        envelope = turn.body["envelope"]
        assert [layer["id"] for layer in envelope["layers"]] == [
            "L1_SYSTEM",
            "L2_PREVIOUS",
            "L3_TURN",
            "L4_STRIP",
            "L5_USER",
        ]
        assert envelope["conversation_id"] == "growing"
        assert len(envelope["message_id"]) == 16


@PROMOTES
def test_message_ids_and_layer_ids_do_not_depend_on_layout_or_carry_forward(replayed: Replay) -> None:
    replays = [replayed("growing", layout, carry) for layout in LAYOUTS for carry in CARRY_FORWARD]
    assert len({tuple(turn.body["envelope"]["message_id"] for turn in turns) for turns in replays}) == 1


def test_in_place_pause_beyond_cache_lifetime_moves_nothing_and_reads_nothing(replayed: Replay) -> None:
    turns = replayed("growing", "in_place", "full")
    assert turns[3].movement.cause == "none"
    assert [turn.body["cache"]["read"] > 0 for turn in turns] == [False, True, True, False]
