"""Converters from files to Markdown: HTML, word processor documents, PDFs, workbooks and presentations.

The ``convert_*`` functions run in a child process and return a ``ConvertedText``. ``check_office_archive`` refuses
dangerous office files, which are zip archives of XML, before any converter unpacks them.
"""

import codecs
import datetime
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from html import unescape
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile, ZipFile

if TYPE_CHECKING:
    import pypdfium2


class FileFormat(StrEnum):
    """A file format that has a converter."""

    PDF = "pdf"
    DOCUMENT = "document"
    SLIDES = "slides"
    SHEETS = "sheets"
    PAGE = "page"


class ConvertedText(NamedTuple):
    """The result of a conversion: a title, which may be empty, and the text."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionLimits:
    """Limits of one conversion: seconds, bytes of memory, and characters of text."""

    seconds: float = 60
    memory: int = 1_000_000_000
    characters: int = 5_000_000

    def limits_key(self) -> str:
        """Return the limits as one text. Cached failures record it, so that other limits lead to a new attempt."""
        return ",".join(f"{value:g}" for value in asdict(self).values())


class ConversionError(Exception):
    """The reason why bytes cannot be converted.

    ``message`` continues a sentence that begins with the file's name. ``hint`` says what to do.
    """

    def __init__(self, message: str, hint: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.too_large = too_large


# Checks of office files.

_MAX_ARCHIVE_PARTS = 10_000
_MAX_UNPACKED_BYTES = 300_000_000
_MAX_PART_BYTES = 50_000_000
_CHUNK_BYTES = 1_000_000
_OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Declarations of XML entities, which office programs never write. The UTF-16 little endian bytes also occur in
# big endian text, shifted by one byte.
_XML_DECLARATIONS = tuple(
    mark for word in ("<!DOCTYPE", "<!ENTITY") for mark in (word.encode(), word.encode("utf-16-le"))
)
_SMALLER_COPY_HINT = "Save a smaller copy, or attach its text."


def check_office_archive(data: bytes) -> None:
    """Refuse an archive that is broken or encrypted, unpacks to too much, or declares XML entities."""
    if data.startswith(_OLE_SIGNATURE):
        raise ConversionError(
            "is encrypted, or of a format from before 2007.", "Save it without a password in a current format."
        )
    try:
        with ZipFile(BytesIO(data)) as package:
            parts = package.infolist()
            _check_archive_size(len(parts), sum(part.file_size for part in parts))
            if any(part.flag_bits & 1 for part in parts):
                raise ConversionError("is encrypted.", "Save a copy without a password, and attach that.")
            total = 0
            for part in parts:
                total = _check_archive_part(package, part.filename, total)
    except (BadZipFile, EOFError, NotImplementedError, OSError, ValueError) as error:
        raise ConversionError("is broken: it does not unpack.", "Save it anew from a program that opens it.") from error


def _check_archive_size(count: int, size: int) -> None:
    if count > _MAX_ARCHIVE_PARTS:
        raise ConversionError(
            f"has {count:,} parts; at most {_MAX_ARCHIVE_PARTS:,} are unpacked.", _SMALLER_COPY_HINT, too_large=True
        )
    if size > _MAX_UNPACKED_BYTES:
        raise ConversionError(
            f"unpacks to {size:,} bytes; at most {_MAX_UNPACKED_BYTES:,} are unpacked.",
            _SMALLER_COPY_HINT,
            too_large=True,
        )


def _check_archive_part(archive: ZipFile, name: str, total: int) -> int:
    """Return the total of unpacked bytes after this part.

    The bytes are counted while unpacking, because the size that an archive declares may be false.
    """
    is_xml = name.lower().endswith((".xml", ".rels"))
    tail, size = b"", 0
    with archive.open(name) as part:
        while chunk := part.read(_CHUNK_BYTES):
            total += len(chunk)
            size += len(chunk)
            _check_archive_size(0, total)
            if is_xml:
                _check_xml(tail + chunk, size, name)
                # Keep the end of the chunk: a declaration may be split over two chunks.
                tail = chunk[-40:]
    return total


def _check_xml(chunk: bytes, size: int, name: str) -> None:
    if size > _MAX_PART_BYTES:
        raise ConversionError(
            f"has a part of more than {_MAX_PART_BYTES:,} bytes, {name[:80]}.", _SMALLER_COPY_HINT, too_large=True
        )
    if any(mark in chunk for mark in _XML_DECLARATIONS):
        raise ConversionError(
            f"declares entities in {name[:80]}, which no office program does.", "Do not open it; ask who sent it."
        )


# Texts: remove invalid characters, truncate, and decode bytes of unknown encoding.

# PDFium's soft hyphens, control characters, surrogates and Unicode noncharacters. Tabs and line breaks stay.
_INVALID_CHARS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\ufffe\uffff\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
_LINE_ENDS = re.compile(r"\r\n?|[\u2028\u2029\x85]")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_HEAD_BYTES = 4_096
# Pages that declare one of these encodings are written in cp1252. Browsers read them so too.
_ENCODING_ALIASES = {
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "latin1": "cp1252",
    "ascii": "cp1252",
    "us-ascii": "cp1252",
}
_FALLBACK_ENCODING = "cp1252"
_LONGEST_TITLE = 300


def clean_text(text: str) -> str:
    """Return a text with uniform line ends and without invalid characters and runs of blank lines."""
    text = _INVALID_CHARS.sub("", _LINE_ENDS.sub("\n", text))
    return _BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip("\n")


def clean_title(text: str) -> str:
    """Return a title as one line of limited length."""
    return " ".join(_INVALID_CHARS.sub("", text).split())[:_LONGEST_TITLE]


def truncate_text(text: str, limit: int) -> str:
    """Return the first ``limit`` characters of a text, with a last line that says how much is left out."""
    if len(text) <= limit:
        return text
    kept = text[:limit].rpartition("\n")[0] or text[:limit]
    return f"{kept}\n\n[Cut here: {len(text) - len(kept):,} of {len(text):,} characters are left out.]"


def decode_text(data: bytes, charset: str | None = None, *, is_markup: bool = False) -> str:
    """Decode bytes by byte order mark, as UTF-8, by the declared charset, or as cp1252, in this order.

    UTF-8 is tried before the declared charset. Declarations are often wrong, and bytes that are valid UTF-8 are hardly
    ever anything else by chance.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    meta = _META_CHARSET.search(data[:_HEAD_BYTES]) if is_markup else None
    declared_charsets = [name.lower() for name in (charset, meta[1].decode("ascii") if meta else None) if name]
    # Text in these encodings can be valid UTF-8 as well, so they are tried first.
    first = [name for name in declared_charsets if name.startswith(("iso-2022", "utf-16"))]
    for encoding in (*first, "utf-8", *declared_charsets):
        try:
            return data.decode(_ENCODING_ALIASES.get(encoding, encoding))
        except (LookupError, UnicodeError):
            continue  # an unknown charset, or bytes that are not valid in it
    loose = data.decode("utf-8", errors="replace")
    broken = loose.count("\ufffd")
    wide = len(loose) - len(loose.encode("ascii", errors="ignore")) - broken
    # One broken byte must not garble a text that is UTF-8 otherwise. Valid multi-byte sequences are rare in cp1252.
    return loose if wide > broken else data.decode(_FALLBACK_ENCODING, errors="replace")


# HTML pages. The main content is used if the extractor finds it, otherwise the whole page. A page that is too deeply
# nested or too large for a tree is reduced to the text between its tags.

_SKIPPED_ELEMENTS = ("script", "style", "template", "noscript", "svg", "head", "title")
_TITLE_ELEMENT = re.compile(r"<title[^>]{0,200}>([^<]{0,2000})", re.IGNORECASE)
# Deeper than pages written by people. Recursive converters fail only far beyond this depth.
_MAX_HTML_DEPTH = 1_000
# A tree of half a million elements takes half a gigabyte (measured 2026-11-18).
_MOST_TAGS = 300_000
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]{0,30})")
_TAG_OR_TEXT = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]{0,30})?[^<>]*+>?|([^<]++)")
# fmt: off
# Elements that have no end tag, or whose end tag may be omitted. They are not counted as nesting.
_VOID_ELEMENTS = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
    "p", "li", "td", "tr", "th", "dt", "dd",
))
# fmt: on


def convert_page(data: bytes, limits: ConversionLimits, charset: str | None = None) -> ConvertedText:
    """Return the readable text of a page as markdown, with its title."""
    html = decode_text(data, charset, is_markup=True)
    if _is_too_complex(html):
        # Building a tree of this page would recurse too deeply or use all the memory.
        title, text = _extract_html_title(html), _strip_tags(html)
    else:
        title, text = _extract_article(html, limits)
        text = text or convert_html_to_markdown(html)
    text = clean_text(text)
    if not text:
        raise ConversionError(
            "has no text to read.", "It may be made by scripts in a browser: copy its text, and attach that."
        )
    return ConvertedText(title=clean_title(title), text=truncate_text(text, limits.characters))


def convert_html_to_markdown(html: str) -> str:
    """Return all of some HTML as markdown, without its images."""
    try:
        from html_to_markdown import ConversionOptions, convert
    except ImportError:
        return _strip_tags(html)
    return convert(html, ConversionOptions(extract_metadata=False, skip_images=True)).content or ""


def _extract_article(html: str, limits: ConversionLimits) -> tuple[str, str]:
    """Return the title and main text of a page; the text is empty if none is found in time."""
    from trafilatura import extract
    from trafilatura.metadata import extract_title
    from trafilatura.utils import load_html

    try:
        # Half of the time, so that enough is left to convert the whole page if the extractor is too slow.
        with _limit_seconds(limits.seconds / 2):
            tree = load_html(html)
            title = (extract_title(tree) if tree is not None else None) or _extract_html_title(html)
            text = extract(html, output_format="markdown", include_comments=False, include_tables=True)
    except (TimeoutError, RecursionError):
        return _extract_html_title(html), ""
    return title, text or ""


@contextmanager
def _limit_seconds(seconds: float) -> Iterator[None]:
    """Raise ``TimeoutError`` in the block after this many seconds, on systems that have timer signals."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_too_complex(html: str) -> bool:
    """Return whether a page is nested too deeply or has too many tags for a tree-based converter."""
    depth = deepest = count = 0
    for tag in _TAG.finditer(html):
        count += 1
        if tag[2].lower() not in _VOID_ELEMENTS:
            depth = max(0, depth - 1) if tag[1] else depth + 1
            deepest = max(deepest, depth)
    return deepest > _MAX_HTML_DEPTH or count > _MOST_TAGS


def _extract_html_title(html: str) -> str:
    found = _TITLE_ELEMENT.search(html[:100_000])
    return unescape(found[1]) if found else ""


def _strip_tags(html: str) -> str:
    """Return the text between the tags, in one pass and without building a tree."""
    words: list[str] = []
    unread = 0
    for piece in _TAG_OR_TEXT.finditer(html):
        name = (piece[2] or "").lower()
        if name in _SKIPPED_ELEMENTS:
            unread = max(0, unread - 1) if piece[1] else unread + 1
        elif piece[3] and not unread:
            words.append(unescape(piece[3]).strip())
        elif words and words[-1] != "\n":
            words.append("\n")
    return "".join(words)


# Word processor documents, without images and macros.


def convert_docx(data: bytes, limits: ConversionLimits) -> ConvertedText:
    """Return the text of a document as markdown."""
    import html_to_markdown  # noqa: F401 - imported first, so that a missing package is reported before any work
    import mammoth

    check_office_archive(data)
    try:
        read = mammoth.convert_to_html(
            BytesIO(data), convert_image=_ignore_image, include_embedded_style_map=False, external_file_access=False
        )
    except (KeyError, IndexError, ValueError, AttributeError, OSError, ExpatError) as error:
        raise ConversionError(
            f"is no document of a word processor ({type(error).__name__}).", "Save it anew as .docx, and attach that."
        ) from error
    text = clean_text(convert_html_to_markdown(read.value))
    if not text:
        raise ConversionError("has no text.", "If it has only pictures, attach those.")
    return ConvertedText(title="", text=truncate_text(text, limits.characters))


def _ignore_image(_image: object) -> list[object]:
    return []


# PDFium joins a word that is hyphenated over two lines and leaves one of these characters instead of the hyphen.
_SOFT_HYPHENS = ("\x02", "\ufffe", "\xad")
_PAGE_WITHOUT_TEXT = "[This page has no text.]"
_MOST_PAGES = 5_000


def convert_pdf(data: bytes, limits: ConversionLimits) -> ConvertedText:
    """Return the text of a PDF with page headings.

    Raises:
        ConversionError: The PDF is broken, encrypted, or has no text because it is scanned.
    """
    import pypdfium2

    document = _open_pdf(data)
    count = len(document)
    parts: list[str] = []
    size = found = 0
    for number in range(min(count, _MOST_PAGES)):
        try:
            text = _join_hyphenated_words(document[number].get_textpage().get_text_bounded())
        except pypdfium2.PdfiumError:
            text = "[This page cannot be read.]"
        found += bool(text)
        parts.append(f"## Page {number + 1}\n\n{text or _PAGE_WITHOUT_TEXT}")
        size += len(parts[-1])
        if size > limits.characters:
            break
    if not found:
        raise ConversionError(
            f"has {count:,} {'page' if count == 1 else 'pages'} and no text: it is scanned or drawn.",
            "Run it through text recognition first, or attach its text.",
        )
    if len(parts) < count:
        parts.append(f"[Cut here: pages {len(parts) + 1:,} to {count:,} are left out.]")
    title = document.get_metadata_dict().get("Title", "")
    return ConvertedText(
        title=clean_title(title), text=truncate_text("\n\n".join(parts), limits.characters + _MOST_PAGES)
    )


def _open_pdf(data: bytes) -> "pypdfium2.PdfDocument":
    import pypdfium2
    import pypdfium2.raw

    if b"%PDF-" not in data[:1024]:
        raise ConversionError("is not a PDF: its first bytes do not say so.", "Check the file, or attach its text.")
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None)
        if code in (pypdfium2.raw.FPDF_ERR_PASSWORD, pypdfium2.raw.FPDF_ERR_SECURITY):
            raise ConversionError(
                "is encrypted: it opens with a password only.", "Save a copy without a password, and attach that."
            ) from error
        raise ConversionError("is a broken PDF.", "Save it anew from a program that opens it.") from error


def _join_hyphenated_words(text: str) -> str:
    for mark in _SOFT_HYPHENS:
        text = text.replace(mark, "")
    return clean_text(text)


# Tables.


def render_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table with the first row as header. Shorter rows are filled with empty cells."""
    width = max((len(row) for row in rows), default=0)
    lines = [_render_row([*row, *[""] * (width - len(row))]) for row in rows]
    return "\n".join([lines[0], _render_row(["---"] * width), *lines[1:]]) if lines else ""


def _render_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_render_cell(cell) for cell in cells)} |"


def _render_cell(text: str) -> str:
    return " ".join(clean_text(text).replace("\\", "\\\\").replace("|", "\\|").split())


# Workbooks: each sheet as a table, with a note on rows and columns that are left out.

_MOST_ROWS = 2_000
_MOST_COLUMNS = 100
_ZIP_SIGNATURE = b"PK"


def convert_sheets(data: bytes, limits: ConversionLimits) -> ConvertedText:
    """Return the cells of a workbook as markdown tables. Formulas appear as their last computed values."""
    from python_calamine import CalamineError, CalamineWorkbook

    if data.startswith(_ZIP_SIGNATURE):
        check_office_archive(data)
    parts: list[str] = []
    try:
        with CalamineWorkbook.from_filelike(BytesIO(data)) as book:
            for name in book.sheet_names:
                parts.append(_render_sheet(name, book.get_sheet_by_name(name).to_python()))
                if sum(map(len, parts)) > limits.characters:
                    break
    except (CalamineError, ValueError, OSError) as error:
        raise ConversionError(
            f"is no workbook that can be read: {clean_title(str(error))[:200]}.",
            "Save it without a password as .xlsx, and attach that.",
        ) from error
    if not parts:
        raise ConversionError("has no sheets.", "Check the file.")
    return ConvertedText(title="", text=truncate_text("\n\n".join(parts), limits.characters))


def _render_sheet(name: str, rows: Sequence[Sequence[object]]) -> str:
    width = max((len(row) for row in rows), default=0)
    shown = [[_format_cell(cell) for cell in row[:_MOST_COLUMNS]] for row in rows[:_MOST_ROWS]]
    parts = [f"## Sheet: {clean_title(name)}", render_table(shown) or "[This sheet is empty.]"]
    if len(rows) > _MOST_ROWS:
        parts.append(f"[Cut here: rows {_MOST_ROWS + 1:,} to {len(rows):,} are left out.]")
    if width > _MOST_COLUMNS:
        parts.append(f"[Columns {_MOST_COLUMNS + 1:,} to {width:,} are left out.]")
    return "\n\n".join(parts)


def _format_cell(cell: object) -> str:
    """Return a cell's value as text: whole numbers without a decimal point, dates and times as ISO 8601."""
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime.datetime):
        return cell.date().isoformat() if cell.time() == datetime.time() else cell.isoformat(sep=" ")
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return "" if cell is None else str(cell)


# Presentations: per slide a numbered heading, its texts, tables and speaker notes.

_DEEPEST_GROUP = 20


def convert_slides(data: bytes, limits: ConversionLimits) -> ConvertedText:
    """Return the text of a presentation as markdown."""
    from lxml.etree import XMLSyntaxError
    from pptx import Presentation
    from pptx.exc import PythonPptxError

    check_office_archive(data)
    try:
        deck = Presentation(BytesIO(data))
        parts = [_render_slide(number, slide) for number, slide in enumerate(deck.slides, start=1)]
        title = deck.core_properties.title or ""
    except (PythonPptxError, XMLSyntaxError, KeyError, ValueError, AttributeError, OSError) as error:
        raise ConversionError(
            f"is no presentation that can be read ({type(error).__name__}).", "Save it anew as .pptx, and attach that."
        ) from error
    if not parts:
        raise ConversionError("has no slides.", "Check the file.")
    return ConvertedText(title=clean_title(title), text=truncate_text("\n\n".join(parts), limits.characters))


def _render_slide(number: int, slide: Any) -> str:  # noqa: ANN401 - the library has no types
    heading = slide.shapes.title
    title = clean_title(heading.text_frame.text) if heading is not None and heading.has_text_frame else ""
    texts = [f"## Slide {number}: {title}" if title else f"## Slide {number}"]
    for shape in _iter_shapes(slide.shapes):
        if heading is None or shape.shape_id != heading.shape_id:
            texts += _list_shape_texts(shape)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = clean_text(slide.notes_slide.notes_text_frame.text)
        texts += [f"Notes: {notes}"] if notes.strip() else []
    return "\n\n".join(texts)


def _iter_shapes(shapes: Any, depth: int = 0) -> Iterator[Any]:  # noqa: ANN401 - the library has no types
    for shape in shapes:
        if hasattr(shape, "shapes") and depth < _DEEPEST_GROUP:
            yield from _iter_shapes(shape.shapes, depth + 1)
        else:
            yield shape


def _list_shape_texts(shape: Any) -> list[str]:  # noqa: ANN401 - the library has no types
    if getattr(shape, "has_table", False):
        return [render_table([[cell.text for cell in row.cells] for row in shape.table.rows])]
    text = clean_text(shape.text_frame.text) if getattr(shape, "has_text_frame", False) else ""
    return [text] if text.strip() else []
