"""The converter: starts a child for each conversion, waits no longer than it may, and says what went wrong."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from tempfile import TemporaryFile
from threading import BoundedSemaphore
from types import MappingProxyType

from lamella.adapters.sources.conversion.model import ConversionLimits, ConvertedText, FileForm
from lamella.errors import ExtraMissingError, SourceTooLargeError, SourceUnreadableError, tell_install

_WORKER = "lamella.adapters.sources.conversion.worker"
# Each may take as much memory as its limit.
_AT_ONCE = 2
# Goes up when a converter gives another text for the same bytes.
_VERSION = 1
# The package that decides what comes out, and the extra that brings it.
_PACKAGES: Mapping[FileForm, tuple[str, str]] = MappingProxyType(
    {
        FileForm.PDF: ("pypdfium2", "documents"),
        FileForm.DOCUMENT: ("mammoth", "documents"),
        FileForm.SLIDES: ("python-pptx", "documents"),
        FileForm.SHEETS: ("python-calamine", "documents"),
        FileForm.PAGE: ("trafilatura", "web"),
    }
)
_LETTERS_OF_FAULT = 300


class Converter:
    """Bytes to text, a process per conversion, a few at once."""

    def __init__(self, limits: ConversionLimits | None = None, *, worker: str = _WORKER) -> None:
        self.limits = limits or ConversionLimits()
        self._worker = worker
        self._turns = BoundedSemaphore(_AT_ONCE)

    def version(self, form: FileForm) -> str:
        """What a text depends on besides the bytes; an error where the package is not installed."""
        package, extra = _PACKAGES[form]
        try:
            return f"{form}-{_VERSION}-{package}-{version(package)}"
        except PackageNotFoundError as error:
            raise miss_extra(package, extra) from error

    def convert(self, form: FileForm, data: bytes, *, name: str, charset: str | None = None) -> ConvertedText:
        """The text in some bytes; an error calls them by their ``name``."""
        self.version(form)
        with self._turns:
            told = self._run(form, data, name=name, charset=charset)
        if "missing" in told:
            raise miss_extra(str(told["missing"]), _PACKAGES[form][1])
        if "fault" in told:
            refuse = SourceTooLargeError if told.get("too_large") else SourceUnreadableError
            raise refuse(f"{name} {told['fault']}", hint=str(told["hint"]))
        return ConvertedText(title=str(told["title"]), text=str(told["text"]))

    def _run(self, form: FileForm, data: bytes, *, name: str, charset: str | None) -> Mapping[str, object]:
        options = json.dumps({**asdict(self.limits), **({"charset": charset} if charset else {})})
        # Files and no pipes: nobody has to read and write at once, and what the child writes is bounded by the system.
        with TemporaryFile() as given, TemporaryFile() as answer, TemporaryFile() as complaint:
            given.write(data)
            given.seek(0)
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", self._worker, form, options],
                stdin=given,
                stdout=answer,
                stderr=complaint,
                env=_surround(),
            )
            try:
                code = child.wait(self.limits.seconds + 1)
            except subprocess.TimeoutExpired as error:
                raise SourceTooLargeError(
                    f"{name} took more than {self.limits.seconds:g} s to read.",
                    hint="Attach a smaller part of it, or allow more in document_seconds.",
                ) from error
            finally:
                if child.poll() is None:
                    child.kill()
                    child.wait()
            answer.seek(0)
            complaint.seek(0)
            return _read_answer(code, answer.read(), complaint.read(), name=name, limits=self.limits)


def miss_extra(package: str, extra: str) -> ExtraMissingError:
    """The error for a package that is not installed, with the extra that brings it."""
    return ExtraMissingError(f"The package {package} is not installed.", hint=tell_install(extra))


def _surround() -> dict[str, str]:
    """What the child knows: where modules are. It gets no key, and imports nothing from the folder it stands in."""
    here = {"", os.curdir}
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path not in here), "PYTHONUTF8": "1"}


def _read_answer(
    code: int, answer: bytes, complaint: bytes, *, name: str, limits: ConversionLimits
) -> Mapping[str, object]:
    if code == 0:
        told: Mapping[str, object] = json.loads(answer)
        return told
    if code == -getattr(signal, "SIGXCPU", 0) or code == -getattr(signal, "SIGKILL", 0):
        raise SourceTooLargeError(
            f"{name} took more than {limits.seconds:g} s to read.",
            hint="Attach a smaller part of it, or allow more in document_seconds.",
        )
    if code < 0:
        raise SourceTooLargeError(
            f"{name} needs more than {limits.memory:,} bytes of memory, or breaks what reads it (signal {-code}).",
            hint="Attach a smaller part of it, or its text; document_memory allows more.",
        )
    last = complaint.decode(errors="replace").strip().rpartition("\n")[2][:_LETTERS_OF_FAULT]
    raise SourceUnreadableError(f"{name} cannot be read: {last or code}.", hint="Attach its text instead.")
