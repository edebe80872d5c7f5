"""Tokenizers of local models, from the vocabulary at the start of their GGUF files.

``read_vocabulary`` reads the vocabulary; the weights are never read, and no engine is loaded. ``build_tokenizer``
returns an exact tokenizer, or None if its way of splitting text is unknown. ``make_special_token_escaper`` escapes
special tokens in user text, so that they do not end the user's turn.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from struct import Struct, error

from splintr import from_json_bytes

from lamella.tokenizers.o200k import TokenCountMemo, split_at_token_boundaries

_MAGIC = b"GGUF"
# How many bytes are read. The largest vocabularies in use take a third of this.
_HEADER_BYTES = 32 * 2**20
_STRING_KIND, _LIST_KIND = 8, 9
_NUMBER_FORMATS = {
    kind: Struct(f"<{code}")
    for kind, code in ((0, "B"), (1, "b"), (2, "H"), (3, "h"), (4, "I"), (5, "i"), (6, "f"), (7, "?"))
} | {kind: Struct(f"<{code}") for kind, code in ((10, "Q"), (11, "q"), (12, "d"))}
_COUNT_FORMAT, _KIND_FORMAT = Struct("<Q"), Struct("<I")
# Token types: control tokens of the chat format, and user-defined tokens, which are recognised in any context.
_SPECIAL_TOKEN_TYPES = (3, 4)
_TOKENIZER_PREFIX = "tokenizer."


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerVocabulary:
    """A byte-pair vocabulary.

    ``split_rule`` is the name of the rule that splits text before merging. ``special_token_ids`` are the ids of special
    tokens. ``adds_start_token`` is whether a prompt starts with a token of its own. ``chat_template`` turns messages
    into a prompt, and ``template_tokens`` has the special tokens that only the template may write.
    """

    split_rule: str
    tokens: tuple[str, ...]
    special_token_ids: tuple[int, ...]
    merges: tuple[str, ...]
    adds_start_token: bool
    chat_template: str
    template_tokens: tuple[str, ...] = ()


def read_vocabulary(path: Path) -> TokenizerVocabulary | None:
    """Return the vocabulary of a GGUF file.

    None if the file does not exist or has no byte-pair vocabulary.
    """
    found = _read_header(path)
    if found.get("ggml.model") != "gpt2":
        return None
    kinds = _get_list(found, "ggml.token_type")
    return TokenizerVocabulary(
        split_rule=str(found.get("ggml.pre", "")),
        tokens=tuple(str(token) for token in _get_list(found, "ggml.tokens")),
        special_token_ids=tuple(index for index, kind in enumerate(kinds) if kind in _SPECIAL_TOKEN_TYPES),
        merges=tuple(str(merge) for merge in _get_list(found, "ggml.merges")),
        adds_start_token=bool(found.get("ggml.add_bos_token", False)),
        chat_template=str(found.get("chat_template", "")),
        template_tokens=_list_special_tokens(found),
    )


def read_special_tokens(path: Path) -> tuple[str, ...]:
    """Return the special tokens of a GGUF file's chat format, for any kind of vocabulary.

    Empty if there is no such file.
    """
    return _list_special_tokens(_read_header(path))


def _list_special_tokens(found: dict[str, object]) -> tuple[str, ...]:
    """Return the special tokens that only the chat format may write.

    A user-defined token counts only if the template contains it. Otherwise it is an ordinary word.
    """
    template = str(found.get("chat_template", ""))
    tokens, kinds = _get_list(found, "ggml.tokens"), _get_list(found, "ggml.token_type")
    known = ((str(token), kind) for token, kind in zip(tokens, kinds, strict=False))
    format_, word = _SPECIAL_TOKEN_TYPES
    return tuple(
        token for token, kind in known if kind == format_ or (kind == word and token.strip() and token in template)
    )


def _read_header(path: Path) -> dict[str, object]:
    """Return the tokenizer entries of a file's header, or nothing if the header cannot be read."""
    try:
        # Opening a pipe or a device could block.
        if not path.is_file():
            return {}
        with path.open("rb") as file:
            return _GgufHeader(file.read(_HEADER_BYTES)).read()
    except (OSError, ValueError, error):
        return {}


def _get_list(found: dict[str, object], name: str) -> list[object]:
    items = found.get(name)
    return items if isinstance(items, list) else []


class _GgufHeader:
    """Parses the first bytes of a file in order.

    Reading past their end raises ``ValueError`` or ``struct.error``.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def read(self) -> dict[str, object]:
        """Return the tokenizer entries of the header."""
        if self._data[:4] != _MAGIC:
            raise ValueError("no GGUF file")
        # The header after the magic bytes: version, number of tensors, number of entries.
        self._position = 16
        found: dict[str, object] = {}
        for _ in range(self._read_number(_COUNT_FORMAT)):
            name = self._read_text()
            value = self._read_value(self._read_number(_KIND_FORMAT))
            if name.startswith(_TOKENIZER_PREFIX):
                found[name.removeprefix(_TOKENIZER_PREFIX)] = value
        return found

    def _read_value(self, kind: int) -> object:
        if kind != _LIST_KIND:
            return self._get_reader(kind)()
        kind, count = self._read_number(_KIND_FORMAT), self._read_number(_COUNT_FORMAT)
        # Every item has at least one byte, so a larger count is false. Checked before a huge list is built.
        if count > len(self._data) - self._position:
            raise ValueError("more items than bytes")
        read = self._get_reader(kind)
        return [read() for _ in range(count)]

    def _get_reader(self, kind: int) -> Callable[[], object]:
        if kind == _STRING_KIND:
            return self._read_text
        if kind not in _NUMBER_FORMATS:
            raise ValueError(f"no kind {kind}")
        form = _NUMBER_FORMATS[kind]
        return lambda: self._read_number(form)

    def _read_number(self, form: Struct) -> int:
        (value,) = form.unpack_from(self._data, self._position)
        self._position += form.size
        return value  # type: ignore[no-any-return]

    def _read_text(self) -> str:
        (size,) = _COUNT_FORMAT.unpack_from(self._data, self._position)
        start = self._position + 8
        self._position = start + size
        if self._position > len(self._data):
            raise ValueError("a text that does not end")
        return self._data[start : self._position].decode()


# Special tokens in user text.

# A zero-width space: it is invisible, and no vocabulary has a special token that contains it.
_ZERO_WIDTH_SPACE = "\u200b"


def make_special_token_escaper(special_tokens: Sequence[str]) -> Callable[[str], str]:
    """Return a function that escapes every special token in a text by splitting it after its first character."""
    # A single character cannot be split. Longer tokens come first, because one token may be the prefix of another.
    known = sorted((mark for mark in set(special_tokens) if len(mark) > 1), key=len, reverse=True)
    if not known:
        return lambda text: text
    # Only the first character is consumed, because the rest may contain the start of another special token.
    found = re.compile("|".join(f"{re.escape(mark[0])}(?={re.escape(mark[1:])})" for mark in known))
    return lambda text: found.sub(lambda match: match[0] + _ZERO_WIDTH_SPACE, text)


def load_special_token_escaper(path: Path | None) -> Callable[[str], str]:
    """Return the escape function for a weights file. It changes nothing if there is no such file."""
    try:
        found = path.stat() if path is not None else None
    except OSError:
        found = None
    if path is None or found is None:
        return make_special_token_escaper(())
    return _load_escaper_of_version(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4)
def _load_escaper_of_version(path: Path, size: int, modified: int) -> Callable[[str], str]:
    del size, modified  # parts of the cache key: a replaced file is read again
    return make_special_token_escaper(read_special_tokens(path))


# Tokenizers.

_CHUNK_CHARS = 1_000_000
_GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CONTRACTIONS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_WORD_PATTERN = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+"
_CASED_WORD_PATTERNS = (
    r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+",
    r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*",
)
_WHITESPACE_PATTERN = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA_PATTERNS = (rf"{_WORD_PATTERN}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_WHITESPACE_PATTERN}",)
_QWEN_PATTERNS = (rf"{_WORD_PATTERN}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_WHITESPACE_PATTERN}",)
_DIGIT_PATTERNS = (r"\p{N}", _GPT2_PATTERN)
# How text is split before pairs are merged, by the name that GGUF files use. Each rule was compared with llama.cpp's
# tokens of 3,000 texts of mixed scripts, white space and special tokens (2026-11-16).
SPLIT_PATTERNS: dict[str, tuple[str, ...]] = {
    "command-r": _DIGIT_PATTERNS,
    "deepseek-r1-qwen": _QWEN_PATTERNS,
    "gpt-2": (_GPT2_PATTERN,),
    "gpt-4o": (
        rf"{_CASED_WORD_PATTERNS[0]}{_CONTRACTIONS}?|{_CASED_WORD_PATTERNS[1]}{_CONTRACTIONS}?"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_WHITESPACE_PATTERN}",
    ),
    "llama-bpe": _LLAMA_PATTERNS,
    "qwen2": _QWEN_PATTERNS,
    "smollm": _DIGIT_PATTERNS,
    "starcoder": _DIGIT_PATTERNS,
    "tekken": (
        rf"{_CASED_WORD_PATTERNS[0]}|{_CASED_WORD_PATTERNS[1]}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_WHITESPACE_PATTERN}",
    ),
}
# Vocabularies in which a word that is itself a token is never merged from its parts.
_WHOLE_WORD_VOCABULARIES = ("llama-bpe", "tekken")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFormat:
    """The text before and after each message. An answer starts with the same text as other messages."""

    before: str
    after: str


# By a special token that no other format's template contains.
_CHAT_FORMATS = {
    "<|im_start|>": ChatFormat(before="<|im_start|>{role}\n", after="<|im_end|>\n"),
    "<|start_header_id|>": ChatFormat(before="<|start_header_id|>{role}<|end_header_id|>\n\n", after="<|eot_id|>"),
}
_ROLES = ("system", "user", "assistant")
_DEFAULT_MESSAGE_TOKENS = 5
# Characters without a token are silently left out of the count. A vocabulary that lacks one of these is not trusted.
_PRINTABLE_ASCII = {chr(code) for code in range(0x21, 0x7F)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTokenizer:
    """A tokenizer with a model's own vocabulary. Different vocabularies have different names."""

    name: str
    count: Callable[[str], int]
    encode: Callable[[str], Sequence[int]]
    tokens_per_message: int
    tokens_per_request: int


def build_tokenizer(vocabulary: TokenizerVocabulary) -> ModelTokenizer | None:
    """Return a tokenizer for a vocabulary, which takes 0.2 s. None if its way of splitting text is unknown."""
    cuts = SPLIT_PATTERNS.get(vocabulary.split_rule)
    if cuts is None or not set(vocabulary.tokens) >= _PRINTABLE_ASCII:
        return None
    written = _to_tokenizer_json(vocabulary, cuts)
    encode = from_json_bytes(written).encode_raw

    # Counted as requests are built: special tokens in user text are escaped.
    as_sent = make_special_token_escaper(vocabulary.template_tokens)

    def count(text: str) -> int:
        return sum(
            _count_followed_by_text(chunk, encode) for chunk in split_at_token_boundaries(as_sent(text), _CHUNK_CHARS)
        )

    form = next((form for mark, form in _CHAT_FORMATS.items() if mark in vocabulary.chat_template), None)
    # In some vocabularies the roles differ by a token. The longest is counted, so that a request never fits by mistake.
    before = max(len(encode(form.before.format(role=role))) for role in _ROLES) if form else _DEFAULT_MESSAGE_TOKENS
    after = len(encode(form.after)) if form else 0
    return ModelTokenizer(
        # Escaping changes the counts, so it is part of the name. Counts stored under another name are not reused.
        name=f"gguf-{sha256(written + ''.join(vocabulary.template_tokens).encode()).hexdigest()[:12]}",
        count=TokenCountMemo(count=count).count,
        encode=encode,
        tokens_per_message=before + after,
        tokens_per_request=before + vocabulary.adds_start_token,
    )


def _count_followed_by_text(text: str, encode: Callable[[str], Sequence[int]]) -> int:
    """Return the tokens of a text that is followed by more text.

    Some vocabularies split off the last of several line breaks then. Nothing follows the end of a message, so several
    line breaks there may count one token too many.
    """
    return len(encode(f"{text}a")) - 1 if text.endswith("\n") else len(encode(text))


def _to_tokenizer_json(vocabulary: TokenizerVocabulary, patterns: Sequence[str]) -> bytes:
    """Return a vocabulary in the JSON format that the tokenizer library reads."""
    split = [{"type": "Split", "pattern": {"Regex": cut}, "behavior": "Isolated", "invert": False} for cut in patterns]
    letters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    marks = [
        {
            "id": token_id,
            "content": vocabulary.tokens[token_id],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token_id in vocabulary.special_token_ids
        if vocabulary.tokens[token_id : token_id + 1] not in ((), ("",))
    ]
    model = {
        "type": "BPE",
        "ignore_merges": vocabulary.split_rule in _WHOLE_WORD_VOCABULARIES,
        "vocab": {token: token_id for token_id, token in enumerate(vocabulary.tokens)},
        "merges": vocabulary.merges,
    }
    whole = {
        "version": "1.0",
        "added_tokens": marks,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*split, letters]},
        "post_processor": None,
        "decoder": letters,
        "model": model,
    }
    return json.dumps(whole).encode()
