"""Artifacts whose text nobody has looked at yet: of what only a line stands for, hardly anybody does."""

from collections.abc import Callable, Collection, Mapping

from lamella.core.artifacts.model import Artifact
from lamella.core.text.content import hash_text

# What stands in place of the text. It is told by being this very object: a text may say the same.
NOT_READ = "".join(["not ", "read"])
# The field beneath the property. Whoever encodes such an artifact would find this there: it is stored by its hash.
_read_field = vars(Artifact)["text"].__get__
_BESIDE = tuple([name for name in Artifact.__struct_fields__ if name != "text"])


class UnreadTexts:
    """Texts by the hashes of their contents, all of which are read once somebody wants one."""

    def __init__(self, hashes: Collection[str], read: Callable[[Collection[str]], Mapping[str, str]]) -> None:
        self._hashes = hashes
        self._read = read
        self._texts: Mapping[str, str] | None = None

    @property
    def texts(self) -> Mapping[str, str]:
        # Without a lock: one that all conversations share would be held while a store is waited for.
        if self._texts is None:
            self._texts = self._read(self._hashes)
        return self._texts


class UnreadArtifact(Artifact, frozen=True, kw_only=True, gc=False):
    """An artifact as any other, and equal to it, whose text is read when it is asked for."""

    unread: UnreadTexts

    @property  # type: ignore[misc]  # it is found before the field that it stands for
    def text(self) -> str:
        text: str = _read_field(self)
        return self.unread.texts[self.hash] if text is NOT_READ else text

    def __eq__(self, other: object) -> bool:
        # The hash is that of the text: nothing has to be read for it.
        if not isinstance(other, Artifact) or any(getattr(self, name) != getattr(other, name) for name in _BESIDE):
            return False
        return self is other or _hash_text(self) == _hash_text(other)

    def __ne__(self, other: object) -> bool:
        # As of a record: a struct does not derive this from ``==``.
        return not self == other

    def __hash__(self) -> int:
        return hash(Artifact(**{name: getattr(self, name) for name in Artifact.__struct_fields__}))


def _hash_text(artifact: Artifact) -> str:
    text = _read_field(artifact)
    return artifact.hash if text is NOT_READ else hash_text(text)
