"""Nowhere: a source that has nothing, for when there is no vault."""

from collections.abc import Sequence
from typing import NoReturn

from lamella.core.artifacts.model import Artifact, Image, Kind, Policy
from lamella.errors import SourceMissingError


class Nowhere:
    """Whatever is asked for is not there, so nothing may rely on its being read again."""

    def read_file(self, path: str, kind: Kind, *, policy: Policy | None = None, via: str | None = None) -> Artifact:
        self._miss(path)

    def read_image(self, path: str) -> Image:
        self._miss(path)

    def read_embedded(self, note: Artifact) -> tuple[Sequence[Image], Sequence[str]]:
        self._miss(note.id)

    def list_folder(self, path: str) -> Sequence[str]:
        return ()

    def list_tag(self, tag: str) -> Sequence[str]:
        return ()

    def list_left_out(self, path: str) -> Sequence[str]:
        return ()

    def list_unsearched(self) -> Sequence[str]:
        return ()

    def glance(self) -> "Nowhere":
        return self

    def has_folder(self, path: str) -> bool:
        return False

    def find_note(self, name: str) -> Sequence[str]:
        return ()

    def _miss(self, name: str) -> NoReturn:
        raise SourceMissingError(f"There is no vault to read {name} from.", hint="Name a vault folder.")
