"""Run each conversion in a child process with a time limit, and report what went wrong."""

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

from lamella.errors import ExtraNotInstalledError, SourceTooLargeError, SourceUnreadableError, install_hint
from lamella.sources.converters import ConversionLimits, ConvertedText, FileFormat

_WORKER_MODULE = "lamella.sources.conversion_worker"
# How many conversions run at once. Each may use as much memory as its limit.
_MAX_PARALLEL = 2
# Increase this when a converter gives another text for the same bytes. It is part of the cache key.
_CONVERTER_VERSION = 1
# The package whose version determines the converted text, and the extra that installs it.
_PACKAGES: Mapping[FileFormat, tuple[str, str]] = MappingProxyType(
    {
        FileFormat.PDF: ("pypdfium2", "documents"),
        FileFormat.DOCUMENT: ("mammoth", "documents"),
        FileFormat.SLIDES: ("python-pptx", "documents"),
        FileFormat.SHEETS: ("python-calamine", "documents"),
        FileFormat.PAGE: ("trafilatura", "web"),
    }
)
_MAX_ERROR_CHARS = 300


class Converter:
    """Converts bytes to text, with one process per conversion and a few conversions at once."""

    def __init__(self, limits: ConversionLimits | None = None, *, worker: str = _WORKER_MODULE) -> None:
        self.limits = limits or ConversionLimits()
        self._worker = worker
        self._slots = BoundedSemaphore(_MAX_PARALLEL)

    def cache_version(self, form: FileFormat) -> str:
        """Return a text that identifies the converter version, for cache keys.

        Raises:
            ExtraNotInstalledError: The package is not installed.
        """
        package, extra = _PACKAGES[form]
        try:
            return f"{form}-{_CONVERTER_VERSION}-{package}-{version(package)}"
        except PackageNotFoundError as error:
            raise extra_not_installed_error(package, extra) from error

    def convert(self, form: FileFormat, data: bytes, *, name: str, charset: str | None = None) -> ConvertedText:
        """Return the title and text of some bytes; ``name`` identifies them in errors."""
        # Raises if the package is missing, before a process is started.
        self.cache_version(form)
        with self._slots:
            answer = self._run_conversion_process(form, data, name=name, charset=charset)
        if "missing" in answer:
            raise extra_not_installed_error(str(answer["missing"]), _PACKAGES[form][1])
        if "fault" in answer:
            refuse = SourceTooLargeError if answer.get("too_large") else SourceUnreadableError
            raise refuse(f"{name} {answer['fault']}", hint=str(answer["hint"]))
        return ConvertedText(title=str(answer["title"]), text=str(answer["text"]))

    def _run_conversion_process(
        self, form: FileFormat, data: bytes, *, name: str, charset: str | None
    ) -> Mapping[str, object]:
        options = json.dumps({**asdict(self.limits), **({"charset": charset} if charset else {})})
        # Files, not pipes: the parent need not read and write at once, and RLIMIT_FSIZE limits the child's output.
        with TemporaryFile() as given, TemporaryFile() as answer, TemporaryFile() as complaint:
            given.write(data)
            given.seek(0)
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", self._worker, form, options],
                stdin=given,
                stdout=answer,
                stderr=complaint,
                env=_child_environment(),
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
            return _read_process_output(code, answer.read(), complaint.read(), name=name, limits=self.limits)


def extra_not_installed_error(package: str, extra: str) -> ExtraNotInstalledError:
    """Return the error for a package that is not installed, with the extra that installs it."""
    return ExtraNotInstalledError(f"The package {package} is not installed.", hint=install_hint(extra))


def _child_environment() -> dict[str, str]:
    """Return the child's environment, which has the module search path and little else.

    The child gets no API keys and imports nothing from the current folder.
    """
    here = {"", os.curdir}
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path not in here), "PYTHONUTF8": "1"}


def _read_process_output(
    code: int, stdout: bytes, stderr: bytes, *, name: str, limits: ConversionLimits
) -> Mapping[str, object]:
    if code == 0:
        answer: Mapping[str, object] = json.loads(stdout)
        return answer
    # The child's soft and hard CPU limits are equal, so the system ends it with either signal.
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
    last = stderr.decode(errors="replace").strip().rpartition("\n")[2][:_MAX_ERROR_CHARS]
    raise SourceUnreadableError(f"{name} cannot be read: {last or code}.", hint="Attach its text instead.")
