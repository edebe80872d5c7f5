"""Folding turns: what begins an epoch, what drop, pin and snapshot do."""

from datetime import UTC, datetime

import pytest
from tests.conftest import Watched
from tests.unit.rendered import attached, forms, library, sent

from lamella import Note, Selection, Tool, ToolResult, Turn, Url, WebTab, YouTube
from lamella.core.prompt.layers.model import LayerId

PROMOTES = pytest.mark.moves_prefix(reason="in layout library what was attached goes into the system message")
FOLDS = pytest.mark.moves_prefix(reason="the turn begins an epoch")


def opened(converse: type[Watched], *, model: str | None = None, carry_forward: str = "full") -> Watched:
    """A conversation in layout in_place with a first turn behind it."""
    chat = converse(system={"base": "B."}, layout="in_place", model=model, carry_forward=carry_forward)
    chat.ask("one", attach=[Note(path="a.md", text="A")], results=[ToolResult(name="t", output="T")])
    chat.reply("r")
    return chat


def stub(turn: Turn) -> str:
    """What the result of the first turn leaves: the call that gets it back, and no more."""
    (segment,) = [one for one in turn.envelope.layer(LayerId.L4).segments if one.kind == "tool"]
    assert segment.form == "handle"
    assert (segment.id in segment.text, "Make the call again" in segment.text) == (True, True)
    return segment.text


@FOLDS
@pytest.mark.parametrize("part", ["base", "instructions", "project", "memory"])
def test_in_place_a_changed_part_of_l1_begins_an_epoch(converse: type[Watched], part: str) -> None:
    turn = opened(converse).ask("two", system={part: "Changed."})
    assert turn.envelope.epoch == 1
    assert str(turn.prefix_change.prefix_change) == f"system_changed({part})"
    assert turn.layout_reason == "the system prompt changed"


@pytest.mark.layout("library")
def test_turn_gives_reason_for_layout(converse: type[Watched]) -> None:
    assert opened(converse).ask("two").layout_reason == "nothing that was sent has to move"
    assert converse().ask("one").layout_reason == "what earlier turns attached goes into the system message"


@FOLDS
def test_in_place_changed_tools_begin_an_epoch(converse: type[Watched]) -> None:
    turn = opened(converse).ask("two", tools=[Tool(name="search")])
    assert turn.envelope.epoch == 1
    assert str(turn.prefix_change.prefix_change) == "tools_changed(search)"


@FOLDS
def test_in_place_a_changed_model_begins_an_epoch(converse: type[Watched]) -> None:
    turn = opened(converse, model="openai:gpt-5").ask("two", model="openai:gpt-5-mini")
    assert turn.envelope.epoch == 1
    assert str(turn.prefix_change.prefix_change) == "model_changed"


@FOLDS
def test_in_place_drop_begins_an_epoch(converse: type[Watched]) -> None:
    turn = opened(converse).ask("two", drop=["a.md"])
    assert turn.envelope.epoch == 1
    assert turn.prefix_change.cause == "epoch_folded"
    assert "A\n" not in sent(turn)


@FOLDS
def test_in_place_fold_begins_an_epoch(converse: type[Watched]) -> None:
    turn = opened(converse).ask("two", fold=True)
    assert turn.envelope.epoch == 1
    assert str(turn.prefix_change.prefix_change) == "epoch_folded(a.md)"
    assert turn.messages[1].text == f"{stub(turn)}[User query]:\none"
    assert "T\n" not in sent(turn)


def test_in_place_only_listed_changes_begin_epoch(converse: type[Watched]) -> None:
    chat = opened(converse, model="openai:gpt-5", carry_forward="preview")
    chat.ask("changed", attach=[Note(path="a.md", text="B")], at=datetime(2026, 1, 1, tzinfo=UTC))
    chat.ask("much later", attach=[Selection(path="a.md", text="S")], at=datetime(2026, 12, 1, tzinfo=UTC))
    chat.ask("pinned", attach=[Note(path="a.md", text="B", policy="pin")])
    chat.ask("snapshot", attach=[Note(path="c.md", text="C", policy="snapshot")])
    chat.ask("tool", results=[ToolResult(name="t", output="other")])
    chat.ask("the same again", system={"base": "B."}, model="openai:gpt-5", tools=[])
    turn = chat.ask("long note", attach=[Note(path="long.md", text="x" * 9_000)])
    assert turn.envelope.epoch == 0


@pytest.mark.layout("library")
@PROMOTES
def test_in_library_every_turn_begins_an_epoch(converse: type[Watched]) -> None:
    chat = converse()
    epochs = []
    for number in range(3):
        epochs.append(chat.ask("q", attach=[Note(path=f"{number}.md", text="x")]).envelope.epoch)
        chat.reply("r")
    assert epochs == [0, 1, 2]


@FOLDS
def test_after_a_fold_earlier_messages_are_plain_and_the_prefix_grows_again(converse: type[Watched]) -> None:
    chat = opened(converse)
    folded = chat.ask("two", attach=[Note(path="b.md", text="Bee")], fold=True)
    chat.reply("r")
    after = chat.ask("three")
    assert [message.text for message in after.messages[1:3]] == [f"{stub(folded)}[User query]:\none", "r"]
    assert "Bee" in after.messages[3].text
    assert after.messages[: len(folded.messages)] == folded.messages
    assert after.prefix_change.cause == "none"


@FOLDS
def test_update_is_folded_to_newest_text_in_new_epoch(converse: type[Watched]) -> None:
    chat = opened(converse)
    chat.ask("two", attach=[Note(path="a.md", text="newest")])
    chat.reply("r")
    turn = chat.ask("three", fold=True)
    (segment,) = turn.envelope.layer(LayerId.L2).segments
    assert (segment.form, segment.place) == ("full", "system")
    assert sent(turn).count("<path>a.md</path>") == 1
    assert "newest" in turn.messages[0].text


@PROMOTES
def test_drop_takes_effect_in_its_turn_without_handle(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A text"), Note(path="b.md", text="B text")])
    chat.reply("r")
    turn = chat.ask("two", drop=["a.md"])
    assert library(turn) == ["b.md"]
    assert "a.md" not in sent(turn)
    assert turn.envelope.prompt.dropped == ("a.md",)
    assert turn.envelope.warnings == ()


@PROMOTES
def test_dropped_artifact_attached_again_is_new_at_the_end(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A"), Note(path="b.md", text="B")])
    chat.reply("r")
    chat.ask("two", drop=["a.md"])
    chat.reply("r")
    third = chat.ask("three", attach=[Note(path="a.md", text="A")])
    assert attached(third) == [("a.md", "full")]
    chat.reply("r")
    assert library(chat.ask("four")) == ["b.md", "a.md"]


@PROMOTES
def test_dropped_and_reattached_note_is_new(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A"), Note(path="b.md", text="B")])
    chat.reply("r")
    turn = chat.ask("two", drop=["a.md"], attach=[Note(path="a.md", text="A")])
    assert attached(turn) == [("a.md", "full")]
    assert library(turn) == ["b.md"]


@PROMOTES
def test_selection_can_be_dropped_though_not_refetchable(converse: type[Watched]) -> None:
    chat = converse()
    first = chat.ask("one", attach=[Selection(path="a.md", text="chosen words")])
    chat.reply("r")
    ((name, _),) = attached(first)
    assert "chosen words" not in sent(chat.ask("two", drop=[name]))


def test_dropping_unknown_name_warns(converse: type[Watched]) -> None:
    turn = converse().ask("one", drop=["never.md"])
    assert turn.envelope.warnings == ("Nothing to drop: never.md is not in the library.",)


@pytest.mark.layout("library")
@PROMOTES
def test_pinned_artifact_is_not_dropped_with_warning(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A", policy="pin")])
    chat.reply("r")
    turn = chat.ask("two", drop=["a.md"])
    assert library(turn) == ["a.md"]
    assert "pinned" in turn.envelope.warnings[0]
    assert turn.envelope.prompt.dropped == ()


@PROMOTES
def test_pin_lasts_until_the_artifact_is_attached_with_another_policy(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="A", policy="pin")])
    chat.reply("r")
    chat.ask("two", attach=[Note(path="a.md", text="A2")])
    chat.reply("r")
    assert library(chat.ask("three", drop=["a.md"])) == ["a.md"]
    chat.reply("r")
    chat.ask("four", attach=[Note(path="a.md", text="A2", policy="follow")])
    chat.reply("r")
    assert library(chat.ask("five", drop=["a.md"])) == []


@pytest.mark.layout("library")
@PROMOTES
def test_default_policy_follows_newest_text(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="old")])
    chat.reply("r")
    assert attached(chat.ask("two", attach=[Note(path="a.md", text="new")])) == [("a.md", "update")]


@pytest.mark.layout("library")
@PROMOTES
def test_snapshot_keeps_its_first_text(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="first", policy="snapshot")])
    chat.reply("r")
    for given in (None, "snapshot"):
        turn = chat.ask("again", attach=[Note(path="a.md", text="second", policy=given)])
        chat.reply("r")
        assert attached(turn) == [("a.md", "reference")]
        assert "second" not in sent(turn)


@pytest.mark.parametrize("page", [Url, WebTab, YouTube])
def test_page_is_snapshot_unless_attached_to_follow(
    converse: type[Watched], page: type[Url] | type[WebTab] | type[YouTube]
) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[page(url="https://e.org", text="first")])
    chat.reply("r")
    turn = chat.ask("two", attach=[page(url="https://e.org", text="second")])
    assert "second" not in sent(turn)
    assert turn.envelope.warnings == (
        "https://e.org keeps its first text; attach it with policy follow to have the new one.",
    )
    chat.reply("r")
    assert "third" in sent(chat.ask("three", attach=[page(url="https://e.org", text="third", policy="follow")]))
    chat.reply("r")
    assert "fourth" in sent(chat.ask("four", attach=[page(url="https://e.org", text="fourth")]))


@FOLDS
def test_dropped_page_is_new_and_explicit_policy_applies(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    first, second = (Url(url="https://e.org", text=text) for text in ("first", "second"))
    chat.ask("one", attach=[first])
    chat.reply("r")
    assert "second" in sent(chat.ask("two", attach=[second], drop=["https://e.org"]))
    chat.reply("r")
    assert "first" not in sent(chat.ask("three", attach=[first]))
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Url(url="https://e.org", text="first", policy="follow"), first])
    chat.reply("r")
    assert "second" in sent(chat.ask("two", attach=[second]))


def test_pinned_page_stays_pinned_when_reattached(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Url(url="https://e.org", text="first", policy="pin")])
    chat.reply("r")
    assert "second" in sent(chat.ask("two", attach=[Url(url="https://e.org", text="second")]))
    chat.reply("r")
    (warning,) = chat.ask("three", drop=["https://e.org"]).envelope.warnings
    assert "pinned" in warning


@pytest.mark.layout("library")
@PROMOTES
def test_snapshot_follows_again_when_reattached_to_follow(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="first", policy="snapshot")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text="second", policy="follow")])
    assert attached(turn) == [("a.md", "update")]


@pytest.mark.layout("library")
@PROMOTES
def test_library_remembers_first_seen_order_through_updates_and_references(converse: type[Watched]) -> None:
    chat = converse()
    for names in ("ab", "ca", "b", "dc"):
        chat.ask("q", attach=[Note(path=f"{name}.md", text=f"{name} {names}") for name in names])
        chat.reply("r")
    assert library(chat.ask("last")) == ["a.md", "b.md", "c.md", "d.md"]


@FOLDS
def test_other_model_family_recounts_all_tokens(converse: type[Watched]) -> None:
    chat = converse(model="openai:gpt-5", system="B.")
    chat.ask("one " * 50, attach=[Note(path="a.md", text="word " * 300)])
    chat.reply("answer " * 50)
    turn = chat.ask("two", model="google:gemini-3-pro")
    fresh = converse(model="google:gemini-3-pro", system="B.")
    fresh.ask("one " * 50, attach=[Note(path="a.md", text="word " * 300)])
    fresh.reply("answer " * 50)
    assert turn.tokens == fresh.ask("two").tokens


def test_forms_are_unchanged_by_asking_without_a_reply(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    turn = chat.ask("two", attach=[Note(path="a.md", text="A")])
    assert forms(turn, LayerId.L3) == [("a.md", "reference")]
