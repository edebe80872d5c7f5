"""Folds from a message on: earlier bytes stay, every invariant is satisfied, and no attachment is lost."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.test_rounds import check, turns
from tests.unit.core.compaction.stories import QUARTERS, ROOM, Story, attaching, make_rules, note

from lamella.conversation.past_turns import BranchHistory
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.turn import CarryForwardMode, HistoryMode, LayoutMode, LayoutPlan, Turn, TurnSettings
from lamella.core.messages import Message
from lamella.core.prompt.advance import add_reply_to_waiting_turn, advance_by_turn, get_pending_prompt
from lamella.core.prompt.envelope import make_envelope
from lamella.core.prompt.invariants import check_invariants
from lamella.core.prompt.layers.library import PlacedArtifact
from lamella.core.prompt.layers.model import SYSTEM_POSITION
from lamella.core.prompt.prefix_change import is_prefix_of
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")
NAMES = ("a.md", "b.md", "c.md")
TERMS = st.builds(
    TurnSettings,
    layout=st.just(LayoutMode.IN_PLACE),
    carry_forward=st.sampled_from(CarryForwardMode),
    history=st.sampled_from(HistoryMode),
    history_turns=st.none() | st.integers(1, 2),
)


@st.composite
def changing(draw: st.DrawFn) -> Turn:
    """A turn as any other, whose notes may have changed since."""
    versions = draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(("old", "new " * 9, "long " * 1_500))))
    attached = attaching(*[note(name, f"{text} text of {name}") for name, text in versions.items()]).attached
    return replace(draw(turns()), attached=attached, fold=False)


def plan(keep: int | None, state: PromptState, turn: Turn) -> LayoutPlan:
    """The hand-made placement where it may be: not before anything was sent."""
    if keep is None or state.turn_settings is None:
        return choose_layout(state, turn)
    return LayoutPlan(keep_messages=keep, why="by hand")


def _check_place(standing: PlacedArtifact, messages: Sequence[Message]) -> None:
    """The newest piece of what is known is in the message that its place names."""
    assert standing.place is not None
    at = 0 if standing.place == SYSTEM_POSITION else int(standing.place.partition(":")[2])
    assert standing.pieces[-1] in messages[at].pieces[0] or standing.pieces[-1] in messages[at].pieces


@TRIED
@given(st.lists(st.tuples(changing(), st.none() | st.integers(0, 12)), min_size=1, max_size=7), TERMS)
def test_fold_from_any_message_keeps_text_before_it_and_loses_nothing(
    talk: list[tuple[Turn, int | None]], terms: TurnSettings
) -> None:
    story, asked = Story(make_rules(), terms), []
    for turn, keep in talk:
        before = story.state.last_prompt
        bound = story.bind(turn)
        waits = replace(bound, reply=None)
        opened = advance_by_turn(story.state, waits, lambda s, t, keep=keep: plan(keep, s, t), tokenizer=QUARTERS)  # type: ignore[misc]
        prompt = get_pending_prompt(opened)
        check(story, opened)
        if before is not None and keep:
            assert is_prefix_of(before.messages[:keep], prompt.messages)
            assert prompt.epoch == before.epoch + 1
        for name, entry in opened.library.items():
            placed = opened.placed[name]
            assert placed.artifact.hash == entry.artifact.hash
            _check_place(placed, prompt.messages)
        story.state = add_reply_to_waiting_turn(opened, turn.reply or "")
        asked.append(bound)
    kept = {id(turn): keep for turn, (_, keep) in zip(asked, talk, strict=True)}
    resumed = BranchHistory(asked).compute_state(
        PromptState(conversation="story", tokenizer_name=QUARTERS.name),
        lambda state, turn: plan(kept[id(turn)], state, turn),
        tokenizer=QUARTERS,
    )
    assert resumed.last_prompt is not None
    assert story.state.last_prompt is not None
    assert resumed.last_prompt.messages == story.state.last_prompt.messages
    folded = story.open(Turn(text="And now?", fold=True))
    check_invariants(make_envelope(get_pending_prompt(folded), ROOM), before=story.state.last_prompt)
