"""Spelling: what makes no difference to people who look for something makes none here."""

import pytest

from lamella.core.search.language import casefold_text, list_stems, normalize_text, normalize_word, split_identifier
from lamella.core.text.notation import normalize_characters


def test_texts_are_compared_without_case_in_compatible_characters() -> None:
    assert normalize_text("\uff21\uff22 ﬁ ẞ") == "ab fi ss"


def test_invisible_characters_are_removed_and_case_kept() -> None:
    assert normalize_characters("So\u00adft\u200b \u202eW\u2060ord\ufeff") == "Soft Word"
    assert normalize_characters("שָׁלוֹם شُكْرًا") == "שלום شكرا"
    assert normalize_characters("Plain\tText") == "Plain\tText"


@pytest.mark.parametrize("text", ["İstanbul", "ISTANBUL", "istanbul", "\u0131stanbul"])
def test_dotted_and_dotless_i_are_equal(text: str) -> None:
    assert casefold_text(text) == "istanbul"


@pytest.mark.parametrize(
    ("word", "folded"),
    [
        ("Ärger", "arger"),
        ("Łódź", "lodz"),
        ("STRASSE", "strasse"),
        ("ὁδός", "οδοσ"),
        ("naïve", "naive"),
        ("Đorđe", "dorde"),
        ("Þórður", "thordur"),
        ("Ærø", "aero"),
        ("Œuvre", "oeuvre"),
        ("Kap\u0131", "kapi"),
        ("Groß", "gross"),
    ],
)
def test_word_is_folded_without_accents(word: str, folded: str) -> None:
    assert normalize_word(word) == folded


def test_stems_are_english_and_indonesian() -> None:
    assert list_stems("vibrates") == ("vibrat", "vibrates")
    assert list_stems("melaporkan") == ("melaporkan", "lapor")
    assert list_stems("a" * 61) == ()


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("menulis", "tulis"),
        ("menuliskan", "tulis"),
        ("penulis", "tulis"),
        ("mengirimkan", "kirim"),
        ("pengiriman", "kirim"),
    ],
)
def test_swallowed_indonesian_letter_is_restored(form: str, word: str) -> None:
    assert {*list_stems(form)} & {*list_stems(word)}
    assert "" not in list_stems(form)


def test_word_with_initial_vowel_keeps_stem() -> None:
    assert "ambil" in list_stems("mengambil")
    assert list_stems("pencil") == ("pencil", "pencil")


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("getUserName", ["get", "user", "name"]),
        ("HTTPServer2", ["http", "server"]),
        ("größeMaxWert", ["grosse", "max", "wert"]),
        ("Plain", []),
        ("UPPER", []),
        ("aB", []),
        ("toDo", ["to", "do"]),
    ],
)
def test_identifiers_are_split_at_capitals(word: str, parts: list[str]) -> None:
    assert split_identifier(word) == parts
