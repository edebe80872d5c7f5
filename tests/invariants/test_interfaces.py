"""The same conversation gives the same bytes through every interface and after any failure."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from tests.invariants.items import Item, attachment_of, png
from tests.invariants.playing import Played, Player, play, playing
from tests.invariants.strategies import Edit, Plan, Step, plans

from lamella import BadInputError, Conversation, Dataview, Image, Note, Tool, ToolResult, Turn, Url
from lamella.wiring import parse_transcript, replay_transcript

TRIED = settings.get_profile("invariants")


def still(plan: Plan) -> Plan:
    """The plan without edits of files: a transcript names a vault that does not change while it is replayed."""
    steps = []
    for step in plan.steps:
        attach = [replace(one, edit=Edit.NONE) if plan.things[one.thing].in_vault else one for one in step.attach]
        steps.append(replace(step, attach=tuple(attach)))
    return replace(plan, steps=tuple(steps))


def replayed(played: Played, folder: Path) -> list[Turn]:
    """The transcript of what was played, read back from its JSON."""
    written = json.dumps(played.transcript).encode()
    return list(replay_transcript(parse_transcript(written, name="played"), overrides={}, base_folder=folder))


def sent(turn: Turn) -> str:
    """Everything a turn is, as text."""
    envelope = turn.envelope
    layers = [(layer.id, layer.text, layer.hash, layer.tokens, layer.segments) for layer in envelope.layers]
    messages = [message.to_dict() for message in turn.messages]
    return repr(
        (layers, messages, envelope.hash, envelope.message_id, envelope.epoch, turn.tokens, turn.prefix_change.cause)
    )


@TRIED
@given(plan=plans())
def test_transcript_replays_like_library(plan: Plan) -> None:
    with playing(still(plan)) as (played, folder):
        turns = replayed(played, folder)
        assert [sent(turn) for turn in turns] == [sent(seen.turn) for seen in played.seen]
        assert [turn.envelope.warnings for turn in turns] == [seen.envelope.warnings for seen in played.seen]


@TRIED
@given(plan=plans())
def test_playing_twice_gives_same_bytes(plan: Plan) -> None:
    assert [sent(seen.turn) for seen in play(plan)] == [sent(seen.turn) for seen in play(plan)]


@TRIED
@given(plan=plans(turns=5))
def test_turn_that_cannot_be_built_leaves_no_trace(plan: Plan) -> None:
    undisturbed = [sent(seen.turn) for seen in play(plan)]
    with TemporaryDirectory() as folder:
        disturbed = [sent(seen.turn) for seen in Stumbling(plan, Path(folder)).play().seen]
    assert disturbed == undisturbed


class Stumbling(Player):
    """Asks, before each turn, for something that cannot be had."""

    def ask(self, step: Step, items: Sequence[Item], drop: Sequence[str]) -> Turn:
        missing = Note(path="nowhere/to/be/found.md")
        with suppress(BadInputError):
            self.chat.ask(
                "Lost {[[Alpha]]}",
                attach=[*(attachment_of(item) for item in items if item.kind != "tool"), missing],
                system={"memory": "lost", "base": "lost"},
                model="lost:model",
                drop=drop,
                fold=True,
            )
            raise AssertionError("a missing file was found")
        return super().ask(step, items, drop)


@TRIED
@given(plan=plans(turns=4))
def test_rendered_bytes_and_hashes_do_not_depend_on_conversation_name(plan: Plan) -> None:
    named = play(plan)
    with TemporaryDirectory() as folder:
        renamed = Player(plan, Path(folder), conversation="another").play().seen
    for one, other in zip(named, renamed, strict=True):
        assert one.envelope.hash == other.envelope.hash
        assert one.envelope.prefix_hash == other.envelope.prefix_hash
        assert [m.to_dict() for m in one.turn.messages] == [m.to_dict() for m in other.turn.messages]
        assert one.envelope.message_id != other.envelope.message_id


HALF = "\ud800"


@pytest.mark.parametrize(
    "asked",
    [
        lambda chat: chat.ask(HALF),
        lambda chat: chat.ask("Why?", attach=[Note(path="a.md", text=HALF)]),
        lambda chat: chat.ask("Why?", attach=[Note(path=HALF, text="a")]),
        lambda chat: chat.ask("Why?", attach=[Note(path="a.md", text="a", title=HALF)]),
        lambda chat: chat.ask("Why?", attach=[Url(url=HALF, text="a")]),
        lambda chat: chat.ask("Why?", attach=[Image(data=png(1, 1), title=HALF)]),
        lambda chat: chat.ask("Why?", attach=[Dataview(path="a.md", query=HALF, text="a")]),
        lambda chat: chat.ask("Why?", results=[ToolResult(name=HALF, output="a")]),
        lambda chat: chat.ask("Why?", results=[ToolResult(name="a", output="a", arguments={HALF: 1})]),
        lambda chat: chat.ask("Why?", tools=[Tool(name="a", description=HALF)]),
        lambda chat: chat.ask("Why?", system={"memory": HALF}),
        lambda _: Conversation(conversation_key=HALF).ask("Why?"),
    ],
)
def test_lone_surrogate_is_refused_and_leaves_no_trace(
    asked: Callable[[Conversation], object],
) -> None:
    chat = Conversation()
    with pytest.raises(BadInputError) as refused:
        asked(chat)
    assert refused.value.code == "bad_text"
    assert sent(chat.ask("Why?")) == sent(Conversation().ask("Why?"))
