"""Plain text out of bytes and letters of any sort."""

import pytest

from lamella.sources.converters import clean_text, clean_title, decode_text, truncate_text

WORDS = "Größe, 日本"


def test_line_ends_control_characters_and_blank_lines_are_normalized() -> None:
    assert clean_text("a \r\nb\rc\u2028d\x00\x07\n\n \n\ne\ufffe\n") == "a\nb\nc\nd\n\ne"
    assert clean_title("  A\n title\x00 \t here ") == "A title here"


def test_long_text_is_cut_at_line_with_notice() -> None:
    assert truncate_text("short", 5) == "short"
    assert truncate_text("one\ntwo\nthree", 9) == "one\ntwo\n\n[Cut here: 6 of 13 characters are left out.]"
    assert truncate_text("x" * 10, 4).startswith("xxxx\n")


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        (WORDS.encode(), None),
        (WORDS.encode(), "ascii"),
        (WORDS.encode(), "iso-8859-1"),
        (WORDS.encode(), "no-such-charset"),
        (WORDS.encode("utf-8-sig"), "shift_jis"),
        (WORDS.encode("utf-16"), "utf-8"),
        (WORDS.encode("utf-16-le"), "UTF-16-LE"),
    ],
)
def test_encoding_is_detected_from_bytes(data: bytes, charset: str | None) -> None:
    assert decode_text(data, charset) == WORDS


def test_declared_encoding_is_used_if_valid() -> None:
    assert decode_text("日本語".encode("shift_jis"), "Shift_JIS") == "日本語"
    assert decode_text("日本語".encode("iso-2022-jp"), "ISO-2022-JP") == "日本語"
    page = b'<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">' + "Привет".encode("koi8-r")
    assert decode_text(page, is_markup=True).endswith("Привет")
    assert decode_text("naïve “x”".encode("cp1252"), "iso-8859-1") == "naïve “x”"


def test_invalid_bytes_are_decoded_as_letters() -> None:
    assert decode_text(f"{WORDS}{WORDS}".encode() + b"\xff.", "utf-8") == f"{WORDS}{WORDS}\ufffd."
    assert decode_text("Fähre, Öl, Café".encode("cp1252"), "utf-8") == "Fähre, Öl, Café"
    assert decode_text(b"\x81\xff\x8d", "utf-8") == "\ufffdÿ\ufffd"
