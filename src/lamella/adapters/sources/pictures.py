"""Pictures: from the vault, or as bytes that somebody gives."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePosixPath

import imagesize

from lamella.core.artifacts.kinds import KINDS
from lamella.core.artifacts.make import make_image, make_image_value
from lamella.core.artifacts.model import Artifact, Image
from lamella.core.artifacts.wanted import Wanted
from lamella.errors import SourceUnreadableError
from lamella.ports import no_vault

_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureReader:
    """Reads pictures that models take: files, by ``read_bytes`` where there is a vault, and bytes that are given."""

    read_bytes: Callable[[str], bytes] | None = None

    def read(self, wanted: Wanted) -> Artifact:
        if wanted.data is not None:
            name = wanted.title or wanted.name or "The picture"
            image = parse_image(wanted.data, media_type=wanted.media_type, name=name)
        else:
            image = self._read_file(wanted)
        return make_image(image, title=wanted.title, path=wanted.name or None)

    def _read_file(self, wanted: Wanted) -> Image:
        if self.read_bytes is None:
            raise no_vault(wanted.name)
        endings = KINDS[wanted.kind].suffixes
        if PurePosixPath(wanted.name).suffix.lower() not in endings:
            raise SourceUnreadableError(
                f"{wanted.name} is not a picture that models take.", hint=f"Use one of: {', '.join(endings)}."
            )
        return parse_image(self.read_bytes(wanted.name), media_type=None, name=wanted.name)


def parse_image(data: bytes, *, media_type: str | None, name: str) -> Image:
    """A picture with its size; an error if its bytes are no picture that models take, or not of the type given."""
    found = next((kind for kind, signature in _SIGNATURES.items() if signature.match(data)), None)
    width, height = imagesize.get(BytesIO(data)) if found else (0, 0)
    if found is None or width <= 0 or height <= 0:
        raise SourceUnreadableError(
            f"{name} is not a picture that models take ({len(data):,} bytes).",
            hint=f"Use one of: {', '.join(_SIGNATURES)}.",
        )
    if media_type not in (None, found):
        raise SourceUnreadableError(
            f"{name} is given as {media_type}, and its bytes are {found}.", hint=f"Give it the media type {found}."
        )
    return make_image_value(data, media_type=found, width=int(width), height=int(height))
