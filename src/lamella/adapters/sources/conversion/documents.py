"""Documents of word processors: headings, lists, tables and notes as markdown. Pictures and macros are left out."""

from io import BytesIO
from xml.parsers.expat import ExpatError

from lamella.adapters.sources.conversion.markup import to_markdown
from lamella.adapters.sources.conversion.model import ConversionFault, ConversionLimits, ConvertedText
from lamella.adapters.sources.conversion.packages import check_package
from lamella.adapters.sources.conversion.plain import clean, cut


def convert_document(data: bytes, limits: ConversionLimits) -> ConvertedText:
    """The text of a document as markdown."""
    import html_to_markdown  # noqa: F401 - asked for here, so that its absence is told before any work
    import mammoth

    check_package(data)
    try:
        read = mammoth.convert_to_html(
            BytesIO(data), convert_image=_drop, include_embedded_style_map=False, external_file_access=False
        )
    except (KeyError, IndexError, ValueError, AttributeError, OSError, ExpatError) as error:
        raise ConversionFault(
            f"is no document of a word processor ({type(error).__name__}).", "Save it anew as .docx, and attach that."
        ) from error
    text = clean(to_markdown(read.value))
    if not text:
        raise ConversionFault("has no text.", "If it has only pictures, attach those.")
    return ConvertedText(title="", text=cut(text, limits.characters))


def _drop(_image: object) -> list[object]:
    return []
