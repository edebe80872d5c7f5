"""Folds from a message on: what stands before it stays byte for byte, every law holds, and nothing known is lost."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.test_rounds import check, turns
from tests.unit.core.compaction.talking import QUARTERS, ROOM, Story, attaching, make_rules, note

from lamella.core.log.placement import Placement
from lamella.core.log.terms import CarryForward, History, Layout, Terms
from lamella.core.log.turn import Turn
from lamella.core.messages.model import Message
from lamella.core.planning.layouts import place
from lamella.core.prompt.advance import advance, answer, waiting
from lamella.core.prompt.envelope import make_envelope
from lamella.core.prompt.laws import check_laws
from lamella.core.prompt.layers.library import Standing
from lamella.core.prompt.layers.model import SYSTEM_PLACE
from lamella.core.prompt.movement import extends
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.past import Past

TRIED = settings.get_profile("invariants")
NAMES = ("a.md", "b.md", "c.md")
TERMS = st.builds(
    Terms,
    layout=st.just(Layout.IN_PLACE),
    carry_forward=st.sampled_from(CarryForward),
    history=st.sampled_from(History),
    history_turns=st.none() | st.integers(1, 2),
)


@st.composite
def changing(draw: st.DrawFn) -> Turn:
    """A turn as any other, whose notes may have changed since."""
    versions = draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(("old", "new " * 9, "long " * 1_500))))
    attached = attaching(*[note(name, f"{text} text of {name}") for name, text in versions.items()]).attached
    return replace(draw(turns()), attached=attached, fold=False)


def plan(keep: int | None, state: State, turn: Turn) -> Placement:
    """The hand-made placement where it may be: not before anything was sent."""
    if keep is None or state.terms is None:
        return place(state, turn)
    return Placement(keep=keep, why="by hand")


def _check_place(standing: Standing, messages: Sequence[Message]) -> None:
    """The newest piece of what is known stands in the message that its place names."""
    assert standing.place is not None
    at = 0 if standing.place == SYSTEM_PLACE else int(standing.place.partition(":")[2])
    assert standing.pieces[-1] in messages[at].pieces[0] or standing.pieces[-1] in messages[at].pieces


@TRIED
@given(st.lists(st.tuples(changing(), st.none() | st.integers(0, 12)), min_size=1, max_size=7), TERMS)
def test_a_fold_from_any_message_keeps_what_stands_before_it_and_loses_nothing(
    talk: list[tuple[Turn, int | None]], terms: Terms
) -> None:
    story, asked = Story(make_rules(), terms), []
    for turn, keep in talk:
        before = story.state.last
        bound = story.bind(turn)
        waits = replace(bound, reply=None)
        opened = advance(story.state, waits, lambda s, t, keep=keep: plan(keep, s, t), measure=QUARTERS)  # type: ignore[misc]
        prompt = waiting(opened)
        check(story, opened)
        if before is not None and keep:
            assert extends(before.messages[:keep], prompt.messages)
            assert prompt.epoch == before.epoch + 1
        for name, entry in opened.library.items():
            standing = opened.standing[name]
            assert standing.artifact.hash == entry.artifact.hash
            _check_place(standing, prompt.messages)
        story.state = answer(opened, turn.reply or "")
        asked.append(bound)
    kept = {id(turn): keep for turn, (_, keep) in zip(asked, talk, strict=True)}
    resumed = Past(asked).fold(
        State(conversation="story", measured_by=QUARTERS.name),
        lambda state, turn: plan(kept[id(turn)], state, turn),
        measure=QUARTERS,
    )
    assert resumed.last is not None
    assert story.state.last is not None
    assert resumed.last.messages == story.state.last.messages
    folded = story.open(Turn(text="And now?", fold=True))
    check_laws(make_envelope(waiting(folded), ROOM), before=story.state.last)
