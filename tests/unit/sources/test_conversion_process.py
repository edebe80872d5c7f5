"""The child that converts: what it gives, and how it ends when it takes too much."""

import sys
from pathlib import Path
from time import monotonic

import pytest
from tests.documents import make_pdf, make_xlsx, make_zip

from lamella.errors import ExtraNotInstalledError, LamellaError, SourceTooLargeError, SourceUnreadableError
from lamella.sources.conversion_process import Converter, extra_not_installed_error
from lamella.sources.converters import ConversionLimits, FileFormat


def test_converted_text_is_returned_from_child_process() -> None:
    found = Converter().convert(FileFormat.PDF, make_pdf(["Words."]), name="a.pdf")
    assert found.text.startswith("## Page 1\n\nWords.")


def test_conversion_error_names_file_with_hint() -> None:
    with pytest.raises(SourceUnreadableError, match=r"deep/a\.pdf is a broken PDF") as caught:
        Converter().convert(FileFormat.PDF, b"%PDF-1.4 no", name="deep/a.pdf")
    assert "Save it anew" in caught.value.hint


def test_slow_conversion_is_ended() -> None:
    begun = monotonic()
    # No page is slow on every machine: this child never ends.
    converter = Converter(ConversionLimits(seconds=0.2), worker="tests.endless_process")
    with pytest.raises(SourceTooLargeError, match=r"took more than 0\.2 s"):
        converter.convert(FileFormat.PAGE, b"<p>word</p>", name="https://e.org")
    assert monotonic() - begun < 30


def test_conversion_using_too_much_memory_is_ended() -> None:
    sparse = make_zip(dict(_sparse_workbook()))
    with pytest.raises(SourceTooLargeError, match=r"more than 400,000,000 bytes of memory"):
        Converter(ConversionLimits(memory=400_000_000)).convert(FileFormat.SHEETS, sparse, name="wide.xlsx")


def _sparse_workbook() -> list[tuple[str, str | bytes]]:
    """Two cells as far from each other as a sheet allows: whoever makes a table of it fills the memory."""
    from io import BytesIO
    from zipfile import ZipFile

    with ZipFile(BytesIO(make_xlsx({"A": [["x"]]}))) as book:
        parts: list[tuple[str, str | bytes]] = [(name, book.read(name)) for name in book.namelist()]
    cells = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f'<dimension ref="A1:XFD1048576"/><sheetData>{cells}</sheetData></worksheet>'
    )
    return [(name, sheet if name.endswith("sheet1.xml") else content) for name, content in parts]


def test_child_process_does_not_import_from_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')", encoding="utf-8")
    (tmp_path / "pypdfium2.py").write_text("raise SystemExit('taken over')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert "" in sys.path
    assert Converter().convert(FileFormat.PDF, make_pdf(["Safe."]), name="a.pdf").text.endswith("Safe.")


def test_version_names_the_package_that_decides_the_text() -> None:
    assert Converter().cache_version(FileFormat.PDF).startswith("pdf-1-pypdfium2-")


def test_missing_package_names_its_extra() -> None:
    error: LamellaError = extra_not_installed_error("mammoth", "documents")
    assert isinstance(error, ExtraNotInstalledError)
    assert "mammoth" in error.message
    assert '".[documents]"' in error.hint
