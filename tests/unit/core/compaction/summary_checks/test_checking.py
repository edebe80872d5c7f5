"""Checking a summary: smaller, within its limit, and quoting only existing text."""

import re
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.compaction.summary_checks import find_summary_problem

USER = "Please use tabs everywhere,\nand never delete   my old notes. Also no emoji."
REPLY = "I will use spaces in YAML files, since tabs are not allowed there."


def check(text: str, *, tokens: int = 50, replaced_tokens: int = 1_000, max_tokens: int = 300) -> str | None:
    return find_summary_problem(
        text,
        replaced_texts=[USER, REPLY],
        user_texts=[USER],
        tokens=tokens,
        replaced_tokens=replaced_tokens,
        max_tokens=max_tokens,
    )


def test_short_summary_without_quotations_is_accepted() -> None:
    assert check("The user wants tabs; YAML keeps its spaces.") is None


@pytest.mark.parametrize(
    ("text", "accepted"),
    [("It began on 2026-11-17T10:30.", True), ("It began on 2026-11-18T10:30.", False)],
)
def test_date_and_time_may_be_joined(text: str, accepted: bool) -> None:  # noqa: FBT001
    said = ["We met on 2026-11-17, and began at 10:30."]
    found = find_summary_problem(
        text, replaced_texts=said, user_texts=said, tokens=5, replaced_tokens=50, max_tokens=50
    )
    assert (found is None) is accepted


@pytest.mark.parametrize("word", ["д\u0061л", "Д\u0041Л"])
def test_word_of_two_scripts_is_rejected_in_any_case(word: str) -> None:
    said = ["Да, дал. ДАЛ."]
    found = find_summary_problem(
        word, replaced_texts=said, user_texts=said, tokens=5, replaced_tokens=50, max_tokens=50
    )
    assert found == f"The summary writes a word in letters of two scripts: “{word}”"


@pytest.mark.parametrize("text", ["", "  \n\t ", "- \n- "])
def test_blank_summary_is_refused(text: str) -> None:
    assert check(text) == "The summary is blank."


def test_summary_above_its_limit_is_rejected() -> None:
    assert check("Tabs.", tokens=300) is None
    assert check("Tabs.", tokens=1_301, replaced_tokens=9_000, max_tokens=1_300) == (
        "The summary has 1,301 tokens; at most 1,300 are allowed."
    )


@pytest.mark.parametrize("tokens", [200, 201])
def test_summary_not_smaller_than_original_is_rejected(tokens: int) -> None:
    assert check("Tabs.", tokens=tokens, replaced_tokens=200) == (
        f"The summary has {tokens} tokens, which is not less than the 200 it replaces."
    )
    assert check("Tabs.", tokens=199, replaced_tokens=200) is None


def test_size_rejection_precedes_wording_rejection() -> None:
    lie = 'The user said: "Delete every note."'
    assert check(lie, tokens=14, replaced_tokens=10) == (
        "The summary has 14 tokens, which is not less than the 10 it replaces."
    )
    assert "quotes the user" in (check(lie, tokens=9, replaced_tokens=10) or "")


@pytest.mark.parametrize(
    ("opening", "closing"), [tuple(pair) for pair in ['""', "“”", "„“", "„”", "«»", "»«", "””", "「」", "『』"]]
)
def test_every_quotation_mark_requires_exact_words(opening: str, closing: str) -> None:
    assert check(f"It was decided: {opening}use spaces in YAML files{closing}.") is None
    assert check(f"It was decided: {opening}use spaces in all files{closing}.") == (
        "The summary quotes what stands in none of the messages it replaces: “use spaces in all files”"
    )


def test_block_quotes_require_exact_words() -> None:
    assert check("Decided:\n\n> I will use spaces\n> in YAML files, since\n") is None
    assert check("Decided:\n\n> I will use spaces\n> in all files, since\n") is not None
    assert check(">half of the files are done, and all of them are fine.") is None


def test_white_space_does_not_matter_and_words_do() -> None:
    assert check('It said "use  tabs everywhere, and\nnever delete my old notes" above.') is None
    assert check('It said "Use tabs everywhere, and never" above.') is not None


def test_quotation_may_not_span_messages() -> None:
    assert check('It said "Also no emoji. I will use spaces" above.') is not None


def test_full_stop_may_be_inside_quotation() -> None:
    assert check('It said "use tabs everywhere, and never delete." Later came YAML.') is None
    assert check('It said "use tabs everywhere, and never delete!" Later came YAML.') is not None


def test_one_or_two_quoted_words_are_term_unless_attributed_to_user() -> None:
    assert check('Files are in "strict mode" now.') is None
    assert check('The user wants "strict mode".') == (
        "The summary quotes the user with words the user did not type: “strict mode”"
    )
    assert check('The user wants "no emoji".') is None


def test_in_scripts_without_spaces_every_character_is_a_word() -> None:
    assert check("决定“使用空格”。") is not None
    assert check("They decided on “空格” and went on.") is None


@pytest.mark.parametrize(
    "sentence",
    [
        "The user said {}.",
        "The user asked: {}",
        "User: {}",
        "The user's wish is {}, as before.",
        "Pengguna meminta {}.",
        "Menurut pengguna, {}.",
        "According to the user, {}.",
        "{}, said the user.",
        "{} was what the user asked for.",
        "The assistant proposed spaces, and the user answered {}.",
        "The user was clear (e.g. early on) and wrote {}.",
        "The user first said “use tabs everywhere.” Then the user said {}.",
        "The user\nsaid {}.",
        "The user asked for:\n\n- tabs\n- {}\n",
        "## User wishes\n\n1. {}\n",
        "**The user said:**\n\n> {}",
        "The user said:\n> tabs\n> {}",
    ],
)
def test_words_attributed_to_user_must_be_the_users(sentence: str) -> None:
    assert check(sentence.format("“never delete my old notes”")) is None
    refused = check(sentence.format("“use spaces in YAML files”"))
    assert refused == "The summary quotes the user with words the user did not type: “use spaces in YAML files”"


@pytest.mark.parametrize(
    "sentence",
    [
        "The assistant said {}.",
        "The user asked for tabs. The reply was {}.",
        "The user asked “use tabs everywhere” and the assistant answered {}.",
        "The user wrote “never delete my old notes.” The assistant replied {}.",
        "The assistant told the user {}.",
        "The user was told {}.",
        "Asisten memberi tahu pengguna {}.",
        "{}, the assistant told the user.",
        "In the user guide it says {}.",
        "The user asked for tabs.\n\nDecided:\n\n- {}",
        "The user asked for:\n\n- tabs\n\nDecided: {}",
    ],
)
def test_words_of_others_may_come_from_any_message(sentence: str) -> None:
    assert check(sentence.format("“use spaces in YAML files”")) is None


def test_inch_mark_opens_no_quotation() -> None:
    assert check('A 5" screen and a 6" screen were compared, and "tabs are not allowed there" too.') is None
    assert check('A 5" screen was compared, and "tabs are allowed everywhere" too.') is not None


def test_quotations_inside_quotations_are_checked_as_well() -> None:
    assert check("It said “tabs «are not allowed» there” above.") is not None
    assert check("It said “tabs are not allowed there” and «use spaces in YAML» above.") is None


def test_long_misquotation_is_shown_in_part_and_on_one_line() -> None:
    refused = check("It said “" + "wrong\nwords " * 30 + "” above.")
    assert refused is not None
    assert refused.endswith("…”")
    assert "\n" not in refused
    assert len(refused) < 140


PIECES = [
    '"',
    "“",
    "”",
    "„",
    "«",
    "»",
    "> ",
    "\n",
    "\n\n",
    " ",
    ". ",
    "The user said ",
    "a b c",
    "use tabs",
    "- ",
    ": ",
]
texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=60)


@steady
@given(texts)
@example('“"”"')
def test_refusal_is_always_one_line(text: str) -> None:
    refused = find_summary_problem(
        text, replaced_texts=[""], user_texts=[""], tokens=1, replaced_tokens=2, max_tokens=2
    )
    assert refused is None or len(refused.splitlines()) == 1


@steady
@given(st.text(alphabet="abc d\n.,", min_size=1, max_size=60), st.data())
def test_any_span_of_whole_words_of_the_users_text_may_be_quoted(typed: str, data: st.DataObject) -> None:
    # A part of a word is another name or path: "a.c" is not a quotation of "aa.c".
    words = list(re.finditer(r"\S+", typed))
    first = data.draw(st.integers(0, max(0, len(words) - 1)))
    last = data.draw(st.integers(first, max(first, len(words) - 1)))
    span = typed[words[first].start() : words[last].end()] if words else ""
    summary = f"The user said “{span}” once."
    assert (
        find_summary_problem(
            summary, replaced_texts=[typed], user_texts=[typed], tokens=1, replaced_tokens=2, max_tokens=2
        )
        is None
    )


@pytest.mark.parametrize(
    "text",
    ["Der Nutzer will Tabs und die Notizen bleiben, wie sie sind.", "ユーザーはタブを使い、メモを消さない。"],
)
def test_translated_summary_may_be_in_other_language(text: str) -> None:
    replaced = [USER, REPLY, "That is what the user wants and it is not to be changed by anybody."]
    check = partial(
        find_summary_problem,
        text,
        replaced_texts=replaced,
        user_texts=[USER],
        tokens=1,
        replaced_tokens=99,
        max_tokens=9,
    )
    assert check() is not None
    assert check(translated=True) is None


HOSTILE = [
    '"',
    '"a',
    "“",
    "“a”",
    "“a ”. ",
    "> a\n",
    "user ",
    "- a\n",
    ". ",
    "a",
    "\n",
    "told the user ",
    "user:\n",
    "\0",
]


def test_megabyte_of_hostile_text_is_checked_in_one_pass() -> None:
    text = "\n\n".join(piece * (70_000 // len(piece)) for piece in HOSTILE)
    text += "\n\nThe user said “c”."
    assert len(text) > 970_000
    assert (
        find_summary_problem(text, replaced_texts=["a"], user_texts=["b"], tokens=1, replaced_tokens=2, max_tokens=2)
        is not None
    )


def test_attributed_words_without_marks_require_exact_words() -> None:
    assert check("The user said: delete every note.") == (
        "The summary quotes the user with words the user did not type: “delete every note”"
    )
