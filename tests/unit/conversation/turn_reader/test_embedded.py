"""The pictures of the active note: read for its turn, within bounds."""

from tests.unit.pictures import png

from lamella.conversation.turn_reader import MAX_IMAGE_BYTES, MAX_IMAGES, MAX_UNREACHABLE_IMAGES, load_embedded_images
from lamella.core.artifacts.kinds import SourceMedium, make_artifact, make_image_artifact, make_image_data
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, UnresolvedAttachment
from lamella.errors import SourceUnreachableError
from lamella.ports import SourceReaders


class _Sea:
    """A reader that gives a picture of so many bytes, or reaches nothing."""

    def __init__(self, size: int | None) -> None:
        self.asked: list[str] = []
        self._size = size

    def read(self, attachment: UnresolvedAttachment) -> Artifact:
        self.asked.append(attachment.name)
        if self._size is None:
            raise SourceUnreachableError(f"{attachment.name} did not answer.", hint="Try again.")
        data = png(1, 1, len(self.asked) % 256).ljust(self._size, b"\0")
        return make_image_artifact(make_image_data(data, media_type="image/png", width=1, height=1))


def note(pictures: int, *, kind: ArtifactKind = ArtifactKind.ACTIVE_NOTE) -> Artifact:
    text = " ".join(f"![](https://e.org/{number})" for number in range(pictures))
    return make_artifact(kind, text=text, source=ArtifactSource(path="n.md"))


def read(sea: _Sea, one: Artifact) -> tuple[Artifact, tuple[str, ...]]:
    return load_embedded_images(one, SourceReaders(readers={SourceMedium.PICTURE: sea}))


def test_inactive_note_loads_no_images() -> None:
    sea = _Sea(0)
    assert read(sea, note(3, kind=ArtifactKind.NOTE))[0].images == ()
    assert sea.asked == []


def test_number_of_images_is_limited_with_warning() -> None:
    sea = _Sea(0)
    shown, told = read(sea, note(MAX_IMAGES + 7))
    assert (len(shown.images), len(sea.asked)) == (MAX_IMAGES, MAX_IMAGES)
    assert told == (f"7 more images of n.md are not sent; at most {MAX_IMAGES} of a note are read.",)


def test_bytes_of_images_are_limited() -> None:
    sea = _Sea(MAX_IMAGE_BYTES // 2)
    shown, told = read(sea, note(5))
    assert (len(shown.images), len(sea.asked)) == (3, 3)
    assert "https://e.org/3 stays a link. its others have 150,000,000 bytes already" in told[0]


def test_unreachable_images_stop_further_downloads() -> None:
    sea = _Sea(None)
    _, told = read(sea, note(5))
    assert len(sea.asked) == MAX_UNREACHABLE_IMAGES
    assert told[0].endswith("https://e.org/0 stays a link. https://e.org/0 did not answer.")
    assert told[-1].endswith("https://e.org/4 stays a link. 2 others could not be reached.")
