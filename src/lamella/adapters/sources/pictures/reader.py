"""The reader of pictures: from the vault, from the web where something fetches, or as bytes that somebody gives."""

from collections.abc import Callable
from dataclasses import dataclass

from lamella.adapters.sources.pictures.content import parse_image
from lamella.adapters.sources.pictures.pasted import PASTED, is_pasted, read_pasted
from lamella.core.artifacts.make import make_image
from lamella.core.artifacts.model import Artifact
from lamella.core.artifacts.wanted import Wanted
from lamella.core.text.addresses import is_page
from lamella.errors import NotAvailableError
from lamella.ports import no_vault

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureReader:
    """Reads pictures that models take: files, pages' pictures, and bytes that are given.

    ``read_bytes`` gives those of a file where there is a vault, ``fetch`` those behind an address of the web. It is
    whoever fetches who refuses addresses and bounds sizes and times. Without it such a picture stays a link.
    """

    read_bytes: Callable[[str], bytes] | None = None
    fetch: Callable[[str], bytes] | None = None

    def read(self, wanted: Wanted) -> Artifact:
        if wanted.data is not None:
            name = wanted.title or wanted.name or "The picture"
            image = parse_image(wanted.data, media_type=wanted.media_type, name=name)
            place = {"url" if is_page(wanted.name) else "path": wanted.name} if wanted.name else {}
            return make_image(image, title=wanted.title, **place)
        if is_pasted(wanted.name):
            image = parse_image(read_pasted(wanted.name), media_type=None, name=wanted.title or PASTED)
            return make_image(image, title=wanted.title)
        if is_page(wanted.name):
            image = parse_image(self._fetch(wanted.name), media_type=None, name=wanted.name[:_LONGEST_NAME])
            return make_image(image, title=wanted.title, url=wanted.name)
        image = parse_image(self._read_file(wanted.name), media_type=None, name=wanted.name)
        return make_image(image, title=wanted.title, path=wanted.name)

    def _read_file(self, name: str) -> bytes:
        if self.read_bytes is None:
            raise no_vault(name)
        return self.read_bytes(name)

    def _fetch(self, url: str) -> bytes:
        if self.fetch is None:
            raise NotAvailableError(
                f"{url[:_LONGEST_NAME]} is not fetched: nothing here reads pictures of the web.",
                hint="Save the picture as a file, and attach or embed that.",
            )
        return self.fetch(url)
