from pathlib import Path

import pytest

from lamella.errors import SettingError
from lamella.providers.script_file import open_script


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('[{"calls": [{"name": "look", "arguments": "{}"}]}]', "0.calls.0.arguments: Input should be an object"),
        ('["Yes.", {"texts": "No."}]', "1.texts: Extra inputs are not permitted"),
        ("{}", "the file: Input should be a valid array"),
    ],
)
def test_invalid_script_is_reported_with_position(tmp_path: Path, written: str, told: str) -> None:
    file = tmp_path / "script.json"
    file.write_text(written, encoding="utf-8")
    with pytest.raises(SettingError) as refused:
        open_script(file)
    assert told in refused.value.message
