"""The child process: convert standard input to JSON, within limits that the process sets for itself.

Run as ``python -m lamella.sources.conversion_worker FORM LIMITS``. It imports only the one converter it
needs.
"""

import json
import sys
from collections.abc import Callable

from lamella.sources.converters import ConversionError, ConversionLimits, ConvertedText, FileFormat

_TOO_DEEP_MESSAGE = "is nested too deeply to be read."
_SIMPLER_COPY_HINT = "Save a simpler copy, or attach its text."


def main(arguments: list[str]) -> None:
    """Convert standard input to a JSON object on standard output; a failure is reported as JSON too."""
    form, given = FileFormat(arguments[0]), json.loads(arguments[1])
    charset = given.pop("charset", None)
    limits = ConversionLimits(**given)
    limit_process(limits)
    try:
        found = _convert(form, sys.stdin.buffer.read(), limits, charset=charset)
        result: dict[str, object] = {"title": found.title, "text": found.text}
    except ConversionError as fault:
        result = {"fault": fault.message, "hint": fault.hint, "too_large": fault.too_large}
    except MemoryError:
        more = f"needs more than {limits.memory:,} bytes of memory to be read."
        result = {"fault": more, "hint": _SIMPLER_COPY_HINT, "too_large": True}
    except RecursionError:
        result = {"fault": _TOO_DEEP_MESSAGE, "hint": _SIMPLER_COPY_HINT, "too_large": True}
    except ModuleNotFoundError as error:
        result = {"missing": error.name}
    json.dump(result, sys.stdout, ensure_ascii=True)


def limit_process(limits: ConversionLimits) -> None:
    """Make the system end this process if it exceeds its limits of time, memory or output size."""
    try:
        import resource
    except ImportError:
        return  # this system has no such limits; the parent still limits the time
    seconds = int(limits.seconds) + 1
    for name, value in (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
        # A JSON escape takes six letters per character, and twelve outside of the basic multilingual plane.
        (resource.RLIMIT_FSIZE, 12 * limits.characters + 1_000_000),
    ):
        _, most = resource.getrlimit(name)
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(name, (value, value))


def _convert(form: FileFormat, data: bytes, limits: ConversionLimits, *, charset: str | None) -> ConvertedText:
    if form is FileFormat.PAGE:
        from lamella.sources.converters import convert_page

        return convert_page(data, limits, charset)
    return _import_converter(form)(data, limits)


def _import_converter(form: FileFormat) -> Callable[[bytes, ConversionLimits], ConvertedText]:
    """Return the converter of a format. Only this one is imported."""
    if form is FileFormat.PDF:
        from lamella.sources.converters import convert_pdf

        return convert_pdf
    if form is FileFormat.DOCUMENT:
        from lamella.sources.converters import convert_docx

        return convert_docx
    if form is FileFormat.SLIDES:
        from lamella.sources.converters import convert_slides

        return convert_slides
    from lamella.sources.converters import convert_sheets

    return convert_sheets


if __name__ == "__main__":
    main(sys.argv[1:])
