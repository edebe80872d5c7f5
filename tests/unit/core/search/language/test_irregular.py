"""Irregular forms: a word is found in forms that share no ending with it."""

import pytest

from lamella.core.search.language import indonesian_roots, irregular_base_forms, list_stems


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("caught", "catch"), ("brought", "bring"), ("froze", "freeze"), ("flown", "fly"), ("chosen", "choose"),
        ("taught", "teaching"), ("mice", "mouse"), ("geese", "goose"), ("children", "child"), ("knives", "knife"),
        ("women", "woman"), ("criteria", "criterion"), ("analyses", "analysis"), ("thinner", "thin"), ("swam", "swum"),
    ],
)  # fmt: skip
def test_irregular_english_forms_share_stem(form: str, word: str) -> None:
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
def test_irregular_form_maps_to_its_word_only(listed: str) -> None:
    pairs = [pair.split() for pair in listed.split(", ")]
    assert [[form, *irregular_base_forms(form)] for form, _ in pairs] == pairs


def test_ambiguous_form_maps_to_both_words() -> None:
    assert irregular_base_forms("lay") == ("lie",)
    assert irregular_base_forms("found") == ("find",)
    assert irregular_base_forms("axes") == ("axis",)
    assert irregular_base_forms("table") == ()


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("mengecat", "cat"), ("pengecatan", "cat"), ("dicek", "cek"), ("diperlambat", "lambat"),
        ("memperlambat", "lambat"), ("mempermudah", "mudah"), ("memasak", "masak"), ("menyanyikan", "nyanyi"),
        ("bertemu", "temu"),
    ],
)  # fmt: skip
def test_indonesian_prefixes_are_stripped(form: str, word: str) -> None:
    assert {*list_stems(form)} & {word, *list_stems(word)}


@pytest.mark.parametrize(
    "word",
    ["bom", "bor", "cap", "cas", "cat", "cek", "cor", "lap", "las", "lem", "pak", "pel", "pos", "rem", "sah", "tes"],
)
def test_short_indonesian_word_is_found_with_affixes(word: str) -> None:
    forms = [
        f"{before}{word}{behind}"
        for before in ("menge", "penge", "di")
        for behind in ("", "kan", "i", "an", "nya", "annya", "kannya")
    ]
    assert [form for form in forms if word not in indonesian_roots(form, form)] == []


def test_words_that_only_begin_alike_have_no_such_root() -> None:
    assert indonesian_roots("mengejar", "kejar") == []
    assert indonesian_roots("berita", "berita") == []
    assert indonesian_roots("table", "table") == []
