"""Pictures: from the vault, from the web, or as bytes that somebody gives."""

from base64 import b64encode
from pathlib import Path

import pytest
from tests.unit.pictures import JPEG, png

from lamella.adapters.sources.pictures.reader import PictureReader
from lamella.adapters.sources.vault import Vault
from lamella.core.artifacts.model import Kind
from lamella.core.artifacts.wanted import Wanted
from lamella.errors import NotAvailableError, SourceMissingError, SourceUnreadableError

URL = "https://e.org/plan"


@pytest.fixture
def reader(tmp_path: Path) -> PictureReader:
    (tmp_path / "plan.png").write_bytes(png(4, 3))
    (tmp_path / "photo.png").write_bytes(JPEG)
    (tmp_path / "fake.png").write_text("no picture", encoding="utf-8")
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    return PictureReader(read_bytes=Vault(tmp_path).read_bytes)


def test_a_picture_is_read_with_its_size(reader: PictureReader) -> None:
    (image,) = reader.read(Wanted(kind=Kind.IMAGE, name="plan.png")).images
    assert (image.media_type, image.width, image.height) == ("image/png", 4, 3)


def test_the_bytes_of_a_file_say_what_it_is_and_not_its_ending(reader: PictureReader) -> None:
    assert reader.read(Wanted(kind=Kind.IMAGE, name="photo.png")).images[0].media_type == "image/jpeg"


@pytest.mark.parametrize("name", ["a.md", "fake.png"])
def test_a_file_that_is_no_picture_is_said(reader: PictureReader, name: str) -> None:
    with pytest.raises(SourceUnreadableError, match=f"{name} is not a picture that models take"):
        reader.read(Wanted(kind=Kind.IMAGE, name=name))


def test_bytes_that_are_given_need_no_vault() -> None:
    made = PictureReader().read(Wanted(kind=Kind.IMAGE, name="", title="Plan", data=png(4, 3), media_type="image/png"))
    assert (made.title, made.id, made.source.path) == ("Plan", made.images[0].hash, None)


def test_a_pasted_picture_needs_no_vault_and_leaves_no_letters() -> None:
    made = PictureReader().read(Wanted(kind=Kind.IMAGE, name=f"data:image/png;base64,{b64encode(png(4, 3)).decode()}"))
    assert (made.title, made.source.path, made.source.url) == ("image", None, None)
    assert made.images[0].data == png(4, 3)


def test_a_file_needs_a_vault() -> None:
    with pytest.raises(SourceMissingError, match="no vault to read it from"):
        PictureReader().read(Wanted(kind=Kind.IMAGE, name="plan.png"))


def test_a_picture_of_the_web_stays_a_link_where_nothing_fetches() -> None:
    with pytest.raises(NotAvailableError, match=f"{URL} is not fetched"):
        PictureReader().read(Wanted(kind=Kind.IMAGE, name=URL))


def test_what_is_fetched_is_looked_at_as_any_other_bytes() -> None:
    pages = {URL: png(4, 3), f"{URL}.html": b"<html>"}
    reader = PictureReader(fetch=pages.__getitem__)
    made = reader.read(Wanted(kind=Kind.IMAGE, name=URL))
    assert (made.title, made.source.url, made.images[0].width) == (URL, URL, 4)
    with pytest.raises(SourceUnreadableError, match="not a picture that models take"):
        reader.read(Wanted(kind=Kind.IMAGE, name=f"{URL}.html"))
