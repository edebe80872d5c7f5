"""Archives are measured before they are unpacked."""

import struct

import pytest
from tests.documents import make_docx, make_zip, paragraph

from lamella.sources.converters import ConversionError, check_office_archive

BILLION = '<!DOCTYPE x [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


def test_honest_document_passes() -> None:
    check_office_archive(make_docx(paragraph("Hello")))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "does not unpack"),
        (b"PK\x03\x04 and then nothing", "does not unpack"),
        (make_docx(paragraph("Hello"))[:-40], "does not unpack"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "encrypted, or of a format from before 2007"),
        (make_docx("", head=BILLION), "declares entities in word/document.xml"),
        (make_zip({"x.xml": BILLION.encode("utf-16")}), "declares entities"),
        (make_zip({f"{number}.xml": "" for number in range(10_001)}), "10,001 parts"),
    ],
)
def test_broken_or_hostile_package_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(ConversionError, match=told):
        check_office_archive(data)


def test_zip_bomb_is_refused_by_declared_size() -> None:
    data = bytearray(make_zip({"word/media/x.bin": bytes(100)}))
    # The size that the list of parts declares, as one of four gigabytes would.
    entry = data.index(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<I", 4_000_000_000)
    with pytest.raises(ConversionError, match="unpacks to 4,000,000,000 bytes") as caught:
        check_office_archive(bytes(data))
    assert caught.value.too_large


def test_understated_part_size_is_refused() -> None:
    data = bytearray(make_zip({"word/document.xml": b"x" * 5_000}))
    entry = data.index(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<I", 10)
    with pytest.raises(ConversionError, match="does not unpack"):
        check_office_archive(bytes(data))


def test_one_part_of_xml_without_end_is_refused() -> None:
    with pytest.raises(ConversionError, match="a part of more than 50,000,000 bytes"):
        check_office_archive(make_zip({"word/document.xml": b" " * 51_000_000}))
