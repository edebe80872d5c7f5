"""Files as a client sends them."""

from pathlib import Path

import pytest

from lamella.codebase.attachments import parse_files_from_json, read_files_from_json
from lamella.errors import SourceNotFoundError, SourceUnreadableError


@pytest.mark.parametrize(
    "data",
    [b'{"a.py": "x"}', b'[{"path": "a.py", "text": "x"}]', b'[{"path": "a.py", "content": "x", "size": 1}]'],
)
def test_files_are_texts_by_path_or_a_list(data: bytes) -> None:
    assert parse_files_from_json(data, "it") == {"a.py": "x"}


@pytest.mark.parametrize(
    "data", [b"", b"{", b"1", b'"a"', b'{"a": 1}', b'["a"]', b'[{"path": "a"}]', b"\xff", b"[" * 99_999]
)
def test_input_without_files_is_error_with_hint(data: bytes) -> None:
    with pytest.raises(SourceUnreadableError) as raised:
        parse_files_from_json(data, "it")
    assert "src/main.py" in raised.value.hint


def test_file_list_is_read_and_missing_file_is_error(tmp_path: Path) -> None:
    (tmp_path / "files.json").write_text('{"a.py": "x"}')
    assert read_files_from_json(tmp_path / "files.json") == {"a.py": "x"}
    with pytest.raises(SourceNotFoundError):
        read_files_from_json(tmp_path / "none.json")
