"""Packages: office files are zip archives of XML. What they unpack to is weighed before anybody unpacks it."""

from io import BytesIO
from zipfile import BadZipFile, ZipFile

from lamella.adapters.sources.conversion.model import ConversionFault

_MOST_PARTS = 10_000
_MOST_BYTES = 300_000_000
_MOST_XML = 50_000_000
_CHUNK = 1_000_000
_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# A declaration of entities; no program writes one into an office file. Both ways of writing UTF-16, too.
_DECLARED = tuple(mark for word in ("<!DOCTYPE", "<!ENTITY") for mark in (word.encode(), word.encode("utf-16-le")))
_SMALLER = "Save a smaller copy, or attach its text."


def check_package(data: bytes) -> None:
    """Refuses an archive that is broken, unpacks to too much, or has XML that grows when it is read."""
    if data.startswith(_OLD):
        raise ConversionFault(
            "is encrypted, or of a format from before 2007.", "Save it without a password in a current format."
        )
    try:
        with ZipFile(BytesIO(data)) as package:
            parts = package.infolist()
            _check_sizes(len(parts), sum(part.file_size for part in parts))
            if any(part.flag_bits & 1 for part in parts):
                raise ConversionFault("is encrypted.", "Save a copy without a password, and attach that.")
            total = 0
            for part in parts:
                total = _check_part(package, part.filename, total)
    except (BadZipFile, EOFError, NotImplementedError, OSError, ValueError) as error:
        raise ConversionFault("is broken: it does not unpack.", "Save it anew from a program that opens it.") from error


def _check_sizes(count: int, size: int) -> None:
    if count > _MOST_PARTS:
        raise ConversionFault(f"has {count:,} parts; at most {_MOST_PARTS:,} are unpacked.", _SMALLER, too_large=True)
    if size > _MOST_BYTES:
        raise ConversionFault(
            f"unpacks to {size:,} bytes; at most {_MOST_BYTES:,} are unpacked.", _SMALLER, too_large=True
        )


def _check_part(package: ZipFile, name: str, total: int) -> int:
    """How much has come out of the archive after this part; what it declares may be a lie."""
    is_xml = name.lower().endswith((".xml", ".rels"))
    tail, size = b"", 0
    with package.open(name) as part:
        while chunk := part.read(_CHUNK):
            total += len(chunk)
            size += len(chunk)
            _check_sizes(0, total)
            if is_xml:
                _check_xml(tail + chunk, size, name)
                tail = chunk[-40:]
    return total


def _check_xml(chunk: bytes, size: int, name: str) -> None:
    if size > _MOST_XML:
        raise ConversionFault(f"has a part of more than {_MOST_XML:,} bytes, {name[:80]}.", _SMALLER, too_large=True)
    if any(mark in chunk for mark in _DECLARED):
        raise ConversionFault(
            f"declares entities in {name[:80]}, which no office program does.", "Do not open it; ask who sent it."
        )
