"""Finding secrets in a text of any size: letters that begin one are looked for, and what stands around them is told."""

from collections.abc import Iterator

from lamella.adapters.providers.secrets.formats import FORMATS, SecretFormat, find_teller

# What is looked at around such letters: more than any token but a long JSON Web Token has. A line may have megabytes.
_BEFORE, _BEHIND = 128, 4_096
# How often such letters may stand in a text before the rest of them is passed over.
_LOOKED_AT = 200
_REMEMBERED = 1_024


class SecretFinder:
    """Tells where a text looks like a secret. What was found in a content is remembered by its hash."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[tuple[int, str], ...]] = {}

    def find(self, text: str, content: str) -> tuple[tuple[int, str], ...]:
        """Each line that looks like a secret, counted from 1, and what kind of one; ``content`` is the text's hash."""
        if content not in self._found:
            if len(self._found) >= _REMEMBERED:
                del self._found[next(iter(self._found))]
            self._found[content] = tuple(sorted(set(_find_all(text))))
        return self._found[content]


def _find_all(text: str) -> Iterator[tuple[int, str]]:
    for one in FORMATS:
        for anchor in one.anchors:
            yield from ((text.count("\n", 0, at) + 1, one.what) for at in _find_one(text, one, anchor))


def _find_one(text: str, one: SecretFormat, anchor: str) -> Iterator[int]:
    at = text.find(anchor)
    for _ in range(_LOOKED_AT):
        if at < 0:
            return
        start = max(at - _BEFORE, text.rfind("\n", max(0, at - _BEFORE), at) + 1)
        line_end = text.find("\n", at, at + _BEHIND)
        end = line_end if line_end >= 0 else at + _BEHIND
        if find_teller(one)(text[start:end]):
            yield at
        # What stands on the same stretch was looked at with it.
        at = text.find(anchor, max(end, at + 1))
