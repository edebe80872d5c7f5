"""Reading files: plain ones within their bounds, and nothing that is waited for or never ends."""

import os
from io import BytesIO
from pathlib import Path
from time import time_ns

import pytest

from lamella.errors import SourceTooLargeError
from lamella.files import FileCache, FileStat, read_first_bytes, read_regular_file, read_stream, to_file_stat


def test_regular_file_is_read_up_to_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_regular_file(file, limit=5) == b"12345"
    with pytest.raises(SourceTooLargeError, match="has 5 bytes; Lamella reads files of up to 4 bytes") as caught:
        read_regular_file(file, limit=4)
    assert caught.value.hint == "Name a smaller file, or split this one."


def test_stream_beyond_limit_is_error() -> None:
    with pytest.raises(SourceTooLargeError, match="stdin has more than 4 bytes"):
        read_stream(BytesIO(b"12345"), limit=4, name="stdin")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/random"])
def test_device_is_refused_without_reading(device: str) -> None:
    with pytest.raises(OSError, match="it is a device, not a file"):
        read_regular_file(Path(device))


def test_dev_null_is_empty_file() -> None:
    assert read_regular_file(Path(os.devnull)) == b""


def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="it is a pipe, not a file"):
            read_regular_file(tmp_path / name)


def test_folder_raises_is_a_directory(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_regular_file(tmp_path)


def test_terabyte_file_is_refused_before_reading(tmp_path: Path) -> None:
    file = tmp_path / "sparse"
    with file.open("wb") as made:
        made.truncate(10**12)
    with pytest.raises(SourceTooLargeError, match="1,000,000,000,000 bytes"):
        read_regular_file(file)


def test_read_head_returns_requested_bytes_and_refuses_device(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_first_bytes(tmp_path / "file", limit=3) == b"123"
    with pytest.raises(OSError, match="it is a device, not a file"):
        read_first_bytes(Path("/dev/zero"), limit=3)


LONG_AGO = 1_700_000_000_000_000_000
MINUTE = 60_000_000_000


class Reads:
    """Reads files through a memory, a minute from now, and counts how often one is really read."""

    def __init__(self, *, limit: int = 100, later: int = MINUTE) -> None:
        self.count = 0
        self._memory: FileCache[str] = FileCache(max_weight=limit, get_weight=len, now_ns=lambda: time_ns() + later)

    def __call__(self, file: Path, *, keeps: bool = True) -> str:
        return self._memory.get_or_compute(file, file, lambda: self._read(file), is_cacheable=lambda _: keeps)

    def _read(self, file: Path) -> str:
        self.count += 1
        return file.read_text(encoding="utf-8")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "a.md", "one")


def write(file: Path, text: str) -> Path:
    """A file with a time that does not move."""
    file.write_text(text, encoding="utf-8")
    os.utime(file, ns=(LONG_AGO, LONG_AGO))
    return file


def test_unchanged_file_is_read_once(file: Path) -> None:
    read = Reads()
    assert [read(file), read(file), read(file)] == ["one"] * 3
    assert read.count == 1


def test_file_that_was_touched_just_now_is_read_again(file: Path) -> None:
    read = Reads(later=0)
    assert [read(file), read(file)] == ["one", "one"]
    assert read.count == 2


@pytest.mark.parametrize("text", ["another size", "two"])
def test_change_with_same_modification_time_is_seen(file: Path, text: str) -> None:
    read = Reads()
    read(file)
    write(file, text)
    assert read(file) == text


def test_replaced_file_is_seen(file: Path, tmp_path: Path) -> None:
    read = Reads()
    read(file)
    write(tmp_path / "b.md", "two").replace(file)
    assert read(file) == "two"


def test_least_recently_used_entry_is_evicted(file: Path, tmp_path: Path) -> None:
    read = Reads(limit=6)
    others = [write(tmp_path / name, name[:3]) for name in ("bbb", "ccc")]
    for one in (file, others[0], file, others[1], file):
        read(one)
    assert read.count == 3
    read(others[0])
    assert read.count == 4


def test_uncacheable_file_is_read_again(file: Path) -> None:
    read = Reads()
    read(file, keeps=False)
    read(file, keeps=False)
    assert read.count == 2


def test_deleted_file_raises_reader_error(file: Path) -> None:
    read = Reads()
    read(file)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        read(file)


def test_file_is_settled_two_seconds_after_change() -> None:
    state = FileStat(size=1, modified_ns=5, changed_ns=7, inode=1, device=1)
    assert not state.is_settled(7 + 2_000_000_000)
    assert state.is_settled(8 + 2_000_000_000)


def test_replaced_file_has_other_stat(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for file in (first, second):
        file.write_text("same", encoding="utf-8")
        os.utime(file, ns=(5, 5))
    before = to_file_stat(first.stat())
    second.replace(first)
    assert to_file_stat(first.stat()).persistent_fields != before.persistent_fields
