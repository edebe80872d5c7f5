"""Reading files: plain ones within their bounds, and nothing that is waited for or never ends."""

import os
from io import BytesIO
from pathlib import Path

import pytest

from lamella.adapters.files.reading import read_plain, read_stream
from lamella.errors import SourceTooLargeError


def test_a_plain_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_plain(file, limit=5) == b"12345"
    with pytest.raises(SourceTooLargeError, match="has 5 bytes; Lamella reads files of up to 4 bytes") as caught:
        read_plain(file, limit=4)
    assert caught.value.hint == "Name a smaller file, or split this one."


def test_what_a_stream_has_beyond_the_limit_is_an_error_that_names_it() -> None:
    with pytest.raises(SourceTooLargeError, match="stdin has more than 4 bytes"):
        read_stream(BytesIO(b"12345"), limit=4, name="stdin")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/random"])
def test_a_device_is_refused_and_not_read(device: str) -> None:
    with pytest.raises(OSError, match="it is a device, not a file"):
        read_plain(Path(device))


def test_the_empty_device_stands_for_no_file() -> None:
    assert read_plain(Path(os.devnull)) == b""


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="it is a pipe, not a file"):
            read_plain(tmp_path / name)


def test_a_folder_is_told_as_the_system_tells_it(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_plain(tmp_path)


def test_a_file_of_a_terabyte_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "sparse"
    with file.open("wb") as made:
        made.truncate(10**12)
    with pytest.raises(SourceTooLargeError, match="1,000,000,000,000 bytes"):
        read_plain(file)
