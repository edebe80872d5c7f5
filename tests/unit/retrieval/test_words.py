"""Words: what a text is found by beyond what SQLite sees in it, and what a question asks for."""

import sqlite3
from contextlib import closing

import pytest

from lamella.core.search.language import is_stop_word, normalize_word
from lamella.retrieval.words import TOKENIZER, extra_search_words, is_indonesian, parse_query_words

INDONESIAN = "Rapat ini adalah rencana yang dibuat untuk tim dan pengguna dari kantor."


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("the PodTemplateSpec of it", "pod template spec"),
        ("getUserName", "get user name"),
        ("an HTTPServer", "http server"),
        ("plain words, a snake_case and kebab-case", ""),
        ("“PodSpec” naïve", "pod spec"),
        ("東京都", "東京 京都 都"),
        ("文書APIです", "文書 書 です す API"),
        ("한국어", "한국 국어 어"),
        ("ﾃｽﾄ", "テスト テス スト ト"),
        ("Ørsted, Straße, \u0131s\u0131", "orsted strasse isi"),
    ],
)
def test_text_is_found_by_parts_of_names_and_by_pairs_of_characters(text: str, parts: str) -> None:
    assert extra_search_words(text) == parts


def test_indonesian_text_is_found_by_stems() -> None:
    assert extra_search_words("makanan dimakan", is_indonesian_text=True) == "makan makan"
    assert extra_search_words("makanan dimakan") == ""


def test_language_is_detected_by_stop_words() -> None:
    assert is_indonesian(INDONESIAN)
    assert not is_indonesian("The plan of the team is that all of it is done, dan and yang are names.")
    assert not is_indonesian("")


@pytest.mark.parametrize(
    ("word", "folded"),
    [
        ("Café", "cafe"),
        ("İSTANBUL", "istanbul"),
        ("ISI", "isi"),
        ("Łódź", "lodz"),
        ("Æsir", "aesir"),
        ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
    ],
)
def test_case_and_accents_do_not_count(word: str, folded: str) -> None:
    assert normalize_word(word) == folded


def test_question_asks_for_words_their_parts_and_their_stems() -> None:
    [name, word] = parse_query_words("PodTemplateSpec makanan")
    assert (name.text, name.other_terms) == ("PodTemplateSpec", ("pod", "spec", "template"))
    assert (word.text, word.other_terms) == ("makanan", ("makan",))
    assert [word.text for word in parse_query_words("kube-apiserver")] == ["kube", "apiserver", "kubeapiserver"]
    assert [word.text for word in parse_query_words("東京都")] == ["東京", "京都"]
    assert [word.stem for word in parse_query_words("東")] == ["東*"]
    assert parse_query_words(" !?… ") == []


@pytest.mark.parametrize("word", ["running", "policies", "Declarative", "café", "happiness", "skies", "generalization"])
def test_stem_equals_that_of_sqlite(word: str) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE VIRTUAL TABLE one USING fts5(text, tokenize = '{TOKENIZER}')")
        database.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(one, row)")
        database.execute("INSERT INTO one VALUES (?)", (word,))
        [(stem,)] = database.execute("SELECT term FROM terms")
    assert parse_query_words(word)[0].stem == stem


def test_small_words_of_both_languages_are_common() -> None:
    assert [word for word in ("the", "what", "yang", "apa", "garden") if is_stop_word(word)] == [
        "the",
        "what",
        "yang",
        "apa",
    ]
