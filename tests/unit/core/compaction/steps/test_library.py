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
def test_preview_keeps_headings_and_names_way_to_full_text(layout: LayoutMode) -> None:
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
def test_handle_is_one_line_of_list(layout: LayoutMode) -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=3, layout=layout)
    story.compact()
    begins = "<left_out>\nAttach one again for its text; newest first:\n"
    assert f"{begins}- long.md\n</left_out>\n" in story.sent()
    assert forms(story) == {"long.md": ArtifactForm.HANDLE}


@pytest.mark.parametrize("layout", SHELVING)
def test_handle_list_is_bounded_with_newest_first_and_rest_counted(layout: LayoutMode) -> None:
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


def test_receipt_of_first_chain_makes_its_old_handles() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=3)
    receipt = story.plan().receipt
    assert receipt is not None
    story.apply(replace(receipt, chain_version=1))
    line = f"long.md: long.md, {len(LONG):,} characters, is left out. Attach long.md again for its text."
    assert f"<handle>{line}</handle>\n" in story.sent()


@pytest.mark.parametrize("layout", list(LayoutMode))
@pytest.mark.parametrize("step", [CompactionStepName.PREVIEW, CompactionStepName.HANDLE])
def test_reattached_text_is_restored_byte_for_byte(layout: LayoutMode, step: CompactionStepName) -> None:
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


def test_text_becomes_handle_after_retention() -> None:
    for linger, turns, expected in ((2, 0, []), (2, 1, []), (2, 2, ["handle"]), (0, 0, ["handle"]), (3, 2, [])):
        story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=turns, linger=linger)
        assert names(story.plan().receipt) == expected


def test_sticky_attachment_becomes_handle_only_after_detach() -> None:
    sticky = AttachmentMode.STICKY
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=8, attachments=sticky)
    without = replace(NOW, detach=("long.md",))
    assert names(story.plan().receipt) == []
    assert names(story.plan(turn=without).receipt) == ["handle"]
    story.say("Without it.", "Yes.", without)
    assert names(story.plan().receipt) == ["handle"]


def test_detached_text_has_no_retention() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE))
    assert names(story.plan().receipt) == []
    assert names(story.plan(turn=replace(NOW, detach=("long.md",))).receipt) == ["handle"]


def test_reattachment_restarts_retention() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=3)
    story.say("Again.", "Yes.", attaching(note("long.md", LONG)))
    assert names(story.plan().receipt) == []


def test_oldest_entry_shrinks_first_and_only_as_needed() -> None:
    story = shelved(note("a.md", LONG), note("b.md", LONG + "b"), chain=CompactionConfig(steps=PREVIEW))
    assert removed(story.plan(goal=story.tokens() - 100).receipt, "preview") == ["a.md"]
    assert removed(story.plan(goal=0).receipt, "preview") == ["a.md", "b.md"]


def test_pinned_and_unrecoverable_texts_do_not_shrink() -> None:
    kept = (note("pinned.md", LONG, policy=AttachmentPolicy.PIN), selection("cited.md", LONG))
    story = shelved(*kept, chain=CompactionConfig(), turns=8)
    story.compact()
    assert set(forms(story).values()) == {ArtifactForm.FULL}
    assert story.sent().count(LONG) == 2


def test_current_attachment_does_not_shrink() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(), turns=8)
    receipt = story.plan(turn=attaching(note("long.md", LONG))).receipt
    assert "long.md" not in [*removed(receipt, "preview"), *removed(receipt, "handle")]


def test_outline_may_become_a_handle_later() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=(*PREVIEW, *HANDLE)))
    story.compact()
    assert forms(story) == {"long.md": ArtifactForm.PREVIEW}
    for number in range(3):
        story.say(f"Question {number}?", "Because.")
    story.compact()
    assert forms(story) == {"long.md": ArtifactForm.HANDLE}


def test_shrunk_text_stays_small_in_later_turns() -> None:
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


def test_negative_rules_are_refused() -> None:
    with pytest.raises(SettingError, match="below 0"):
        KindCompactionConfig(preview_over=-1)
    with pytest.raises(SettingError, match="below 0"):
        KindCompactionConfig(handle_after=-1)


def test_update_of_handle_has_full_new_text() -> None:
    story = shelved(note("long.md", LONG), chain=CompactionConfig(steps=HANDLE), turns=3)
    story.compact()
    changed = LONG.replace("last", "newest")
    assert changed in story.sent(attaching(note("long.md", changed)))


def test_dropped_entry_does_not_prevent_others_from_shrinking() -> None:
    story = shelved(note("a.md", LONG), note("b.md", LONG + "b"), chain=CompactionConfig(steps=PREVIEW))
    turn = replace(NOW, drop=("a.md",))
    goal = story.tokens(turn) - 100
    assert removed(story.plan(turn=turn, goal=goal).receipt, "preview") == ["b.md"]


def test_step_takes_oldest_entries_until_enough() -> None:
    story = shelved(note("a.md", LONG), note("b.md", LONG + "b"), chain=CompactionConfig(), turns=4)
    tokens = story.draft().tokens
    for cut, name in ((shrink_to_previews, CompactionStepName.PREVIEW), (shrink_to_handles, CompactionStepName.HANDLE)):
        little, much = cut(story.draft(goal=tokens - 1)), cut(story.draft(goal=0))
        assert little is not None
        assert much is not None
        assert (little.name, little.removed, much.removed) == (name, ("a.md",), ("a.md", "b.md"))
        assert cut(Story().draft()) is None
