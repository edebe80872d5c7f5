"""Irregular forms: what somebody asks for in one form is found in another that no ending tells of."""

import pytest

from lamella.core.search.irregular import list_roots, list_words
from lamella.core.search.spelling import list_stems


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("caught", "catch"), ("brought", "bring"), ("froze", "freeze"), ("flown", "fly"), ("chosen", "choose"),
        ("taught", "teaching"), ("mice", "mouse"), ("geese", "goose"), ("children", "child"), ("knives", "knife"),
        ("women", "woman"), ("criteria", "criterion"), ("analyses", "analysis"), ("thinner", "thin"), ("swam", "swum"),
    ],
)  # fmt: skip
def test_irregular_forms_of_an_english_word_share_a_stem_with_it(form: str, word: str) -> None:
    assert {*list_stems(form)} & {*list_stems(word)}


@pytest.mark.parametrize(
    "listed",
    [
        "arose arise, became become, bred breed, came come, driven drive, flown fly, gotten get, hidden hide",
        "left leave, mistaken mistake, said say, shown show, sown sow, stood stand, striven strive, told tell",
        "woken wake, wrung wring, foreseen foresee, knives knife, scarves scarf, women woman, cacti cactus, foci focus",
        "nuclei nucleus, vertices vertex, fittest fit, thinnest thin, wettest wet",
    ],
)
def test_an_irregular_form_leads_to_its_word_and_to_nothing_else(listed: str) -> None:
    pairs = [pair.split() for pair in listed.split(", ")]
    assert [[form, *list_words(form)] for form, _ in pairs] == pairs


def test_a_form_of_two_words_leads_to_both_and_a_plain_word_to_none() -> None:
    assert list_words("lay") == ("lie",)
    assert list_words("found") == ("find",)
    assert list_words("axes") == ("axis",)
    assert list_words("table") == ()


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("mengecat", "cat"), ("pengecatan", "cat"), ("dicek", "cek"), ("diperlambat", "lambat"),
        ("memperlambat", "lambat"), ("mempermudah", "mudah"), ("memasak", "masak"), ("menyanyikan", "nyanyi"),
        ("bertemu", "temu"),
    ],
)  # fmt: skip
def test_what_a_beginning_hides_in_indonesian_is_found(form: str, word: str) -> None:
    assert {*list_stems(form)} & {word, *list_stems(word)}


@pytest.mark.parametrize(
    "word",
    ["bom", "bor", "cap", "cas", "cat", "cek", "cor", "lap", "las", "lem", "pak", "pel", "pos", "rem", "sah", "tes"],
)
def test_a_word_of_one_syllable_is_found_whatever_stands_before_and_behind_it(word: str) -> None:
    forms = [
        f"{before}{word}{behind}"
        for before in ("menge", "penge", "di")
        for behind in ("", "kan", "i", "an", "nya", "annya", "kannya")
    ]
    assert [form for form in forms if word not in list_roots(form, form)] == []


def test_words_that_only_begin_alike_have_no_such_root() -> None:
    assert list_roots("mengejar", "kejar") == []
    assert list_roots("berita", "berita") == []
    assert list_roots("table", "table") == []
