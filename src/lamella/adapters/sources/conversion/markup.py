"""Pages: what somebody would read of HTML, as markdown; all of it where nothing stands out; bare words at the worst."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape

from lamella.adapters.sources.conversion.model import ConversionFault, ConversionLimits, ConvertedText
from lamella.adapters.sources.conversion.plain import clean, clean_title, cut, decode

_UNREAD = ("script", "style", "template", "noscript", "svg", "head", "title")
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,2000})", re.IGNORECASE)
# Deeper than any page that people write; converters that go down by calling themselves break long after.
_DEEPEST = 1_000
# A tree of half a million elements takes half a gigabyte (2026-11-18).
_MOST_TAGS = 300_000
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]{0,30})")
_PIECE = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]{0,30})?[^<>]*+>?|([^<]++)")
# fmt: off
# What stands alone, or ends where the next of its kind begins.
_VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
    "p", "li", "td", "tr", "th", "dt", "dd",
))
# fmt: on


def convert_page(data: bytes, limits: ConversionLimits, charset: str | None = None) -> ConvertedText:
    """The readable text of a page as markdown, with its title."""
    html = decode(data, charset, is_markup=True)
    if _is_wild(html):
        # What builds a tree of it would go down too far, or take all the memory.
        title, text = _find_title(html), _strip(html)
    else:
        title, text = _read(html, limits)
        text = text or to_markdown(html)
    text = clean(text)
    if not text:
        raise ConversionFault(
            "has no text to read.", "It may be made by scripts in a browser: copy its text, and attach that."
        )
    return ConvertedText(title=clean_title(title), text=cut(text, limits.characters))


def to_markdown(html: str) -> str:
    """All of some HTML as markdown, without its pictures."""
    try:
        from html_to_markdown import ConversionOptions, convert
    except ImportError:
        return _strip(html)
    return convert(html, ConversionOptions(extract_metadata=False, skip_images=True)).content or ""


def _read(html: str, limits: ConversionLimits) -> tuple[str, str]:
    """The title and what stands out as the text; nothing where the extractor finds none or takes too long."""
    from trafilatura import extract
    from trafilatura.metadata import extract_title
    from trafilatura.utils import load_html

    try:
        with _within(limits.seconds / 2):
            tree = load_html(html)
            title = (extract_title(tree) if tree is not None else None) or _find_title(html)
            text = extract(html, output_format="markdown", include_comments=False, include_tables=True)
    except (TimeoutError, RecursionError):
        return _find_title(html), ""
    return title, text or ""


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Stops what takes longer, where the system has alarms."""
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


def _is_wild(html: str) -> bool:
    """Whether a page is nested deeper, or has more tags, than those that read a tree can take."""
    depth = deepest = count = 0
    for tag in _TAG.finditer(html):
        count += 1
        if tag[2].lower() not in _VOID:
            depth = max(0, depth - 1) if tag[1] else depth + 1
            deepest = max(deepest, depth)
    return deepest > _DEEPEST or count > _MOST_TAGS


def _find_title(html: str) -> str:
    found = _TITLE.search(html[:100_000])
    return unescape(found[1]) if found else ""


def _strip(html: str) -> str:
    """The words between tags, in one pass and without a tree."""
    words: list[str] = []
    unread = 0
    for piece in _PIECE.finditer(html):
        name = (piece[2] or "").lower()
        if name in _UNREAD:
            unread = max(0, unread - 1) if piece[1] else unread + 1
        elif piece[3] and not unread:
            words.append(unescape(piece[3]).strip())
        elif words and words[-1] != "\n":
            words.append("\n")
    return "".join(words)
