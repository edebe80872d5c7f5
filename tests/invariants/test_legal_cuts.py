"""Legal cuts of a layer: the rest satisfies every invariant."""

from hypothesis import given, settings
from tests.invariants.broken_prompts import broken_invariants, segments_of, with_segments
from tests.invariants.playing import play
from tests.invariants.strategies import Plan, plans

from lamella import Conversation, Envelope, Layer, Note, Selection, ToolResult
from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.invariants import INVARIANTS, legal_cuts
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")


def cut(envelope: Envelope, layer_id: LayerId, at: int) -> Envelope:
    """The envelope without what is before a place in a layer."""
    return with_segments(envelope, layer_id, segments_of(envelope, layer_id)[at:])


def referred(envelope: Envelope) -> set[str]:
    return {s.id for s in segments_of(envelope, LayerId.L3) if s.form is ArtifactForm.REFERENCE}


@TRIED
@given(plan=plans())
def test_legal_history_cut_keeps_all_invariants(plan: Plan) -> None:
    for seen in play(plan):
        strip = segments_of(seen.envelope, LayerId.L4)
        for at in legal_cuts(seen.envelope.layers[3]):
            # A cut knows its layer alone; what this turn refers to is for the planner to keep.
            if not referred(seen.envelope) & {segment.id for segment in strip[:at]}:
                assert broken_invariants(cut(seen.envelope, LayerId.L4, at), before=seen.before) == []


@TRIED
@given(plan=plans())
def test_history_is_cut_between_turns_only(plan: Plan) -> None:
    for seen in play(plan):
        strip = segments_of(seen.envelope, LayerId.L4)
        sizes = [0]
        for segment in strip:
            sizes[-1] += 1
            if segment.kind == "reply":
                sizes.append(0)
        borders = {sum(sizes[:n]) for n in range(len(sizes))}
        assert set(legal_cuts(seen.envelope.layers[3])) == borders


@TRIED
@given(plan=plans())
def test_legal_library_cut_keeps_all_invariants(plan: Plan) -> None:
    for seen in play(plan):
        library = segments_of(seen.envelope, LayerId.L2)
        for at in legal_cuts(seen.envelope.layers[1]):
            assert all(segment.recoverable for segment in library[:at])
            if not referred(seen.envelope) & {segment.id for segment in library[:at]}:
                assert broken_invariants(cut(seen.envelope, LayerId.L2, at), before=seen.before) == []


@TRIED
@given(plan=plans())
def test_other_library_cuts_would_lose_unrecoverable_text(plan: Plan) -> None:
    for seen in play(plan):
        library = segments_of(seen.envelope, LayerId.L2)
        illegal = set(range(len(library) + 1)) - set(legal_cuts(seen.envelope.layers[1]))
        for at in illegal:
            assert not all(segment.recoverable for segment in library[:at])
            assert "verbatim" in broken_invariants(cut(seen.envelope, LayerId.L2, at), before=seen.envelope)


def test_referenced_entry_may_not_be_cut() -> None:
    chat = Conversation()
    for _ in range(2):
        turn = chat.ask("Why?", attach=[Selection(path="x.md", text="picked")])
        chat.reply("So.")
    assert [segment.form for segment in segments_of(turn.envelope, LayerId.L3)] == [ArtifactForm.REFERENCE]
    assert "verbatim" in broken_invariants(cut(turn.envelope, LayerId.L2, 1), before=turn.envelope)


def test_cutting_nothing_is_always_legal() -> None:
    turn = Conversation().ask("Why?", attach=[Note(path="a.md", text="a")], results=[ToolResult(name="t", output="o")])
    for layer in turn.envelope.layers:
        assert legal_cuts(layer)[0] == 0
        assert all(0 in law.find_legal_cuts(layer) for law in INVARIANTS)


def test_tool_results_are_not_cut_from_their_question() -> None:
    chat = Conversation(layout="in_place")
    for number in range(2):
        chat.ask("Why?", results=[ToolResult(name=name, output=f"{name} {number}") for name in ("one", "two")])
        chat.reply("So.")
    strip = chat.ask("And then?").envelope.layers[3]
    assert [segment.kind for segment in strip.segments] == ["tool", "tool", "user", "reply"] * 2
    assert legal_cuts(strip) == (0, 4, 8)
    tool_pairs = next(law for law in INVARIANTS if law.name == "tool_pairs")
    assert tool_pairs.find_legal_cuts(strip) == frozenset({0, 3, 4, 7, 8})


def test_library_is_cut_only_before_first_selection() -> None:
    chat = Conversation()
    notes = [Note(path=f"{name}.md", text=name) for name in "abc"]
    chat.ask("Why?", attach=[*notes[:2], Selection(path="x.md", text="picked"), notes[2]])
    library = chat.ask("And then?").envelope.layers[1]
    assert legal_cuts(library) == (0, 1, 2)
    assert legal_cuts(_without_selection(library)) == (0, 1, 2, 3)


def _without_selection(layer: Layer) -> Layer:
    return replace(layer, segments=tuple(segment for segment in layer.segments if segment.recoverable))
