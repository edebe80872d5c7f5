"""Files as a client sends them."""

from pathlib import Path

import pytest

from lamella.codebase.attachments import parse_json_files, read_json_files
from lamella.errors import SourceNotFoundError, SourceUnreadableError


@pytest.mark.parametrize(
    "data",
    [b'{"a.py": "x"}', b'[{"path": "a.py", "text": "x"}]', b'[{"path": "a.py", "content": "x", "size": 1}]'],
)
def test_files_are_texts_by_path_or_a_list(data: bytes) -> None:
    assert parse_json_files(data, "it") == {"a.py": "x"}


@pytest.mark.parametrize(
    "data", [b"", b"{", b"1", b'"a"', b'{"a": 1}', b'["a"]', b'[{"path": "a"}]', b"\xff", b"[" * 99_999]
)
def test_input_without_files_is_error_with_hint(data: bytes) -> None:
    with pytest.raises(SourceUnreadableError) as raised:
        parse_json_files(data, "it")
    assert "src/main.py" in raised.value.hint


def test_file_list_is_read_and_missing_file_is_error(tmp_path: Path) -> None:
    (tmp_path / "files.json").write_text('{"a.py": "x"}')
    assert read_json_files(tmp_path / "files.json") == {"a.py": "x"}
    with pytest.raises(SourceNotFoundError):
        read_json_files(tmp_path / "none.json")
