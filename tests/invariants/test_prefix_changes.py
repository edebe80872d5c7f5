"""The cause of a prefix change is that of the first byte that differs, with the segment there."""

from dataclasses import dataclass

from hypothesis import given, settings
from tests.invariants.broken_prompts import segments_of
from tests.invariants.playing import Seen, play
from tests.invariants.strategies import Plan, plans

from lamella import Envelope
from lamella.core.prompt.layers.model import LayerId

TRIED = settings.get_profile("invariants")
TALK = ("user", "reply")
REFERENCES = "Attached to this message; the text stands above:\n"
PARTS = ("base", "instructions", "project", "memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first place where two requests differ: in which message, and at which character of it."""

    message: int
    at: int


def first_difference(before: Envelope, now: Envelope) -> Difference | None:
    """Where this request stops repeating the one before; nothing where it repeats all of it."""
    for index, old in enumerate(before.messages):
        if index >= len(now.messages) or now.messages[index].role != old.role:
            return Difference(message=index, at=0)
        new = now.messages[index]
        if old.text != new.text:
            pairs = enumerate(zip(old.text, new.text, strict=False))
            shorter = min(len(old.text), len(new.text))
            return Difference(message=index, at=next((n for n, (a, b) in pairs if a != b), shorter))
        if old.images != new.images:
            return Difference(message=index, at=len(old.text))
    return None


def names_at(envelope: Envelope, place: Difference) -> set[str]:
    """The segments that are at a place, each from the end of what is before it."""
    if place.message >= len(envelope.messages):
        return set()
    message = envelope.messages[place.message]
    where = "system" if message.role == "system" else f"message:{place.message}"
    segments = [s for layer in envelope.layers for s in layer.segments if s.place == where]
    starts = [(message.text.find(s.text), len(s.text), s.id) for s in segments if s.text and s.kind not in TALK]
    for placed in envelope.prompt.system_library.values() if where == "system" else envelope.prompt.unlayered_artifacts:
        if placed.pieces and (where == "system" or placed.place == where):
            piece = placed.pieces[0 if where == "system" else -1]
            starts.append((message.text.find(piece), len(piece), placed.artifact.id))
    found: set[str] = set()
    end = 0
    for start, length, name in sorted(one for one in starts if one[0] >= 0):
        if end <= place.at < start + length:
            found.add(name)
        end = start + length
    pictures = {s.id for s in segments if s.kind == "image"} | {
        c.segment.id for c in envelope.prompt.unlayered_artifacts if not c.pieces
    }
    return found or (pictures if place.at >= end else set())


def moves(seen: Seen) -> tuple[Envelope, Difference | None]:
    assert seen.before is not None
    return seen.before, first_difference(seen.before, seen.envelope)


@TRIED
@given(plan=plans())
def test_cause_is_none_exactly_if_request_extends_previous(plan: Plan) -> None:
    first, *later = play(plan)
    assert first.turn.prefix_change.cause == "first_turn"
    for seen in later:
        before, difference = moves(seen)
        same = before.model == seen.envelope.model and before.tools == seen.envelope.tools
        assert (seen.turn.prefix_change.cause == "none") == (same and difference is None)


@TRIED
@given(plan=plans())
def test_named_segment_is_at_first_changed_byte(plan: Plan) -> None:
    for seen in play(plan)[1:]:
        before, difference = moves(seen)
        prefix = seen.turn.prefix_change
        if difference is None or prefix.cause in ("tools_changed", "model_changed"):
            continue
        named = names_at(before, difference) | names_at(seen.envelope, difference)
        if prefix.segment is not None:
            assert prefix.segment in named, (prefix, difference)
        else:
            assert prefix.cause == "epoch_folded"
            assert begins_with_references(before, difference), (prefix, difference, named)


def begins_with_references(envelope: Envelope, place: Difference) -> bool:
    """Whether a message loses its list of references first: the lines of earlier turns are no segments."""
    return place.at < len(REFERENCES) and envelope.messages[place.message].text.startswith(REFERENCES)


@TRIED
@given(plan=plans())
def test_cause_matches_actual_change(plan: Plan) -> None:
    for seen in play(plan)[1:]:
        before, _ = moves(seen)
        now, segment = seen.envelope, seen.turn.prefix_change.segment
        match seen.turn.prefix_change.cause:
            case "model_changed":
                assert before.model != now.model
            case "tools_changed":
                assert segment in {tool.name for tool in (*before.tools, *now.tools)}
            case "system_changed":
                assert segment in PARTS
                assert part_text(before, segment) != part_text(now, segment)
            case "artifact_added":
                assert segment not in shelved(before)
                assert segment in shelved(now)
            case "artifact_updated":
                assert segment is not None
                assert shelved(before)[segment] != shelved(now)[segment]
            case cause:
                assert cause in ("none", "epoch_folded")
                assert cause == "none" or before.epoch != now.epoch


def part_text(envelope: Envelope, part: str) -> str:
    return next((s.text for s in segments_of(envelope, LayerId.L1) if s.id == part), "")


def shelved(envelope: Envelope) -> dict[str, str]:
    """What the system message holds, with the hash of the text that is there."""
    return {placed.artifact.id: placed.artifact.hash for placed in envelope.prompt.system_library.values()}


@TRIED
@given(plan=plans(layout="in_place"))
def test_epoch_has_no_prefix_change(plan: Plan) -> None:
    for seen in play(plan)[1:]:
        if not seen.expected.begins_epoch:
            assert seen.turn.prefix_change.cause == "none"


@TRIED
@given(plan=plans())
def test_every_prefix_change_has_a_trigger(plan: Plan) -> None:
    for seen in play(plan):
        assert seen.turn.prefix_change.triggered, seen.turn.prefix_change
