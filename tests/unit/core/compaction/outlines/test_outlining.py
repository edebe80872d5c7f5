"""Outlining what is attached now: shared fairly, named where that is too little, never what cannot be fetched again."""

from tests.unit.core.compaction.stories import Story, attaching, make_rules, note, result, selection

from lamella.core.artifacts.model import NAMED_ONLY, AttachmentPolicy
from lamella.core.budget import TokenBudget
from lamella.core.compaction.outlines import fixed_parts_exceed_hard_threshold, outline_attachments, stub_attachments
from lamella.core.log.turn import Turn
from lamella.core.values import replace

BUDGET = TokenBudget(window=1_000, reserve=0)
LONG = "# One\n\n" + "first words " * 400 + "\n# Two\n\n" + "last words " * 400


def outlined(turn: Turn) -> Turn:
    story = Story(make_rules(budget=BUDGET))
    return outline_attachments(story.bind(turn), story.open(turn), BUDGET)


def named(turn: Turn, *, only: set[str] | None = None) -> Turn:
    story = Story(make_rules(budget=BUDGET))
    return stub_attachments(story.bind(turn), story.open(turn), only_ids=only)


def test_turn_that_fits_alone_is_not_outlined() -> None:
    story = Story(make_rules(budget=BUDGET))
    turn = attaching(note("a.md", "words " * 400))
    assert not fixed_parts_exceed_hard_threshold(story.open(turn), BUDGET)
    assert outlined(turn).attached[0].condensed is not None
    assert fixed_parts_exceed_hard_threshold(story.open(attaching(note("a.md", "words " * 4_000))), BUDGET)


def test_long_attachments_share_space_and_short_ones_stay_whole() -> None:
    turn = attaching(note("a.md", LONG), note("b.md", LONG), note("short.md", "short"), result("x", LONG))
    made = outlined(replace(turn, text="Why?"))
    a, b, short = (one.condensed for one in made.attached)
    assert short is None
    assert a == b
    assert a is not None
    assert a.startswith("# One\nfirst words")
    assert "characters are left out.]" in a
    assert made.tool_results[0].condensed is not None
    told = {warning.partition(" is sent as its outline: ")[0] for warning in made.warnings}
    assert told == {"a.md", "b.md", made.tool_results[0].id}
    assert Story(make_rules(budget=BUDGET)).ask(made).tokens.total <= BUDGET.current_turn_limit + 60


def test_pinned_and_unrecoverable_texts_are_not_outlined() -> None:
    for kept in (note("a.md", LONG, policy=AttachmentPolicy.PIN), selection("a.md", LONG)):
        turn = attaching(kept)
        assert outlined(turn) == Story().bind(turn)


def test_attachment_without_space_is_named_only() -> None:
    made = outlined(replace(attaching(note("a.md", LONG)), text="x" * 4 * 900))
    assert made.attached[0].condensed == NAMED_ONLY
    assert made.warnings == ("There is no room for the text of what is attached, so it is only named: a.md.",)


def test_outlines_lose_section_text_before_headings() -> None:
    text = "".join(f"# Part {number}\n\n{'some words ' * 60}\n" for number in range(8))
    (made,) = outlined(attaching(note("a.md", text))).attached
    assert made.condensed is not None
    shown = made.condensed.split("\n")
    assert [line for line in shown if line.startswith("#")] == [f"# Part {number}" for number in range(8)]
    (bare,) = outlined(replace(attaching(note("a.md", text)), text="x" * 4 * 300)).attached
    assert bare.condensed is not None
    assert bare.condensed.split("\n")[:-1] == [f"# Part {number}" for number in range(8)]


def test_short_attachments_are_shown_and_others_named() -> None:
    notes = [note(f"{number}.md", LONG if number else "Short.") for number in range(40)]
    made = outlined(attaching(*notes))
    shown = [one.id for one in made.attached if one.condensed != NAMED_ONLY]
    assert "0.md" in shown
    assert 1 < len(shown) < 6
    (told,) = [warning for warning in made.warnings if "only named" in warning]
    assert told.endswith(f" and {40 - len(shown) - 10} more.")
    sent = Story(make_rules(budget=BUDGET)).ask(made)
    assert sent.tokens.total <= BUDGET.current_turn_limit + 60
    listed = sent.messages[-1].text.partition("<left_out>")[2].partition("</left_out>")[0]
    assert f"- {made.attached[-1].id}\n" in listed or " more; recall finds them." in listed


def test_list_names_what_fits_and_counts_the_rest() -> None:
    made = named(attaching(*[note(f"a rather long name of a note {number}.md", "Text.") for number in range(90)]))
    text = Story(make_rules(budget=BUDGET)).ask(made).messages[-1].text
    lines = [line for line in text.split("\n") if line.startswith("- ")]
    assert 10 < len(lines) < 40
    assert f"and {90 - len(lines)} more; recall finds them." in text


def test_only_selected_attachments_are_named() -> None:
    made = named(attaching(note("a.md", LONG), note("b.md", LONG)), only={"b.md"})
    assert [one.condensed == NAMED_ONLY for one in made.attached] == [False, True]
    assert named(attaching(selection("a.md", LONG))).warnings == ()
