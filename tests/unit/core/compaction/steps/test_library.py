"""Library entries shrink to an outline, then to one line; both name the way back, and attaching restores the text."""

import pytest
from tests.unit.core.compaction.stories import (
    IN_PLACE,
    NOW,
    Story,
    attaching,
    make_rules,
    names,
    note,
    removed,
    selection,
)

from lamella.core.artifacts.model import Artifact, ArtifactKind, AttachmentPolicy
from lamella.core.compaction.rules import CompactionConfig, KindCompactionConfig
from lamella.core.compaction.steps import shrink_to_handles, shrink_to_previews
from lamella.core.log.receipts import CompactionStepName
from lamella.core.log.turn import ArtifactForm, AttachmentMode, LayoutMode, TurnSettings
from lamella.core.prompt.layers.library import MAX_HANDLE_LIST_TOKENS
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace
from lamella.errors import SettingError

LONG = "# Part one\n\n" + "first words " * 500 + "\n# Part two\n\n" + "last words " * 500
PREVIEW = (CompactionStepName.PREVIEW,)
HANDLE = (CompactionStepName.HANDLE,)


def shelved(
    *artifacts: Artifact,
    chain: CompactionConfig,
    turns: int = 0,
    layout: LayoutMode = LayoutMode.IN_PLACE,
    linger: int = 2,
    attachments: AttachmentMode = AttachmentMode.TURN,
) -> Story:
    """A conversation that attached these in its first turn, and so many turns after it."""
    turn_settings = TurnSettings(layout=layout, linger=linger, attachments=attachments)
    story = Story(make_rules(chain), turn_settings).say("Read this.", "I did.", attaching(*artifacts))
    for number in range(turns):
        story.say(f"Question {number}?", "Because.")
    return story


def forms(story: Story) -> dict[str, ArtifactForm]:
    return {segment.id: segment.form for segment in story.ask().layer(LayerId.L2).segments}


# `auto` has a list of its own, in the message of the turn that cuts.
SHELVING = [layout for layout in LayoutMode if layout is not LayoutMode.AUTO]


@pytest.mark.parametrize("layout", list(LayoutMode))
def test_a_preview_keeps_the_headings_and_names_the_way_back(layout: LayoutMode) -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=PREVIEW), layout=layout)
    receipt = story.compact()
    assert names(receipt) == ["preview"]
    assert removed(receipt, "preview") == ["long.md"]
    sent = story.sent()
    assert "# Part one" in sent
    assert "# Part two" in sent
    assert "Attach long.md again for the whole text." in sent
    assert len(sent) < len(LONG) / 2


@pytest.mark.parametrize("layout", SHELVING)
def test_a_handle_is_a_line_of_one_list_with_the_way_back(layout: LayoutMode) -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=3, layout=layout)
    story.compact()
    begins = "<left_out>\nAttach one again for its text; newest first:\n"
    assert f"{begins}- long.md\n</left_out>\n" in story.sent()
    assert forms(story) == {"long.md": ArtifactForm.HANDLE}


@pytest.mark.parametrize("layout", SHELVING)
def test_all_handles_together_have_a_bound_the_newest_first_and_the_rest_is_counted(layout: LayoutMode) -> None:
    story = Story(make_rules(CompactionConfig(steps=HANDLE)), terms=replace(IN_PLACE, layout=layout))
    for number in range(120):
        story.say(f"Read {number}.", "I did.", attaching(note(f"notes/{number:03}.md", f"Text {number}. " * 20)))
    story.compact()
    sent = story.sent()
    listed = sent.partition("<left_out>")[2].partition("</left_out>")[0]
    shown = [line for line in listed.split("\n") if line.startswith("- ")]
    # What was attached in the last turns is in the working set.
    assert shown[0] == "- notes/117.md"
    assert shown == sorted(shown, reverse=True)
    assert f"and {118 - len(shown):,} more; recall finds them." in listed
    beyond = [s for s in story.ask().segments(LayerId.L2) if s.form is ArtifactForm.HANDLE and s.place is None]
    assert len(beyond) == 118 - len(shown)
    assert {segment.tokens for segment in beyond} == {0}
    assert (
        sum(s.tokens for s in story.ask().segments(LayerId.L2) if s.form is ArtifactForm.HANDLE)
        <= MAX_HANDLE_LIST_TOKENS
    )
    story.say("Read one of them again.", "I did.", attaching(note("notes/117.md", "Text 117. " * 20)))
    story.say("Fold.", "Yes.", replace(NOW, fold=True))
    assert "- notes/117.md\n" not in story.sent()
    assert "- notes/116.md\n" in story.sent()


def test_a_receipt_of_the_first_chain_makes_the_handles_it_made_then() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=3)
    receipt = story.plan().receipt
    assert receipt is not None
    story.apply(replace(receipt, chain_version=1))
    line = f"long.md: long.md, {len(LONG):,} characters, is left out. Attach long.md again for its text."
    assert f"<handle>{line}</handle>\n" in story.sent()


@pytest.mark.parametrize("layout", list(LayoutMode))
@pytest.mark.parametrize("step", [CompactionStepName.PREVIEW, CompactionStepName.HANDLE])
def test_attached_again_a_text_is_back_byte_for_byte(layout: LayoutMode, step: CompactionStepName) -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=(step,)), turns=3, layout=layout)
    story.compact()
    assert LONG not in story.sent()
    again = attaching(note("long.md", LONG))
    assert LONG in story.sent(again)
    story.say("Again.", "Yes.", again).say("More?", "Yes.")
    assert LONG in story.sent()


def test_only_a_long_text_becomes_an_outline() -> None:
    short = note("short.md", "# Heading\n\n" + "x" * 4_989)
    assert len(short.text) == 5_000
    story = shelved(short, note("longer.md", short.text + "x"), chain=CompactionConfig(steps=PREVIEW))
    assert removed(story.plan().receipt, "preview") == ["longer.md"]


def test_a_text_becomes_a_handle_only_once_it_lingers_no_more() -> None:
    for linger, turns, expected in ((2, 0, []), (2, 1, []), (2, 2, ["handle"]), (0, 0, ["handle"]), (3, 2, [])):
        story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=turns, linger=linger)
        assert names(story.plan().receipt) == expected


def test_what_is_attached_until_it_is_detached_becomes_no_handle_before() -> None:
    sticky = AttachmentMode.STICKY
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=8, attachments=sticky)
    without = replace(NOW, detach=("long.md",))
    assert names(story.plan().receipt) == []
    assert names(story.plan(turn=without).receipt) == ["handle"]
    story.say("Without it.", "Yes.", without)
    assert names(story.plan().receipt) == ["handle"]


def test_a_detached_text_does_not_linger() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE))
    assert names(story.plan().receipt) == []
    assert names(story.plan(turn=replace(NOW, detach=("long.md",))).receipt) == ["handle"]


def test_attaching_begins_the_turns_anew() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=3)
    story.say("Again.", "Yes.", attaching(note("long.md", LONG)))
    assert names(story.plan().receipt) == []


def test_the_oldest_goes_first_and_no_more_than_needed() -> None:
    story = shelved(note("a.md", LONG), note("b.md", LONG + "b"), chain=CompactionConfig(steps=PREVIEW))
    assert removed(story.plan(goal=story.tokens() - 100).receipt, "preview") == ["a.md"]
    assert removed(story.plan(goal=0).receipt, "preview") == ["a.md", "b.md"]


def test_pins_and_text_that_cannot_be_fetched_again_stay_as_they_are() -> None:
    kept = (note("pinned.md", LONG, policy=AttachmentPolicy.PIN), selection("cited.md", LONG))
    story = shelved(*kept, chain=CompactionConfig(), turns=8)
    story.compact()
    assert set(forms(story).values()) == {ArtifactForm.FULL}
    assert story.sent().count(LONG) == 2


def test_what_is_attached_now_does_not_shrink() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(), turns=8)
    receipt = story.plan(turn=attaching(note("long.md", LONG))).receipt
    assert "long.md" not in [*removed(receipt, "preview"), *removed(receipt, "handle")]


def test_an_outline_may_become_a_handle_later() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=(*PREVIEW, *HANDLE)))
    story.compact()
    assert forms(story) == {"long.md": ArtifactForm.PREVIEW}
    for number in range(3):
        story.say(f"Question {number}?", "Because.")
    story.compact()
    assert forms(story) == {"long.md": ArtifactForm.HANDLE}


def test_a_shrunk_text_stays_small_in_the_turns_that_follow() -> None:
    for layout in LayoutMode:
        story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=3, layout=layout)
        story.compact()
        story.say("More?", "Yes.").say("And more?", "Yes.")
        assert forms(story) == {"long.md": ArtifactForm.HANDLE}


def test_kinds_have_their_own_rules() -> None:
    files = (note("a.md", LONG), note("b.pdf", LONG, kind=ArtifactKind.PDF), note("c.py", LONG, kind=ArtifactKind.CODE))
    kinds = {
        ArtifactKind.PDF: KindCompactionConfig(shrink=False),
        ArtifactKind.CODE: KindCompactionConfig(preview_over=100_000),
    }
    story = shelved(*files, chain=CompactionConfig(steps=PREVIEW, kinds=kinds))
    assert removed(story.plan().receipt, "preview") == ["a.md"]
    soon = CompactionConfig(
        steps=HANDLE,
        default_kind=KindCompactionConfig(handle_after=9),
        kinds={ArtifactKind.PDF: KindCompactionConfig(handle_after=0)},
    )
    assert removed(shelved(*files, chain=soon, turns=1).plan().receipt, "handle") == ["b.pdf"]


def test_rules_below_nothing_are_refused() -> None:
    with pytest.raises(SettingError, match="below 0"):
        KindCompactionConfig(preview_over=-1)
    with pytest.raises(SettingError, match="below 0"):
        KindCompactionConfig(handle_after=-1)


def test_an_update_to_a_handle_brings_the_new_text_whole() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=3)
    story.compact()
    changed = LONG.replace("last", "newest")
    assert changed in story.sent(attaching(note("long.md", changed)))


def test_what_the_user_drops_in_this_turn_does_not_keep_others_from_shrinking() -> None:
    story = shelved(note("a.md", LONG), note("b.md", LONG + "b"), chain=CompactionConfig(steps=PREVIEW))
    turn = replace(NOW, drop=("a.md",))
    goal = story.tokens(turn) - 100
    assert removed(story.plan(turn=turn, goal=goal).receipt, "preview") == ["b.md"]


def test_a_step_takes_the_oldest_entries_until_enough_is_freed_and_none_where_nothing_is() -> None:
    story = shelved(note("a.md", LONG), note("b.md", LONG + "b"), chain=CompactionConfig(), turns=4)
    tokens = story.draft().tokens
    for cut, name in ((shrink_to_previews, CompactionStepName.PREVIEW), (shrink_to_handles, CompactionStepName.HANDLE)):
        little, much = cut(story.draft(goal=tokens - 1)), cut(story.draft(goal=0))
        assert little is not None
        assert much is not None
        assert (little.name, little.removed, much.removed) == (name, ("a.md",), ("a.md", "b.md"))
        assert cut(Story().draft()) is None
