"""Counting with a model's own vocabulary: exact for models in this process, whose files carry it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from splintr import from_json_bytes

from lamella.adapters.tokens.gguf import Vocabulary
from lamella.adapters.tokens.marks import make_breaker
from lamella.adapters.tokens.o200k import CountMemo, split_cleanly

_CHUNK = 1_000_000
_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SHORTENED = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_ANY_CASE = rf"{_SHORTENED}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+"
_BY_CASE = (
    r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+",
    r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*",
)
_BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA = (rf"{_ANY_CASE}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_BLANKS}",)
_QWEN = (rf"{_ANY_CASE}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_BLANKS}",)
_DIGITS = (r"\p{N}", _WORDS)
# How text is cut before pairs are merged, by the name that files give it; each was held against llama.cpp's tokens of
# 3,000 texts of mixed scripts, blanks and marks (2026-11-16).
SPLITS: dict[str, tuple[str, ...]] = {
    "command-r": _DIGITS,
    "deepseek-r1-qwen": _QWEN,
    "gpt-2": (_WORDS,),
    "gpt-4o": (
        rf"{_BY_CASE[0]}{_SHORTENED}?|{_BY_CASE[1]}{_SHORTENED}?"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_BLANKS}",
    ),
    "llama-bpe": _LLAMA,
    "qwen2": _QWEN,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "tekken": (rf"{_BY_CASE[0]}|{_BY_CASE[1]}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_BLANKS}",),
}
# Vocabularies in which a word that is a token is never merged from its parts.
_WHOLE_WORDS = ("llama-bpe", "tekken")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFormat:
    """What stands before and after each message; an answer begins with what stands before it."""

    before: str
    after: str


# By a mark that the templates of no other format have.
_FORMATS = {
    "<|im_start|>": ChatFormat(before="<|im_start|>{role}\n", after="<|im_end|>\n"),
    "<|start_header_id|>": ChatFormat(before="<|start_header_id|>{role}<|end_header_id|>\n\n", after="<|eot_id|>"),
}
_ROLES = ("system", "user", "assistant")
_USUAL = 5
# What a vocabulary has no letter for is left out of the count without a word, so one that lacks these is not trusted.
_ASCII = {chr(code) for code in range(0x21, 0x7F)}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTokens:
    """How a model counts by its own vocabulary; ``name`` is another for another vocabulary."""

    name: str
    count: Callable[[str], int]
    encode: Callable[[str], Sequence[int]]
    per_message: int
    per_request: int


def open_vocabulary(vocabulary: Vocabulary) -> OwnTokens | None:
    """A vocabulary ready to count with, in 0.2 s; none where it is not known how it cuts text."""
    cuts = SPLITS.get(vocabulary.split)
    if cuts is None or not set(vocabulary.tokens) >= _ASCII:
        return None
    written = _write(vocabulary, cuts)
    encode = from_json_bytes(written).encode_raw

    # As requests are built: what people wrote has no marks in it.
    as_sent = make_breaker(vocabulary.formatting)

    def count(text: str) -> int:
        return sum(_count_apart(chunk, encode) for chunk in split_cleanly(as_sent(text), _CHUNK))

    form = next((form for mark, form in _FORMATS.items() if mark in vocabulary.template), None)
    # Roles differ by a token in some vocabularies. Counted as the longest, no request is said to fit that does not.
    before = max(len(encode(form.before.format(role=role))) for role in _ROLES) if form else _USUAL
    after = len(encode(form.after)) if form else 0
    return OwnTokens(
        # What is broken is part of how it counts: counts that were kept under another name are made again.
        name=f"gguf-{sha256(written + ''.join(vocabulary.formatting).encode()).hexdigest()[:12]}",
        count=CountMemo(count=count).count,
        encode=encode,
        per_message=before + after,
        per_request=before + vocabulary.begins,
    )


def _count_apart(text: str, encode: Callable[[str], Sequence[int]]) -> int:
    """The tokens of a text that something else follows: some vocabularies cut the last of several line breaks off then.

    At the end of a message nothing follows, and several line breaks there may count one token too many.
    """
    return len(encode(f"{text}a")) - 1 if text.endswith("\n") else len(encode(text))


def _write(vocabulary: Vocabulary, cuts: Sequence[str]) -> bytes:
    """A vocabulary in the form that tokenizers are read from."""
    split = [{"type": "Split", "pattern": {"Regex": cut}, "behavior": "Isolated", "invert": False} for cut in cuts]
    letters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    marks = [
        {
            "id": place,
            "content": vocabulary.tokens[place],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for place in vocabulary.marks
        if vocabulary.tokens[place : place + 1] not in ((), ("",))
    ]
    model = {
        "type": "BPE",
        "ignore_merges": vocabulary.split in _WHOLE_WORDS,
        "vocab": {token: place for place, token in enumerate(vocabulary.tokens)},
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
