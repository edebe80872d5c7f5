"""Pictures as letters."""

from base64 import b64encode
from urllib.parse import quote

import pytest
from tests.unit.pictures import png

from lamella.errors import SourceUnreadableError
from lamella.sources.images import decode_data_uri, is_data_uri

PICTURE = png(4, 3)
LETTERS = b64encode(PICTURE).decode()


@pytest.mark.parametrize(
    "uri",
    [
        f"data:image/png;base64,{LETTERS}",
        f"DATA:image/png;charset=utf-8;BASE64,{LETTERS}",
        f"data:image/png;base64,{LETTERS.rstrip('=')}",
        f"data:image/png;base64,{quote(LETTERS, safe='')}",
        f"data:image/png;base64,{LETTERS[:20]}\n  {LETTERS[20:]}",
        f"data:;base64,{LETTERS}",
        f"data:image/png,{quote(PICTURE)}",
    ],
)
def test_bytes_behind_the_letters_are_read(uri: str) -> None:
    assert is_data_uri(uri)
    assert decode_data_uri(uri) == PICTURE


@pytest.mark.parametrize("uri", ["data:image/png;base64", "data:image/png;base64,====!", "data:image/png;base64,abcde"])
def test_invalid_base64_is_reported(uri: str) -> None:
    with pytest.raises(SourceUnreadableError, match="The pasted picture") as raised:
        decode_data_uri(uri)
    assert "attach the file itself" in raised.value.hint


def test_path_is_not_a_data_url() -> None:
    assert not is_data_uri("data/plan.png")
