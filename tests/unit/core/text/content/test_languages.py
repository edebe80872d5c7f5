"""Languages are detected by their stop words, and only if that is possible."""

import pytest

from lamella.core.text.content import detect_foreign_language

TALK = ("The oven is in the bakery and it was cleaned by Maria.", "Which of them has the key to the cellar?")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Der Ofen wurde gereinigt und ist nicht mehr kalt.", "German"),
        ("Le four est dans la cave et les clés sont avec elle.", "French"),
        ("Elle a vu le train sous le pont.", "French"),
        ("Il treno è stato fermato e il ponte è stato chiuso.", "Italian"),
        ("O pão não foi feito pela mãe, mas por ela.", "Portuguese"),
        ("Pengguna memiliki toko roti dan tutup pada hari Senin.", "Indonesian"),
        ("El horno está limpio y los panes son para las once.", "Spanish"),
        ("Het is een oven en hij werd niet door haar gebruikt.", "Dutch"),
        ("Bu oda temiz ve bu anahtar onun için ama çok eski.", "Turkish"),
    ],
)
def test_foreign_language_is_detected(text: str, language: str) -> None:
    assert detect_foreign_language(text, TALK) == language


@pytest.mark.parametrize("text", ["The oven is clean and the key is there.", "Ofen, Keller, Maria.", "", "42"])
def test_same_or_unknown_language_is_not_foreign(text: str) -> None:
    assert detect_foreign_language(text, TALK) is None


def test_one_message_in_a_language_is_enough() -> None:
    text = "Rapat diadakan di ruang Melati dan akan dicatat oleh Dimas."
    assert detect_foreign_language(text, TALK) == "Indonesian"
    assert detect_foreign_language(text, (*TALK, "Baik, rapat di ruang Melati sudah dicatat.")) is None


def test_language_detection_needs_reference_texts() -> None:
    assert detect_foreign_language("Der Ofen ist kalt und nicht mehr neu.", ("x = 1", "K-37")) is None
