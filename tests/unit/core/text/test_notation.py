"""Notation: the same number, amount or date is the same, however it is written."""

import pytest

from lamella.core.text.notation import (
    canonical_values,
    collect_canonical_values,
    iter_large_spelled_numbers,
    normalize_characters,
    normalize_digits_and_dashes,
)


@pytest.mark.parametrize(
    "same",
    [
        ("1,250", "1250", "1.250", "1 250", "1'250", "1_250", "\u0661\u0662\u0665\u0660"),
        ("1,250.50", "1.250,50", "1250.5"),
        ("3.5", "3,5"),
        ("-5", "\u22125", "\u20115"),
        ("1e6", "1,000,000", "1 million", "1 juta"),
        ("2B", "2 billion", "2 miliar", "2,000,000,000"),
        ("3 trillion", "3 triliun", "3,000,000,000,000"),
        ("1,250 euros", "1.250 euro", "€1,250", "EUR 1250"),
        ("Rp 12.500", "12,500 rupiah", "Rp12.500"),
        ("42 seconds", "42 s", "42 detik"),
        ("5k", "5 thousand", "5 ribu", "5,000"),
        ("14 Maret 2026", "March 14, 2026", "2026-03-14", "14 March 2026", "2026/03/14", "2026年3月14日"),
        ("09:30", "9:30", "9:30 AM"),
        ("9 pm", "21:00"),
        ("3 May", "May 3rd", "3 Mei"),
    ],
)
def test_equivalent_notations_have_same_value(same: tuple[str, ...]) -> None:
    assert len({canonical_values(one)[0] for one in same}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,250", "1.25"), ("1,250", "125"), ("-5", "5"), ("42 seconds", "42 minutes"), ("9 am", "9 pm"),
        ("$5", "€5"), ("14 Maret 2026", "14 Maret 2027"), ("3 May", "4 May"), ("12,500", "12,5"),
    ],
)  # fmt: skip
def test_different_values_are_distinct(one: str, other: str) -> None:
    assert not {*canonical_values(one)} & {*canonical_values(other)}


@pytest.mark.parametrize(
    "token", ["K-37", "2.4.1", "src/app.py", "", "31 Foo 2026", "32 May 2026", "2026-13-01", "1" * 40]
)
def test_token_that_is_no_number_or_date_has_no_value(token: str) -> None:
    assert [key for key in canonical_values(token) if key != "31 foo"] == []


def test_german_dates_are_parsed() -> None:
    assert canonical_values("14. März 2026") == canonical_values("March 14, 2026") == ("2026-03-14",)
    assert canonical_values("3. Dez 2025") == ("2025-12-03",)


def test_fifteenth_is_the_day_of_a_date_or_a_number() -> None:
    assert {*canonical_values("15th")} & collect_canonical_values(["15 March 2026"])
    assert {*canonical_values("15th")} & collect_canonical_values(["15"])
    assert not {*canonical_values("16th")} & collect_canonical_values(["15 March 2026", "2026"])


def test_ambiguous_date_has_both_orders() -> None:
    assert canonical_values("03/04/2026") == ("2026-04-03", "2026-03-04")


def test_date_includes_its_parts_and_amount_its_number() -> None:
    assert collect_canonical_values(["2026-03-14 09:30", "12 MB"]) == {
        *("2026-03-14T09:30", "T09:30", "2026-03-14", "2026-03", "2026", "-03-14", "14th", "12 mb", "12")
    }


def test_number_words_are_parsed_from_thirteen_on() -> None:
    told = "five thousand files, nine people, twenty-one desks, dua puluh tiga orang, lima belas, one hundred and five"
    assert [
        number
        for _, number in iter_large_spelled_numbers(f"{told}, tiga ratus lima puluh ribu, seribu, twelve, one of them")
    ] == [*("5000", "21", "23", "15", "105", "350000", "1000")]


def test_dashes_digits_and_invisible_characters_are_normalized() -> None:
    assert normalize_digits_and_dashes("K\u201137 \u2212\u0665") == "K-37 -5"
    assert normalize_characters("K\u200b-\u00ad37") == "K-37"
