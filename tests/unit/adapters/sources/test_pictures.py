"""Pictures: from the vault, or as bytes that somebody gives."""

from pathlib import Path

import pytest
from tests.unit.pictures import png

from lamella.adapters.sources.pictures import PictureReader, parse_image
from lamella.adapters.sources.vault import Vault
from lamella.core.artifacts.model import Kind
from lamella.core.artifacts.wanted import Wanted
from lamella.errors import SourceMissingError, SourceUnreadableError


@pytest.fixture
def reader(tmp_path: Path) -> PictureReader:
    (tmp_path / "plan.png").write_bytes(png(4, 3))
    (tmp_path / "fake.png").write_text("no picture", encoding="utf-8")
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    return PictureReader(read_bytes=Vault(tmp_path).read_bytes)


def test_a_picture_is_read_with_its_size(reader: PictureReader) -> None:
    (image,) = reader.read(Wanted(kind=Kind.IMAGE, name="plan.png")).images
    assert (image.media_type, image.width, image.height) == ("image/png", 4, 3)


@pytest.mark.parametrize("name", ["a.md", "fake.png"])
def test_a_file_that_is_no_picture_is_said(reader: PictureReader, name: str) -> None:
    with pytest.raises(SourceUnreadableError, match=f"{name} is not a picture that models take"):
        reader.read(Wanted(kind=Kind.IMAGE, name=name))


def test_bytes_that_are_given_need_no_vault() -> None:
    made = PictureReader().read(Wanted(kind=Kind.IMAGE, name="", title="Plan", data=png(4, 3), media_type="image/png"))
    assert (made.title, made.id, made.source.path) == ("Plan", made.images[0].hash, None)


def test_a_file_needs_a_vault() -> None:
    with pytest.raises(SourceMissingError, match="no vault to read it from"):
        PictureReader().read(Wanted(kind=Kind.IMAGE, name="plan.png"))


def test_bytes_of_another_type_than_is_said_are_refused() -> None:
    wanted = Wanted(kind=Kind.IMAGE, name="", data=png(2, 2), media_type="image/gif")
    with pytest.raises(SourceUnreadableError, match="The picture is given as image/gif, and its bytes are image/png"):
        PictureReader().read(wanted)


@pytest.mark.parametrize("data", [b"", b"not a picture", png(2, 2)[:10]])
def test_bytes_that_are_no_picture_are_said(data: bytes) -> None:
    with pytest.raises(SourceUnreadableError, match="not a picture"):
        parse_image(data, media_type="image/png", name="x")
