"""The index of the artifacts that a turn has to look at: always the same as a newly built one."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from lamella import Conversation, Note
from lamella.core.prompt.artifact_index import ArtifactIndex, build_index, is_retired
from lamella.core.prompt.cache_history import AttachmentStatsTable, sum_attachment_stats
from lamella.core.prompt.layers.model import LayerId, ShownSegments

START = datetime(2026, 11, 1, tzinfo=UTC)


def play(chat: Conversation, turns: int, *, seed: int = 0) -> None:
    """Attach new and old notes, detach and drop some, with pauses that expire the cache now and then."""
    random, known, at = Random(seed), list[str](), START
    for number in range(turns):
        at += timedelta(seconds=random.choice((30, 60, 4_000)))
        new = [f"{number}-{one}.md" for one in range(random.choice((0, 2, 6)))]
        again = random.sample(known, min(len(known), random.choice((0, 0, 1))))
        known += new
        notes = [Note(path=name, text=f"# {name}\n" + "text " * random.choice((5, 300))) for name in (*new, *again)]
        dropped = [name for name in known if name not in (*new, *again) and random.random() < 0.005]
        chat.ask("Go on.", attach=notes, drop=dropped, at=at)
        known = [name for name in known if name not in dropped]
        check_index(chat)
        chat.reply("Done.", at=at)


def check_index(chat: Conversation) -> None:
    state = chat.current_state[0]
    index = state.index
    assert index is not None
    assert index.matches_library(state.library, state.placed)
    built = build_index(state.library, state.placed)
    assert list(index.active_library.items()) == list(built.active_library.items())
    assert index.active_placed == built.active_placed
    assert [(one.last_attached_turn, one.name) for one in index.retired] == [
        (one.last_attached_turn, one.name) for one in built.retired
    ]
    assert index.retired_placed == built.retired_placed
    assert index.unparsed == built.unparsed
    assert {**index.active_library, **{one.name: state.library[one.name] for one in index.retired}} == state.library
    assert {**index.active_placed, **index.retired_placed} == state.placed


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("attachments", ["turn", "sticky"])
def test_index_is_that_of_the_library_after_every_turn(attachments: str, seed: int) -> None:
    chat = Conversation(
        layout="auto", model="anthropic:claude-opus-5-5", attachments=attachments, window=10**9, linger=1
    )
    play(chat, 40, seed=seed)
    state = chat.current_state[0]
    assert state.index is not None
    assert state.index.retired or attachments == "sticky"


def test_envelope_lists_retired_artifacts_without_text_in_their_place() -> None:
    chat = Conversation(layout="auto", model="anthropic:claude-opus-5-5", window=10**9, linger=0)
    play(chat, 40)
    turn = chat.ask("Go on.", at=START + timedelta(days=3))
    prompt = turn.envelope.prompt
    segments = turn.envelope.by_id[LayerId.L2].segments
    assert isinstance(segments, ShownSegments)
    assert prompt.retired_count > 20
    assert len(segments) == len(tuple(segments)) == len(prompt.library)
    assert [one.id for one in segments] == list(prompt.library)
    assert {one.place for one in segments if one not in segments.shown} == {None}
    assert segments[0] == next(iter(segments))
    assert segments == tuple(segments)


def test_retired_artifact_comes_back_with_its_place_in_the_library() -> None:
    chat = Conversation(layout="auto", model="anthropic:claude-opus-5-5", window=10**9, linger=0)
    play(chat, 40)
    state = chat.current_state[0]
    assert state.index is not None
    name = state.index.retired[0].name
    turn = chat.ask("Again.", attach=[Note(path=name, text="new text")], at=START + timedelta(days=3))
    check_index(chat)
    assert any("new text" in message.text for message in turn.messages)
    assert list(chat.current_state[0].library) == list(state.library)


def test_longer_retention_needs_all_artifacts() -> None:
    chat = Conversation(layout="auto", model="anthropic:claude-opus-5-5", window=10**9, linger=0)
    play(chat, 20)
    state = chat.current_state[0]
    assert state.index is not None
    newest = state.index.retired[-1].last_attached_turn
    assert state.index.suffices_for_turn(linger=state.turn_count - newest - 1, turn_number=state.turn_count)
    assert not state.index.suffices_for_turn(linger=state.turn_count - newest, turn_number=state.turn_count)
    assert not state.index.suffices_for_turn(
        linger=0, turn_number=state.turn_count, names=[state.index.retired[0].name]
    )
    assert state.index.suffices_for_turn(linger=0, turn_number=state.turn_count, names=["unknown.md"])


def test_statistics_are_those_of_going_through_all_artifacts() -> None:
    chat = Conversation(layout="auto", model="anthropic:claude-opus-5-5", window=10**9, linger=1)
    play(chat, 40)
    stats = chat.current_state[0].cache_history.attachment_stats
    assert isinstance(stats, AttachmentStatsTable)
    assert len(stats) == len(list(stats))
    assert stats.totals == sum_attachment_stats(dict(stats))


def test_turn_that_only_attaches_goes_through_nothing_that_retired() -> None:
    chat = Conversation(layout="auto", model="anthropic:claude-opus-5-5", window=10**9, linger=0)
    play(chat, 20)
    before = chat.current_state[0].index
    last = chat.current_state[0].cache_history.at
    assert before is not None
    assert last is not None
    chat.ask("And this?", attach=[Note(path="new.md", text="new")], at=last + timedelta(seconds=5))
    after = chat.current_state[0].index
    assert after is not None
    # The same objects: nothing was built again.
    assert after.retired is before.retired
    assert after.retired_placed is before.retired_placed


def test_indexes_are_no_part_of_a_state() -> None:
    chat = Conversation(layout="auto", model="anthropic:claude-opus-5-5")
    play(chat, 3)
    index = chat.current_state[0].index
    assert index == build_index({}, {})
    assert index == None  # noqa: E711
    assert isinstance(index, ArtifactIndex)
    assert index != 1
    assert not any(is_retired(entry, index.placed[name]) for name, entry in index.active_library.items())
