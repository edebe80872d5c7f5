"""The child: converts what stands on its standard input, within limits that it sets itself, and writes JSON.

Run as ``python -m lamella.adapters.sources.conversion.worker FORM LIMITS``. It imports one converter and nothing else.
"""

import json
import sys
from collections.abc import Callable

from lamella.adapters.sources.conversion.model import ConversionFault, ConversionLimits, ConvertedText, FileForm

_DEEP = "is nested too deeply to be read."
_SIMPLER = "Save a simpler copy, or attach its text."


def main(arguments: list[str]) -> None:
    """Convert standard input to a JSON object on standard output; a fault is one too."""
    form, given = FileForm(arguments[0]), json.loads(arguments[1])
    charset = given.pop("charset", None)
    limits = ConversionLimits(**given)
    limit_process(limits)
    try:
        found = _convert(form, sys.stdin.buffer.read(), limits, charset=charset)
        told: dict[str, object] = {"title": found.title, "text": found.text}
    except ConversionFault as fault:
        told = {"fault": fault.told, "hint": fault.hint, "too_large": fault.too_large}
    except MemoryError:
        more = f"needs more than {limits.memory:,} bytes of memory to be read."
        told = {"fault": more, "hint": _SIMPLER, "too_large": True}
    except RecursionError:
        told = {"fault": _DEEP, "hint": _SIMPLER, "too_large": True}
    except ModuleNotFoundError as error:
        told = {"missing": error.name}
    json.dump(told, sys.stdout, ensure_ascii=True)


def limit_process(limits: ConversionLimits) -> None:
    """Let the system end this process when it takes more time or memory, or writes more, than it may."""
    try:
        import resource
    except ImportError:
        return  # a system without limits: the parent still counts the time
    seconds = int(limits.seconds) + 1
    for name, value in (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
        # Escapes of JSON take up to six letters for a character, twice that for one outside of the basic plane.
        (resource.RLIMIT_FSIZE, 12 * limits.characters + 1_000_000),
    ):
        _, most = resource.getrlimit(name)
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(name, (value, value))


def _convert(form: FileForm, data: bytes, limits: ConversionLimits, *, charset: str | None) -> ConvertedText:
    if form is FileForm.PAGE:
        from lamella.adapters.sources.conversion.markup import convert_page

        return convert_page(data, limits, charset)
    return _find(form)(data, limits)


def _find(form: FileForm) -> Callable[[bytes, ConversionLimits], ConvertedText]:
    """The converter of a form; each is imported alone."""
    if form is FileForm.PDF:
        from lamella.adapters.sources.conversion.pdf import convert_pdf

        return convert_pdf
    if form is FileForm.DOCUMENT:
        from lamella.adapters.sources.conversion.documents import convert_document

        return convert_document
    if form is FileForm.SLIDES:
        from lamella.adapters.sources.conversion.slides import convert_slides

        return convert_slides
    from lamella.adapters.sources.conversion.sheets import convert_sheets

    return convert_sheets


if __name__ == "__main__":
    main(sys.argv[1:])
