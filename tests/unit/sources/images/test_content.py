"""Image types are detected from bytes, not from names."""

from contextlib import suppress

import pytest
from tests.unit.pictures import GIF, JPEG, WEBP, claim_size, png

from lamella.errors import SourceTooLargeError, SourceUnreadableError
from lamella.sources.images import IMAGE_TYPES, MAX_PICTURE_BYTES, MAX_PIXELS, MAX_SIDE, parse_image

WHOLE = {"image/png": png(6, 4), "image/jpeg": JPEG, "image/gif": GIF, "image/webp": WEBP}


@pytest.mark.parametrize("kind", IMAGE_TYPES)
def test_image_type_and_size_are_detected_from_bytes(kind: str) -> None:
    image = parse_image(WHOLE[kind], media_type=None, name="x")
    assert (image.media_type, image.width, image.height, image.data) == (kind, 6, 4, WHOLE[kind])


@pytest.mark.parametrize("kind", IMAGE_TYPES)
def test_truncated_image_is_refused(kind: str) -> None:
    for share in (0.5, 0.9):
        broken = WHOLE[kind][: int(len(WHOLE[kind]) * share)]
        with pytest.raises(SourceUnreadableError, match="breaks off") as raised:
            parse_image(broken, media_type=None, name="x.png")
        assert "once more" in raised.value.hint


def test_bytes_after_image_are_ignored() -> None:
    for data in (png(6, 4) + b"more", JPEG + b"more", GIF + b"\0\0", WEBP + b"more"):
        assert parse_image(data, media_type=None, name="x").width == 6


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "an SVG drawing"),
        (b'<?xml version="1.0"?>\n<!DOCTYPE svg>', "an SVG drawing"),
        (b"%PDF-1.7", "a PDF"),
        (b"II*\0", "a TIFF picture"),
        (b"BM\0\0", "a BMP picture"),
        (b"\0\0\0\x18ftypheic", "a HEIC picture"),
        (b"\0\0\0\x18ftypavif", "an AVIF picture"),
        (b"\0\0\1\0", "an icon"),
    ],
)
def test_unsupported_image_type_is_named_with_hint(data: bytes, what: str) -> None:
    with pytest.raises(SourceUnreadableError, match=f"plan.png is {what}") as raised:
        parse_image(data, media_type=None, name="plan.png")
    assert raised.value.hint == "Save it as PNG, JPEG, GIF or WebP."


@pytest.mark.parametrize("data", [b"", b"not a picture", b"GIF88a", b"RIFF", b"\xff\xd8"])
def test_other_bytes_are_reported_as_no_image(data: bytes) -> None:
    with pytest.raises(SourceUnreadableError, match=rf"not a picture that models take \({len(data)} bytes\)"):
        parse_image(data, media_type=None, name="x")


@pytest.mark.parametrize(("width", "height"), [(0, 4), (4, 0)])
def test_image_without_a_pixel_is_refused(width: int, height: int) -> None:
    with pytest.raises(SourceUnreadableError, match=f"{width} by {height} pixels"):
        parse_image(claim_size(width, height), media_type=None, name="x")


@pytest.mark.parametrize(("width", "height"), [(MAX_SIDE + 1, 1), (50_000, MAX_PIXELS // 50_000 + 1), (2**31, 2**31)])
def test_huge_image_is_refused_by_declared_size(width: int, height: int) -> None:
    with pytest.raises(SourceTooLargeError, match=f"{width:,} by {height:,} pixels"):
        parse_image(claim_size(width, height), media_type=None, name="x")


def test_oversized_bytes_are_not_parsed() -> None:
    with pytest.raises(SourceTooLargeError, match="50,000,001 bytes"):
        parse_image(bytes(MAX_PICTURE_BYTES + 1), media_type=None, name="x")


def test_bytes_of_other_type_than_declared_are_refused() -> None:
    with pytest.raises(SourceUnreadableError, match="x is given as image/gif, and its bytes are image/png"):
        parse_image(png(2, 2), media_type="image/gif", name="x")


@pytest.mark.parametrize("kind", IMAGE_TYPES)
def test_corrupted_image_raises_only_own_errors(kind: str) -> None:
    whole = WHOLE[kind]
    for at in range(len(whole)):
        for byte in (0, 0xFF):
            with suppress(SourceUnreadableError, SourceTooLargeError):
                parse_image(whole[:at] + bytes([byte]) + whole[at + 1 :], media_type=None, name="x")
