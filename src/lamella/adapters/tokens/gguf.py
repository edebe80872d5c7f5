"""GGUF files: the vocabulary at their head. The weights behind it are never read, and no engine is loaded."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from struct import Struct, error

_MAGIC = b"GGUF"
# The largest vocabularies in use take a third of this.
_HEAD = 32 * 2**20
_STRING, _LIST = 8, 9
_NUMBERS = {
    kind: Struct(f"<{code}")
    for kind, code in ((0, "B"), (1, "b"), (2, "H"), (3, "h"), (4, "I"), (5, "i"), (6, "f"), (7, "?"))
} | {kind: Struct(f"<{code}") for kind, code in ((10, "Q"), (11, "q"), (12, "d"))}
_COUNT, _KIND = Struct("<Q"), Struct("<I")
# Marks of the chat format, and tokens that stand for themselves whatever they stand in.
_MARKS = (3, 4)
_PREFIX = "tokenizer."


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """A byte-pair vocabulary. ``split`` names the way text is cut before it is merged, ``marks`` are whole tokens.

    ``begins`` says whether a prompt begins with a token of its own; ``template`` is how messages become a prompt, and
    ``formatting`` are the marks that only it may write.
    """

    split: str
    tokens: tuple[str, ...]
    marks: tuple[int, ...]
    merges: tuple[str, ...]
    begins: bool
    template: str
    formatting: tuple[str, ...] = ()


def read_vocabulary(path: Path) -> Vocabulary | None:
    """The vocabulary of a GGUF file; none where there is no such file, or none in it that merges byte pairs."""
    found = _read_head(path)
    if found.get("ggml.model") != "gpt2":
        return None
    kinds = _items(found, "ggml.token_type")
    return Vocabulary(
        split=str(found.get("ggml.pre", "")),
        tokens=tuple(str(token) for token in _items(found, "ggml.tokens")),
        marks=tuple(place for place, kind in enumerate(kinds) if kind in _MARKS),
        merges=tuple(str(merge) for merge in _items(found, "ggml.merges")),
        begins=bool(found.get("ggml.add_bos_token", False)),
        template=str(found.get("chat_template", "")),
        formatting=_find_marks(found),
    )


def read_marks(path: Path) -> tuple[str, ...]:
    """The marks of the chat format of a GGUF file, whatever its vocabulary; none where there is no such file."""
    return _find_marks(_read_head(path))


def _find_marks(found: dict[str, object]) -> tuple[str, ...]:
    """Tokens that only the format may write. Others that stand for themselves are words, if the template lacks them."""
    template = str(found.get("chat_template", ""))
    tokens, kinds = _items(found, "ggml.tokens"), _items(found, "ggml.token_type")
    known = ((str(token), kind) for token, kind in zip(tokens, kinds, strict=False))
    format_, word = _MARKS
    return tuple(
        token for token, kind in known if kind == format_ or (kind == word and token.strip() and token in template)
    )


def _read_head(path: Path) -> dict[str, object]:
    """What the head of a file says about the tokenizer; nothing where it cannot be read."""
    try:
        # A pipe or a device would be waited for.
        if not path.is_file():
            return {}
        with path.open("rb") as file:
            return _Head(file.read(_HEAD)).read()
    except (OSError, ValueError, error):
        return {}


def _items(found: dict[str, object], name: str) -> list[object]:
    items = found.get(name)
    return items if isinstance(items, list) else []


class _Head:
    """A file's first bytes, read from the front. What reaches past them raises ``ValueError`` or ``struct.error``."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self) -> dict[str, object]:
        """What the head says about the tokenizer."""
        if self._data[:4] != _MAGIC:
            raise ValueError("no GGUF file")
        # After the magic: the version, how many tensors there are, how many entries.
        self._at = 16
        found: dict[str, object] = {}
        for _ in range(self._number(_COUNT)):
            name = self._text()
            value = self._value(self._number(_KIND))
            if name.startswith(_PREFIX):
                found[name.removeprefix(_PREFIX)] = value
        return found

    def _value(self, kind: int) -> object:
        if kind != _LIST:
            return self._reader(kind)()
        kind, count = self._number(_KIND), self._number(_COUNT)
        # No item is shorter than a byte: a file that lies about their number is not believed.
        if count > len(self._data) - self._at:
            raise ValueError("more items than bytes")
        read = self._reader(kind)
        return [read() for _ in range(count)]

    def _reader(self, kind: int) -> Callable[[], object]:
        if kind == _STRING:
            return self._text
        if kind not in _NUMBERS:
            raise ValueError(f"no kind {kind}")
        form = _NUMBERS[kind]
        return lambda: self._number(form)

    def _number(self, form: Struct) -> int:
        (value,) = form.unpack_from(self._data, self._at)
        self._at += form.size
        return value  # type: ignore[no-any-return]

    def _text(self) -> str:
        (size,) = _COUNT.unpack_from(self._data, self._at)
        start = self._at + 8
        self._at = start + size
        if self._at > len(self._data):
            raise ValueError("a text that does not end")
        return self._data[start : self._at].decode()
