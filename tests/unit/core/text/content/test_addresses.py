"""Addresses as people write them."""

import pytest

from lamella.core.text.content import is_web_address, trim_url, youtube_video_id

ID = "b4yT1de5_-x"


@pytest.mark.parametrize(
    "url",
    [
        f"https://www.youtube.com/watch?v={ID}",
        f"http://youtube.com/watch?list=x&v={ID}&t=20s#a",
        f"https://m.youtube.com/watch?v={ID}",
        f"https://music.youtube.com/watch?v={ID}",
        f"https://youtu.be/{ID}?t=5",
        f"https://www.youtube.com/shorts/{ID}",
        f"https://www.youtube.com/live/{ID}?feature=share",
        f"https://www.youtube.com/embed/{ID}",
        f"https://www.youtube-nocookie.com/embed/{ID}",
    ],
)
def test_video_id_is_found_in_every_url_form(url: str) -> None:
    assert youtube_video_id(url) == ID


@pytest.mark.parametrize(
    "url",
    [
        "https://www.youtube.com/",
        "https://www.youtube.com/@somebody",
        "https://www.youtube.com/watch?v=short",
        f"https://youtube.com.example.org/watch?v={ID}",
        f"https://example.org/watch?v={ID}",
        f"https://youtu.be/{ID}x",
        f"https://e.org/?u=https://youtu.be/{ID}",
        "",
    ],
)
def test_other_addresses_show_no_video(url: str) -> None:
    assert youtube_video_id(url) is None


@pytest.mark.parametrize(
    ("word", "address"),
    [
        ("https://e.org/x.", "https://e.org/x"),
        ("https://e.org/x),", "https://e.org/x"),
        ("https://e.org/Bar_(sea)", "https://e.org/Bar_(sea)"),
        ("https://e.org/Bar_(sea)).", "https://e.org/Bar_(sea)"),
        ("https://e.org/?q=a,b", "https://e.org/?q=a,b"),
        ("https://e.org/", "https://e.org/"),
        ("...", ""),
    ],
)
def test_trailing_punctuation_is_not_part_of_url(word: str, address: str) -> None:
    assert trim_url(word) == address


def test_web_address_is_distinguished_from_path() -> None:
    assert is_web_address("HTTPS://e.org")
    assert not any(map(is_web_address, ("https://", "http:/x", "notes/https://x", "ftp://e.org", "")))
