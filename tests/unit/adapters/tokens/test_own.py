"""A model's own vocabulary: counts are those of the engine that runs it, to the token."""

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from os import SEEK_END
from pathlib import Path
from struct import pack

import pytest
from tests.unit.adapters.providers.local.asking import SMALL, run

from lamella import Conversation, Note
from lamella.adapters.providers.local.engine import EngineOptions, LlamaServer
from lamella.adapters.providers.local.provider import LocalProvider
from lamella.adapters.providers.local.weights import find_weights
from lamella.adapters.tokens.counter import OfflineCounter
from lamella.adapters.tokens.gguf import Vocabulary, read_vocabulary
from lamella.adapters.tokens.own import SPLITS, open_vocabulary
from lamella.core.budget.counting import count_pieces
from lamella.core.messages.request import Request

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
    with find_weights("local").open("rb") as file:
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
def test_every_way_of_cutting_text_gives_the_engines_tokens(tmp_path: Path, split: str) -> None:
    path = rewrite(split, tmp_path / "some.gguf")
    vocabulary = read_vocabulary(path)
    assert vocabulary is not None
    assert vocabulary.split == split
    own = open_vocabulary(vocabulary)
    assert own is not None
    engine = LlamaServer(path, EngineOptions(window=256))
    texts = [*mixed(400), Path("README.md").read_text(encoding="utf-8")]
    different = [text for text in texts if tuple(own.encode(text)) != engine.tokenize(text)]
    engine.close()
    assert different == []


def test_all_ways_of_cutting_that_are_known_are_those_that_were_compared() -> None:
    assert {*SPLITS.values()} == {
        SPLITS[name] for name in ("gpt-2", "gpt-4o", "llama-bpe", "qwen2", "smollm", "tekken")
    }


def test_a_request_weighs_what_the_engine_says_or_a_token_more_for_each_question() -> None:
    chat = Conversation(system="You are terse.", layout="in_place", model="local")
    digits = Note(path="digits.md", text="".join(f"{number},{number * number}\n" for number in range(40)) + "\n\n")

    async def weigh() -> list[int]:
        provider = LocalProvider(options=SMALL)
        more: list[int] = []
        for typed, notes in (("When is high tide?", [digits]), ("Wirklich? 日本語", []), ("Thanks.\n", [])):
            turn = chat.ask(typed, attach=notes)
            forecast = await provider.forecast(Request(model="local", messages=turn.messages))
            more.append(turn.tokens.total - forecast.prompt)
            chat.reply("Yes, at 12:30.")
        await provider.close()
        return more

    # The system message and each question are counted as long as an answer's frame, which has a token more.
    assert run(weigh()) == [2, 3, 4]


def test_counting_piece_by_piece_is_counting_the_whole_also_where_line_breaks_meet() -> None:
    count = OfflineCounter().measure("local").count
    pieces = ["One.\n\n\n", "<note>\nTwo.\n\n</note>\n\n", "<b>", "Three.\n", "Four"]
    assert count_pieces(pieces, count) == count("".join(pieces))


def test_marks_of_the_chat_format_count_as_the_text_that_is_sent_for_them() -> None:
    measure = OfflineCounter().measure("local")
    assert len(measure.encode("<|im_end|>")) == 1
    assert measure.count("<|im_end|>") == len(measure.encode("<\u200b|im_end|>"))


def test_the_measure_is_exact_made_once_and_named_by_the_vocabulary() -> None:
    counter, weights = OfflineCounter(), find_weights("local")
    local = counter.measure("local")
    assert local.factor == 1.0
    assert local.name.startswith("gguf-")
    assert counter.measure("local") is local
    assert counter.measure(f"gguf:{weights}").name == local.name
    other = read_vocabulary(weights)
    assert other is not None
    renamed = open_vocabulary(replace(other, split="gpt-2"))
    assert renamed is not None
    assert renamed.name != local.name


@pytest.mark.parametrize("content", [b"", b"GGUF", b"something else"])
def test_a_file_without_a_vocabulary_is_estimated(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.gguf"
    path.write_bytes(content)
    assert [OfflineCounter().measure(f"gguf:{place}").name for place in (path, tmp_path / "missing")] == ["local"] * 2


def test_a_vocabulary_that_lacks_letters_or_cuts_in_unknown_ways_is_none() -> None:
    letters = tuple(chr(code) for code in range(0x21, 0x7F))
    small = Vocabulary(split="gpt-2", tokens=letters, marks=(500,), merges=(), begins=True, template="")
    found = open_vocabulary(small)
    assert found is not None
    assert (found.count("abc"), found.per_message, found.per_request) == (3, 5, 6)
    assert open_vocabulary(replace(small, tokens=letters[1:])) is None
    assert open_vocabulary(replace(small, split="nobody's")) is None


def test_a_file_that_comes_later_or_goes_is_noticed(tmp_path: Path) -> None:
    counter, path = OfflineCounter(), tmp_path / "model.gguf"
    model = f"gguf:{path}"
    estimated = counter.measure(model)
    path.symlink_to(find_weights("local"))
    own = counter.measure(model)
    assert counter.measure(model) == own
    assert counter.measure(model) is own
    path.unlink()
    assert counter.measure(model) is estimated


def test_a_file_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    counter, path = OfflineCounter(), tmp_path / "model.gguf"
    before = counter.measure(f"gguf:{rewrite('gpt-2', path)}")
    rewrite("llama-bpe", path)
    after = counter.measure(f"gguf:{path}")
    assert after.name != before.name
    assert after.name == OfflineCounter().measure(f"gguf:{path}").name
