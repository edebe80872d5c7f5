"""Pages as markdown, and what hostile ones come to."""

import pytest

from lamella.sources.converters import ConversionError, ConversionLimits, convert_html_to_markdown, convert_page

LIMITS = ConversionLimits(seconds=20)
STORY = "The harbour was closed for nine days, and no ship came in. " * 3
PAGE = f"""<html><head><title>Tides &amp; bars</title><script>steal()</script></head><body>
<nav><a href="/">Home</a> <a href="/about">About</a></nav>
<article><h1>Tides of the bay</h1><p>{STORY}</p><ul><li>one</li><li>two</li></ul>
<table><tr><th>berth</th><th>depth</th></tr><tr><td>41</td><td>7</td></tr></table></article>
<script>alert("no")</script><style>p {{ color: red }}</style><footer>Imprint</footer></body></html>"""


def test_readable_text_becomes_markdown_with_title() -> None:
    found = convert_page(PAGE.encode(), LIMITS)
    assert found.title == "Tides of the bay"
    assert found.text.startswith("# Tides of the bay\n\nThe harbour was closed")
    assert "- one\n- two" in found.text
    assert "| 41 | 7 |" in found.text
    for word in ("steal", "alert", "color", "Imprint", "About"):
        assert word not in found.text


def test_page_without_main_part_is_converted_whole() -> None:
    found = convert_page(b"<title>T</title><h2>Opening hours</h2><img src='x.png' alt='sign'>", LIMITS)
    assert "Opening hours" in found.text
    assert "x.png" not in found.text


def test_page_without_text_is_reported() -> None:
    for page in (b"", b"<html><body><script>app()</script></body></html>", b"<p " + b"a" * 1_000_000):
        with pytest.raises(ConversionError, match="no text to read"):
            convert_page(page, LIMITS)


def test_page_that_is_nested_without_end_is_read_all_the_same() -> None:
    deep = b"<title>Deep</title>" + b"<div>" * 100_000 + b"<p>At the bottom.</p><script>no()</script>"
    found = convert_page(deep, LIMITS)
    assert (found.title, found.text) == ("Deep", "At the bottom.")


def test_page_of_many_tags_is_parsed_in_one_pass() -> None:
    found = convert_page(b"<b>x</b>" * 151_000, ConversionLimits(characters=1_000))
    assert found.text.startswith("x\nx")
    assert "are left out.]" in found.text


def test_wrong_charset_changes_no_letter() -> None:
    page = f'<meta charset="ascii"><title>Größe</title><p>{STORY} Größe</p>'.encode()
    found = convert_page(page, LIMITS, "shift_jis")
    assert (found.title, found.text[-5:]) == ("Größe", "Größe")


def test_markup_becomes_markdown_without_images() -> None:
    assert convert_html_to_markdown("<h1>A</h1><p>b <img src=x><b>c</b></p>").strip() == "# A\n\nb **c**"
