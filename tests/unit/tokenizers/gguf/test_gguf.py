"""GGUF files: a vocabulary is read from the head of one, and anything else is none."""

import os
from pathlib import Path
from struct import pack

import pytest

from lamella.tokenizers.gguf import read_vocabulary
from lamella.tokenizers.weights import get_verified_weights_path


def text(value: str) -> bytes:
    return pack("<Q", len(value.encode())) + value.encode()


def entry(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + pack("<I", kind) + value


def texts(*values: str) -> bytes:
    return pack("<IQ", 8, len(values)) + b"".join(text(value) for value in values)


def head(*entries: bytes) -> bytes:
    return b"GGUF" + pack("<IQQ", 3, 0, len(entries)) + b"".join(entries)


MODEL = entry("tokenizer.ggml.model", 8, text("gpt2"))
TOKENS = entry("tokenizer.ggml.tokens", 9, texts("a", "b", "ab"))


def read(tmp_path: Path, data: bytes) -> object:
    path = tmp_path / "some.gguf"
    path.write_bytes(data)
    return read_vocabulary(path)


def test_vocabulary_is_read_from_head_of_model_file() -> None:
    found = read_vocabulary(get_verified_weights_path("local"))
    assert found is not None
    assert (found.split_rule, len(found.tokens), len(found.merges), found.adds_start_token) == (
        "smollm",
        49_152,
        48_900,
        False,
    )
    assert found.tokens[found.special_token_ids[1]] == "<|im_start|>"
    assert "<|im_start|>" in found.chat_template


def test_values_of_every_type_are_skipped(tmp_path: Path) -> None:
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    numbers = [entry(f"number.{kind}", kind, bytes(size)) for kind, size in sizes.items()]
    lists = [entry("scores", 9, pack("<IQff", 6, 2, 0.5, 0.5))]
    found = read(tmp_path, head(*numbers, *lists, MODEL, TOKENS))
    assert getattr(found, "tokens", None) == ("a", "b", "ab")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GGUF",
        b"PK\x03\x04 not a GGUF file",
        head(MODEL, TOKENS)[:-2],
        head(MODEL, entry("tokenizer.ggml.tokens", 9, pack("<IQ", 8, 2**60))),
        head(MODEL, entry("tokenizer.ggml.tokens", 8, pack("<Q", 2**63))),
        head(MODEL, entry("nested", 9, pack("<IQ", 9, 1))),
        head(MODEL, entry("unknown", 99, b"")),
        head(entry("tokenizer.ggml.model", 8, pack("<Q", 2) + b"\xff\xfe")),
        head(entry("tokenizer.ggml.model", 8, text("llama")), TOKENS),
    ],
    ids=["empty", "magic", "other", "cut", "liar", "endless", "nested", "unknown", "garbled", "pieces"],
)
def test_file_without_bpe_vocabulary_gives_none(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path, data) is None


def test_missing_file_folder_and_pipe_give_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert [read_vocabulary(tmp_path / name) for name in ("missing", ".", "pipe")] == [None] * 3
