"""Slides: each under a heading with its number and title, with its texts, tables and the speaker's notes."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from lamella.adapters.sources.conversion.model import ConversionFault, ConversionLimits, ConvertedText
from lamella.adapters.sources.conversion.packages import check_package
from lamella.adapters.sources.conversion.plain import clean, clean_title, cut
from lamella.adapters.sources.conversion.tables import render_table

_DEEPEST_GROUP = 20


def convert_slides(data: bytes, limits: ConversionLimits) -> ConvertedText:
    """The text of a presentation as markdown."""
    from lxml.etree import XMLSyntaxError
    from pptx import Presentation
    from pptx.exc import PythonPptxError

    check_package(data)
    try:
        deck = Presentation(BytesIO(data))
        parts = [_render_slide(number, slide) for number, slide in enumerate(deck.slides, start=1)]
        title = deck.core_properties.title or ""
    except (PythonPptxError, XMLSyntaxError, KeyError, ValueError, AttributeError, OSError) as error:
        raise ConversionFault(
            f"is no presentation that can be read ({type(error).__name__}).", "Save it anew as .pptx, and attach that."
        ) from error
    if not parts:
        raise ConversionFault("has no slides.", "Check the file.")
    return ConvertedText(title=clean_title(title), text=cut("\n\n".join(parts), limits.characters))


def _render_slide(number: int, slide: Any) -> str:  # noqa: ANN401 - the library has no types
    heading = slide.shapes.title
    title = clean_title(heading.text_frame.text) if heading is not None and heading.has_text_frame else ""
    texts = [f"## Slide {number}: {title}" if title else f"## Slide {number}"]
    for shape in _walk(slide.shapes):
        if heading is None or shape.shape_id != heading.shape_id:
            texts += _read_shape(shape)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = clean(slide.notes_slide.notes_text_frame.text)
        texts += [f"Notes: {notes}"] if notes.strip() else []
    return "\n\n".join(texts)


def _walk(shapes: Any, depth: int = 0) -> Iterator[Any]:  # noqa: ANN401 - the library has no types
    for shape in shapes:
        if hasattr(shape, "shapes") and depth < _DEEPEST_GROUP:
            yield from _walk(shape.shapes, depth + 1)
        else:
            yield shape


def _read_shape(shape: Any) -> list[str]:  # noqa: ANN401 - the library has no types
    if getattr(shape, "has_table", False):
        return [render_table([[cell.text for cell in row.cells] for row in shape.table.rows])]
    text = clean(shape.text_frame.text) if getattr(shape, "has_text_frame", False) else ""
    return [text] if text.strip() else []
