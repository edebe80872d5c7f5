"""A model's own vocabulary: counts are those of the engine that runs it, to the token."""

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from os import SEEK_END
from pathlib import Path
from struct import pack

import pytest
from tests.unit.providers.local.asking import SMALL, run

from lamella import Conversation, Note
from lamella.core.budget import count_pieces_tokens
from lamella.core.messages import ModelRequest
from lamella.providers.local import LlamaServer, LlamaServerOptions, LocalProvider
from lamella.tokenizers.counter import OfflineTokenCounter
from lamella.tokenizers.gguf import SPLIT_PATTERNS, TokenizerVocabulary, build_tokenizer, read_vocabulary
from lamella.tokenizers.weights import get_verified_weights_path

PARTS = (
    *("a", "B", "foo", "Bar", "é", "ß", "\u017f", "中文", "한국", "हिन्दी", "ﷺ", "😀", "\u0308", "\u200b", "\ufffd"),
    *("1", "12345", "0x1F", "٣", "²", "Ⅷ", "½"),
    *(" ", "  ", "\n", "\n\n", "\t", "\r\n", "\r", "\u00a0", "\u3000", "\u2028", "\x00", "\x7f"),
    *("'s", "'S", "'lL", "/", "<", "_", "-", "...", "<|im_start|>", "<|im_end|>"),
)
# The vocabulary and all that is said of the model stand within so many bytes.
HEAD = 8_000_000
KEY = b"tokenizer.ggml.pre"
NAME = b"general.name"


def mixed(count: int) -> Iterator[str]:
    """Texts of everything that vocabularies cut differently."""
    dice = random.Random(7)
    for _ in range(count):
        yield "".join(dice.choice(PARTS) for _ in range(dice.randint(1, 14)))


def rewrite(split: str, path: Path) -> Path:
    """The demo model's file with another way of cutting text; the model's own name makes up for the length."""
    with get_verified_weights_path("local").open("rb") as file:
        before = file.read(HEAD)
        size = file.seek(0, SEEK_END)
    head = _replace(before, KEY, split.encode())
    spare = len(_value(head, NAME)) + len(before) - len(head)
    path.write_bytes(_replace(head, NAME, b"x" * spare))
    # Nobody is asked: where the weights would be, the file has a hole.
    os.truncate(path, size)
    return path


def _value(data: bytes, key: bytes) -> bytes:
    start = data.index(key) + len(key) + 4
    size = int.from_bytes(data[start : start + 8], "little")
    return data[start + 8 : start + 8 + size]


def _replace(data: bytes, key: bytes, value: bytes) -> bytes:
    start = data.index(key) + len(key) + 4
    return data[:start] + pack("<Q", len(value)) + value + data[start + 8 + len(_value(data, key)) :]


@pytest.mark.parametrize("split", ["gpt-2", "gpt-4o", "llama-bpe", "qwen2", "smollm", "tekken"])
def test_each_split_rule_matches_engine_tokens(tmp_path: Path, split: str) -> None:
    path = rewrite(split, tmp_path / "some.gguf")
    vocabulary = read_vocabulary(path)
    assert vocabulary is not None
    assert vocabulary.split_rule == split
    own = build_tokenizer(vocabulary)
    assert own is not None
    engine = LlamaServer(path, LlamaServerOptions(window=256))
    texts = [*mixed(400), Path("README.md").read_text(encoding="utf-8")]
    different = [text for text in texts if tuple(own.encode(text)) != engine.tokenize(text)]
    engine.close()
    assert different == []


def test_known_split_rules_are_all_compared() -> None:
    assert {*SPLIT_PATTERNS.values()} == {
        SPLIT_PATTERNS[name] for name in ("gpt-2", "gpt-4o", "llama-bpe", "qwen2", "smollm", "tekken")
    }


def test_request_tokens_match_engine_with_one_per_question() -> None:
    chat = Conversation(system="You are terse.", layout="in_place", model="local")
    digits = Note(path="digits.md", text="".join(f"{number},{number * number}\n" for number in range(40)) + "\n\n")

    async def count_tokens() -> list[int]:
        provider = LocalProvider(options=SMALL)
        more: list[int] = []
        for typed, notes in (("When is high tide?", [digits]), ("Wirklich? 日本語", []), ("Thanks.\n", [])):
            turn = chat.ask(typed, attach=notes)
            forecast = await provider.forecast(ModelRequest(model="local", messages=turn.messages))
            more.append(turn.tokens.total - forecast.prompt_tokens)
            chat.reply("Yes, at 12:30.")
        await provider.close()
        return more

    # The system message and each question are counted as long as an answer's frame, which has a token more.
    assert run(count_tokens()) == [2, 3, 4]


def test_counting_by_pieces_equals_counting_whole() -> None:
    count = OfflineTokenCounter().get_tokenizer("local").count
    pieces = ["One.\n\n\n", "<note>\nTwo.\n\n</note>\n\n", "<b>", "Three.\n", "Four"]
    assert count_pieces_tokens(pieces, count) == count("".join(pieces))


def test_special_tokens_are_counted_as_escaped_text() -> None:
    tokenizer = OfflineTokenCounter().get_tokenizer("local")
    assert len(tokenizer.encode("<|im_end|>")) == 1
    assert tokenizer.count("<|im_end|>") == len(tokenizer.encode("<\u200b|im_end|>"))


def test_local_tokenizer_is_exact_shared_and_named_by_vocabulary() -> None:
    counter, weights = OfflineTokenCounter(), get_verified_weights_path("local")
    local = counter.get_tokenizer("local")
    assert local.count_factor == 1.0
    assert local.name.startswith("gguf-")
    assert counter.get_tokenizer("local") is local
    assert counter.get_tokenizer(f"gguf:{weights}").name == local.name
    other = read_vocabulary(weights)
    assert other is not None
    renamed = build_tokenizer(replace(other, split_rule="gpt-2"))
    assert renamed is not None
    assert renamed.name != local.name


@pytest.mark.parametrize("content", [b"", b"GGUF", b"something else"])
def test_file_without_a_vocabulary_is_estimated(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.gguf"
    path.write_bytes(content)
    assert [OfflineTokenCounter().get_tokenizer(f"gguf:{place}").name for place in (path, tmp_path / "missing")] == [
        "local"
    ] * 2


def test_incomplete_or_unknown_vocabulary_gives_none() -> None:
    letters = tuple(chr(code) for code in range(0x21, 0x7F))
    small = TokenizerVocabulary(
        split_rule="gpt-2", tokens=letters, special_token_ids=(500,), merges=(), adds_start_token=True, chat_template=""
    )
    found = build_tokenizer(small)
    assert found is not None
    assert (found.count("abc"), found.tokens_per_message, found.tokens_per_request) == (3, 5, 6)
    assert build_tokenizer(replace(small, tokens=letters[1:])) is None
    assert build_tokenizer(replace(small, split_rule="nobody's")) is None


def test_appearing_and_disappearing_file_is_noticed(tmp_path: Path) -> None:
    counter, path = OfflineTokenCounter(), tmp_path / "model.gguf"
    model = f"gguf:{path}"
    estimated = counter.get_tokenizer(model)
    path.symlink_to(get_verified_weights_path("local"))
    own = counter.get_tokenizer(model)
    assert counter.get_tokenizer(model) == own
    assert counter.get_tokenizer(model) is own
    path.unlink()
    assert counter.get_tokenizer(model) is estimated


def test_file_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    counter, path = OfflineTokenCounter(), tmp_path / "model.gguf"
    before = counter.get_tokenizer(f"gguf:{rewrite('gpt-2', path)}")
    rewrite("llama-bpe", path)
    after = counter.get_tokenizer(f"gguf:{path}")
    assert after.name != before.name
    assert after.name == OfflineTokenCounter().get_tokenizer(f"gguf:{path}").name
