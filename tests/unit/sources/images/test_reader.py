"""Pictures: from the vault, from the web, or as bytes that somebody gives."""

from base64 import b64encode
from pathlib import Path

import pytest
from tests.unit.pictures import JPEG, png

from lamella.core.artifacts.model import ArtifactKind, UnresolvedAttachment
from lamella.errors import NotAvailableError, SourceNotFoundError, SourceUnreadableError
from lamella.sources.images import ImageReader
from lamella.sources.vault import Vault

URL = "https://e.org/plan"


@pytest.fixture
def reader(tmp_path: Path) -> ImageReader:
    (tmp_path / "plan.png").write_bytes(png(4, 3))
    (tmp_path / "photo.png").write_bytes(JPEG)
    (tmp_path / "fake.png").write_text("no picture", encoding="utf-8")
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    return ImageReader(read_bytes=Vault(tmp_path).read_bytes)


def test_image_is_read_with_size(reader: ImageReader) -> None:
    (image,) = reader.read(UnresolvedAttachment(kind=ArtifactKind.IMAGE, name="plan.png")).images
    assert (image.media_type, image.width, image.height) == ("image/png", 4, 3)


def test_image_type_is_detected_from_bytes_not_extension(reader: ImageReader) -> None:
    assert (
        reader.read(UnresolvedAttachment(kind=ArtifactKind.IMAGE, name="photo.png")).images[0].media_type
        == "image/jpeg"
    )


@pytest.mark.parametrize("name", ["a.md", "fake.png"])
def test_file_that_is_not_image_is_reported(reader: ImageReader, name: str) -> None:
    with pytest.raises(SourceUnreadableError, match=f"{name} is not a picture that models take"):
        reader.read(UnresolvedAttachment(kind=ArtifactKind.IMAGE, name=name))


def test_bytes_that_are_given_need_no_vault() -> None:
    made = ImageReader().read(
        UnresolvedAttachment(kind=ArtifactKind.IMAGE, name="", title="Plan", data=png(4, 3), media_type="image/png")
    )
    assert (made.title, made.id, made.source.path) == ("Plan", made.images[0].hash, None)


def test_pasted_image_needs_no_vault_and_leaves_no_letters() -> None:
    made = ImageReader().read(
        UnresolvedAttachment(kind=ArtifactKind.IMAGE, name=f"data:image/png;base64,{b64encode(png(4, 3)).decode()}")
    )
    assert (made.title, made.source.path, made.source.url) == ("image", None, None)
    assert made.images[0].data == png(4, 3)


def test_file_needs_a_vault() -> None:
    with pytest.raises(SourceNotFoundError, match="no vault to read it from"):
        ImageReader().read(UnresolvedAttachment(kind=ArtifactKind.IMAGE, name="plan.png"))


def test_web_image_stays_link_without_fetcher() -> None:
    with pytest.raises(NotAvailableError, match=f"{URL} is not fetched"):
        ImageReader().read(UnresolvedAttachment(kind=ArtifactKind.IMAGE, name=URL))


def test_fetched_image_is_checked_like_others() -> None:
    pages = {URL: png(4, 3), f"{URL}.html": b"<html>"}
    reader = ImageReader(fetch=pages.__getitem__)
    made = reader.read(UnresolvedAttachment(kind=ArtifactKind.IMAGE, name=URL))
    assert (made.title, made.source.url, made.images[0].width) == (URL, URL, 4)
    with pytest.raises(SourceUnreadableError, match="not a picture that models take"):
        reader.read(UnresolvedAttachment(kind=ArtifactKind.IMAGE, name=f"{URL}.html"))
