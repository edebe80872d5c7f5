"""The invariants: a forged envelope violates exactly the invariant it was forged for; a built one violates none."""

import pytest
from tests.conftest import Watched

from lamella import Envelope, InvariantViolatedError, Note, Selection, ToolResult
from lamella.core.log.turn import ArtifactForm, LayoutPlan
from lamella.core.prompt.invariants import INVARIANTS, check_invariants, iter_violations, legal_cuts
from lamella.core.prompt.layers.history import SharedSequence
from lamella.core.prompt.layers.model import Layer, LayerId, Segment, make_layer
from lamella.core.values import replace

PROMOTES = pytest.mark.moves_prefix(reason="what was attached goes into the library")


def broken(envelope: Envelope, before: Envelope | None = None) -> list[str]:
    return [law.name for law, _ in iter_violations(envelope, before=None if before is None else before.prompt)]


def with_segments(envelope: Envelope, layer_id: LayerId, *segments: Segment) -> Envelope:
    """The envelope with other segments in one layer, and true hashes."""
    layer = envelope.layer(layer_id)
    forged = replace(layer, segments=segments)
    return replace(envelope, layers=tuple(forged if one is layer else one for one in envelope.layers))


@pytest.fixture
def pair(converse: type[Watched]) -> tuple[Envelope, Envelope]:
    chat = converse(layout="in_place", system="B.")
    first = chat.ask(
        "one",
        attach=[Note(path="a.md", text="A"), Selection(path="a.md", text="S")],
        results=[ToolResult(name="t", output="T")],
    )
    chat.reply("r")
    second = chat.ask("two", attach=[Note(path="a.md", text="A"), Note(path="b.md", text="B")])
    return first.envelope, second.envelope


def test_every_invariant_has_unique_name_and_statement() -> None:
    assert len({law.name for law in INVARIANTS}) == len(INVARIANTS) == 10
    assert all(law.statement.endswith(".") for law in INVARIANTS)


def test_built_envelope_violates_nothing(pair: tuple[Envelope, Envelope]) -> None:
    assert broken(pair[0]) == []
    assert broken(pair[1], pair[0]) == []


def test_layers_out_of_order_violate_layer_order(pair: tuple[Envelope, Envelope]) -> None:
    assert "layer_order" in broken(replace(pair[1], layers=pair[1].layers[::-1]))
    assert INVARIANTS[0].name == "layer_order"


def test_duplicate_id_in_layer_violates_unique_ids(pair: tuple[Envelope, Envelope]) -> None:
    (only, *_) = pair[1].layer(LayerId.L1).segments
    assert "unique_ids" in broken(with_segments(pair[1], LayerId.L1, only, only))


def test_missing_reference_target_violates_reference_targets(pair: tuple[Envelope, Envelope]) -> None:
    reference, _ = pair[1].layer(LayerId.L3).segments
    lost = with_segments(pair[1], LayerId.L3, replace(reference, id="gone.md"))
    assert broken(lost) == ["reference_targets"]
    stale = with_segments(pair[1], LayerId.L3, replace(reference, content="sha256:other"))
    assert broken(stale) == ["reference_targets"]


@pytest.mark.parametrize("form", [ArtifactForm.PREVIEW, ArtifactForm.HANDLE, ArtifactForm.SUMMARY])
def test_reference_to_shortened_copy_violates_reference_targets(
    pair: tuple[Envelope, Envelope], form: ArtifactForm
) -> None:
    note, *rest = pair[1].layer(LayerId.L2).segments
    assert broken(with_segments(pair[1], LayerId.L2, replace(note, form=form), *rest)) == ["reference_targets"]


def test_artifact_in_l4_violates_history_content(pair: tuple[Envelope, Envelope]) -> None:
    strip = pair[1].layer(LayerId.L4).segments
    stray = replace(strip[0], id="x.md", kind="note")
    assert broken(with_segments(pair[1], LayerId.L4, *strip, stray)) == ["strip_content"]


def test_second_full_copy_violates_single_copy(pair: tuple[Envelope, Envelope]) -> None:
    reference, new = pair[1].layer(LayerId.L3).segments
    again = with_segments(pair[1], LayerId.L3, replace(reference, form=ArtifactForm.FULL), new)
    assert broken(again) == ["single_copy"]


def test_library_copy_of_inlined_note_violates_single_copy(
    pair: tuple[Envelope, Envelope],
) -> None:
    note, *_ = pair[1].layer(LayerId.L2).segments
    (base,) = pair[1].layer(LayerId.L1).segments
    assert note.content is not None
    drawn_in = with_segments(pair[1], LayerId.L1, replace(base, inlines=((note.id, note.content),)))
    assert broken(drawn_in) == ["single_copy"]
    older = with_segments(pair[1], LayerId.L1, replace(base, inlines=((note.id, "sha256:older"),)))
    assert broken(older) == []


def test_shortened_selection_violates_verbatim(pair: tuple[Envelope, Envelope]) -> None:
    note, selection = pair[1].layer(LayerId.L2).segments
    forged = with_segments(pair[1], LayerId.L2, note, replace(selection, form=ArtifactForm.SUMMARY))
    assert broken(forged) == ["verbatim"]


def test_lost_selection_violates_verbatim_unless_dropped(pair: tuple[Envelope, Envelope]) -> None:
    note, selection = pair[1].layer(LayerId.L2).segments
    lost = with_segments(pair[1], LayerId.L2, note)
    assert broken(lost, pair[0]) == ["verbatim"]
    assert broken(replace(lost, prompt=replace(lost.prompt, dropped=(selection.id,))), pair[0]) == []


def test_lost_pinned_message_violates_verbatim(pair: tuple[Envelope, Envelope]) -> None:
    first, second = pair
    lost = replace(second.prompt.history, turns=SharedSequence([]))
    for pinned, history, breaches in (
        (frozenset({first.message_id}), lost, [f"{first.message_id} is pinned and is gone"]),
        (frozenset({first.message_id}), second.prompt.history, []),
        (frozenset({"another"}), lost, []),
    ):
        forged = replace(second, prompt=replace(second.prompt, pinned=pinned, history=history))
        found = [texts for law, texts in iter_violations(forged, before=first.prompt) if law.name == "verbatim"]
        assert [text for texts in found for text in texts] == breaches


def test_moved_tool_result_violates_tool_pairs(pair: tuple[Envelope, Envelope]) -> None:
    tool, user, reply = pair[1].layer(LayerId.L4).segments
    moved = with_segments(pair[1], LayerId.L4, replace(tool, place="message:2"), user, reply)
    assert broken(moved) == ["tool_pairs"]
    shelved = with_segments(pair[1], LayerId.L2, *pair[1].layer(LayerId.L2).segments, replace(tool, id="tool:x"))
    assert broken(shelved) == ["tool_pairs"]


@pytest.mark.parametrize("field", ["prefix_hash", "hash"])
def test_wrong_envelope_hash_violates_true_hashes(pair: tuple[Envelope, Envelope], field: str) -> None:
    forged = replace(pair[1], **{field: "sha256:0"})  # type: ignore[arg-type]
    assert broken(forged) == ["true_hashes"]


def test_wrong_segment_hash_violates_true_hashes(pair: tuple[Envelope, Envelope]) -> None:
    (user,) = pair[1].layer(LayerId.L5).segments
    assert broken(with_segments(pair[1], LayerId.L5, replace(user, content="sha256:0"))) == ["true_hashes"]


def test_rewritten_message_in_epoch_violates_growing_prefix(pair: tuple[Envelope, Envelope]) -> None:
    first, second = pair
    rewritten = replace(second.messages[1], pieces=("rewritten",))
    forged = replace(second, messages=(second.messages[0], rewritten, *second.messages[2:]))
    assert broken(forged, first) == ["growing_prefix"]
    assert broken(replace(forged, prompt=replace(forged.prompt, epoch=1)), first) == []


def test_fold_that_moves_kept_part_violates_growing_prefix(pair: tuple[Envelope, Envelope]) -> None:
    first, second = pair
    rewritten = replace(second.messages[1], pieces=("rewritten",))
    forged = replace(second, messages=(second.messages[0], rewritten, *second.messages[2:]))
    for keep, laws in ((0, []), (1, []), (2, ["growing_prefix"])):
        prompt = replace(forged.prompt, epoch=1, layout_plan=LayoutPlan(keep_messages=keep))
        assert broken(replace(forged, prompt=prompt), first) == laws


def test_violation_is_raised_with_name_and_findings(pair: tuple[Envelope, Envelope]) -> None:
    with pytest.raises(InvariantViolatedError) as caught:
        check_invariants(replace(pair[1], hash="sha256:0"), before=None)
    assert caught.value.invariant == "true_hashes"
    assert caught.value.findings
    assert "bug in Lamella" in caught.value.hint


def test_history_is_cut_only_where_turn_begins(pair: tuple[Envelope, Envelope]) -> None:
    strip = pair[1].layer(LayerId.L4)
    assert [segment.kind for segment in strip.segments] == ["tool", "user", "reply"]
    assert legal_cuts(strip) == (0, 3)


@pytest.mark.layout("library")
@PROMOTES
def test_library_is_cut_only_before_unrecoverable_text(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask(
        "one",
        attach=[Note(path="a.md", text="A"), Selection(path="a.md", text="S"), Note(path="b.md", text="B")],
    )
    chat.reply("r")
    assert legal_cuts(chat.ask("two").envelope.layer(LayerId.L2)) == (0, 1)


def test_empty_layer_has_one_place_to_cut() -> None:
    empty: Layer = make_layer(LayerId.L3, segments=(), pieces=(), tokens=0)
    assert legal_cuts(empty) == (0,)
