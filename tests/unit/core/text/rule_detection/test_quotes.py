"""Quotations: text in quotation marks or after >, and whether the text attributes it to the user."""

import pytest

from lamella.core.text.rule_detection import extract_quotes, mask_quotations, normalize_quotes


def quoted(text: str) -> list[str]:
    return [quotation.text for quotation in extract_quotes(text)]


def of_the_user(text: str) -> list[bool]:
    return [quotation.by_user for quotation in extract_quotes(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('He said "one" and "two".', ["one", "two"]),
        ("“curved” and „German“ and „Polish”", ["curved", "German", "Polish"]),
        ("”Swedish” and «French» and »Danish« and »Finnish»", ["Swedish", "French", "Danish", "Finnish"]),
        ("「一」 and 『二』", ["一", "二"]),
        ("“outer «inner» outer”", ["outer «inner» outer", "inner"]),
        ('A screen of 5" and one of 6" wide', []),
        ('a"b"c', []),
        ('the " lone mark', []),
        ('"one\n\nparagraph"', []),
        ('"one\nline"', ["one\nline"]),
        ('「""」', ['""']),
        ("> a line\n>> another", ["a line", "another"]),
        ('   > "marked as well"', ["marked as well"]),
        ("    > four spaces are code", []),
        (">no space", []),
        ("> ", []),
        ("“never closed", []),
        ("never opened“ and “then opened”", ["then opened"]),
    ],
)
def test_quotations_are_found_in_their_order(text: str, found: list[str]) -> None:
    assert quoted(text) == found


@pytest.mark.parametrize(
    ("text", "by_user"),
    [
        ('The user said "yes".', [True]),
        ('"Yes", said the user.', [True]),
        ('The assistant said "yes".', [False]),
        ('"Yes", said the assistant.', [False]),
        ('Somebody said "yes".', [False]),
        ('The user said "yes". Then "no" was said.', [True, False]),
        ('The user said "yes" and the model "no".', [True, False]),
        ('The assistant told the user "yes".', [False]),
        ('"Yes", the assistant told the user.', [False]),
        ('According to the user "yes".', [True]),
        ('The user was told "yes".', [False]),
        ('The user was asked "yes?".', [False]),
        ('"Why?" asked the user.', [True]),
        ('It asked the user "why?".', [False]),
        ('The user interface says "yes".', [False]),
        ('Pengguna berkata "ya".', [True]),
        ('Asisten menjawab pengguna "ya".', [False]),
        ('The user, e.g. in tests, said "yes".', [True]),
        ('The user is here! It says "yes".', [False]),
        ('The user is here… It says "yes".', [False]),
        ("The user said “yes.” No “more” was said.", [True, False]),
        ("The user said “yes.” and “more” later.", [True, True]),
        ("USER: “yes”", [True]),
    ],
)
def test_quotation_is_attributed_to_user_named_in_sentence(text: str, by_user: list[bool]) -> None:
    assert of_the_user(text) == by_user


@pytest.mark.parametrize(
    ("text", "by_user"),
    [
        ('The user said:\n- "one"\n- "two"', [True, True]),
        ('**The user said:**\n1. "one"\n2) "two"', [True, True]),
        ('# What the user said\n- "one"', [True]),
        ('The assistant said:\n- "one"', [False]),
        ('- "one"', [False]),
        ('The user said:\n- "one"\n- the model said "two"', [True, False]),
        ('The user said something\n- "one"', [False]),
        ("The user said:\n\n> one", [True]),
        ('The user said:\n- "one."\n\nAnd then:\n- "two"', [True, False]),
        ('# The user\n"one"', [True]),
        ('The user\nsaid "one"', [True]),
        ('The user said:\n- "one"\n"two"', [True, True]),
        ('The user said:\n- "one"\n  and "two"\n- "three"', [True, True, True]),
        ('The user said:\n> one\n"two"', [True, True]),
        ('The user said:\n- "one"\nThe model agreed.', [True]),
        ('The user said:\n- "one"\nThe model said "two".', [True, False]),
        ('The model said:\n- "one"\n"two"', [False, False]),
        ('The user said:\n- "one"\n\n"two"', [True, True]),
        ('The user said:\n- "one"\n\n  It was "two".', [True, True]),
        ('The user said:\n- "one"\n\nThen "two" was made.', [True, False]),
        ('The user said:\n- "one"\n# Files\n- "two"', [True, False]),
        ('The user said:\n\n"one"', [True]),
        ('The user said:\n\nFirst "one".\nAlso "two".\n\nThen "three".', [True, True, False]),
    ],
)
def test_quoted_list_is_attributed_by_preceding_line(text: str, by_user: list[bool]) -> None:
    assert of_the_user(text) == by_user


def test_nested_quotation_has_same_author() -> None:
    assert of_the_user("The user said “a «b» c”. The model said “d «e»”.") == [True, True, False, False]


def test_text_with_placeholder_character_is_parsed_the_same() -> None:
    assert of_the_user('The model\0 said so. The user said "yes".') == [True]


@pytest.mark.parametrize(
    "text",
    [
        'It said \u201cyes and no" there.',
        'It said "yes and no\u201d there.',
        "It said ``yes and no\u2019\u2019 there.",
        "It said &quot;yes and no&quot; there.",
        "It said <q>yes and no</q> there.",
        "It said \u2033yes and no\u2033 there.",
        "It said \u201fyes and no\u201d there.",
    ],
)
def test_mixed_quotation_marks_are_normalized(text: str) -> None:
    assert normalize_quotes(text) == 'It said "yes and no" there.'


def test_unclosed_quotation_ends_with_line_and_fences_stay() -> None:
    assert normalize_quotes('It said "yes and\nno.') == 'It said "yes and"\nno.'
    assert normalize_quotes('A 5" disk.\n```sh\nmake\n```') == 'A 5" disk.\n```sh\nmake\n```'


def test_quoted_source_text_is_masked_with_its_marks() -> None:
    masked = mask_quotations("“You” said “go on”. You go on.", should_mask=lambda quoted: quoted == "go on")
    assert masked == "You said \0\0\0\0\0. You go on."
