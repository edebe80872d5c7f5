"""The envelope: frozen, versioned, five layers always, and every hash the hash of what it names."""

from hashlib import sha256

import pytest
from tests.conftest import Watched
from tests.unit.pictures import png

from lamella import Conversation, Envelope, Image, Note, Tool, ToolResult
from lamella.core.prompt.layers.model import LAYER_ORDER, LayerId
from lamella.tokenizers.o200k import count_tokens

EMPTY = "sha256:" + sha256(b"").hexdigest()
PROMOTES = pytest.mark.moves_prefix(reason="the note goes into the library")


def digest(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


def second_turn(converse: type[Watched], layout: str = "library") -> Envelope:
    chat = converse(layout=layout, system={"base": "B.", "memory": "M."}, conversation_key="c")
    chat.ask("one", attach=[Note(path="a.md", text="A")], results=[ToolResult(name="t", output="T")])
    chat.reply("r")
    return chat.ask("two", attach=[Note(path="a.md", text="A"), Note(path="b.md", text="B")]).envelope


@PROMOTES
def test_envelope_has_version_ids_and_five_layers(converse: type[Watched]) -> None:
    envelope = second_turn(converse)
    assert envelope.version == 1
    assert envelope.conversation_id == "c"
    assert envelope.message_id
    assert tuple(layer.id for layer in envelope.layers) == LAYER_ORDER


def test_empty_turn_still_has_five_layers() -> None:
    envelope = Conversation().ask("").envelope
    assert [layer.text for layer in envelope.layers] == [""] * 5
    assert [layer.hash for layer in envelope.layers] == [EMPTY] * 5
    assert envelope.prefix_hash == EMPTY


def test_envelope_cannot_be_changed() -> None:
    envelope = Conversation().ask("hi").envelope
    with pytest.raises(AttributeError):
        envelope.epoch = 7  # type: ignore[misc]
    with pytest.raises(AttributeError):
        envelope.layers[4].segments[0].text = "other"  # type: ignore[misc]


@PROMOTES
def test_prefix_hash_is_hash_of_system_message(converse: type[Watched]) -> None:
    envelope = second_turn(converse)
    assert envelope.prefix_hash == digest(envelope.messages[0].text)


@PROMOTES
def test_layer_hash_is_hash_of_its_text(converse: type[Watched]) -> None:
    envelope = second_turn(converse)
    assert [layer.hash for layer in envelope.layers] == [digest(layer.text) for layer in envelope.layers]


@PROMOTES
def test_segment_hash_is_hash_of_its_content(converse: type[Watched]) -> None:
    envelope = second_turn(converse)
    hashes = {segment.id: segment.hash for layer in envelope.layers for segment in layer.segments}
    assert hashes["a.md"] == digest("A")
    assert hashes["b.md"] == digest("B")
    assert hashes["memory"] == digest("M.")


@PROMOTES
def test_text_is_the_layers_in_order(converse: type[Watched]) -> None:
    envelope = second_turn(converse)
    position = 0
    for layer in envelope.layers:
        position = envelope.text.index(layer.text, position) + len(layer.text)
    assert position == len(envelope.text)


def test_hash_of_the_whole_changes_with_any_layer() -> None:
    asks = [
        Conversation().ask("hi"),
        Conversation(system="B.").ask("hi"),
        Conversation().ask("ho"),
        Conversation().ask("hi", attach=[Note(path="a.md", text="A")]),
    ]
    assert len({turn.envelope.hash for turn in asks}) == 4


@PROMOTES
def test_each_segment_has_its_place(converse: type[Watched]) -> None:
    envelope = second_turn(converse)
    for layer in envelope.layers:
        for segment in layer.segments:
            assert segment.place is not None
            name, _, index = segment.place.partition(":")
            message = envelope.messages[0 if name == "system" else int(index)]
            assert segment.text in message.text


def test_in_place_each_segment_has_its_place(converse: type[Watched]) -> None:
    envelope = second_turn(converse, layout="in_place")
    places = [segment.place for layer in envelope.layers for segment in layer.segments]
    system, library, turn = ["system", "system"], ["message:1"], ["message:3", "message:3"]
    assert places == [*system, *library, *turn, "message:1", "message:1", "message:2", "message:3"]
    for layer in envelope.layers:
        for segment in layer.segments:
            index = 0 if segment.place == "system" else int(str(segment.place).partition(":")[2])
            assert segment.text in envelope.messages[index].text


@pytest.mark.layout("library")
@PROMOTES
@pytest.mark.parametrize("model", ["openai:gpt-5", None])
def test_total_is_counted_on_the_rendered_messages(converse: type[Watched], model: str | None) -> None:
    chat = converse(model=model, system="B.")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    turn = chat.ask(" two", attach=[Note(path="a.md", text="A"), Note(path="b.md", text="  B")])
    per_message, per_request = (3, 3) if model else (4, 3)
    content = sum(count_tokens(message.text) for message in turn.messages)
    assert turn.tokens.total == content + per_message * len(turn.messages) + per_request


def test_tool_definitions_and_images_are_counted() -> None:
    plain = Conversation(model="openai:gpt-5").ask("q").tokens
    tools = Conversation(model="openai:gpt-5").ask("q", tools=[Tool(name="search")]).tokens
    picture = Conversation(model="openai:gpt-5").ask("q", attach=[Image(data=png(100, 100))]).tokens
    assert tools.by_layer["tools"] == tools.total - plain.total > 0
    assert picture.total - plain.total == 210


@PROMOTES
def test_tokens_outside_layers_are_overhead(converse: type[Watched]) -> None:
    tokens = second_turn(converse).tokens
    assert tokens.by_layer["overhead"] == tokens.total - sum(
        tokens.by_layer[name] for name in (*[layer.value for layer in LayerId], "tools")
    )


def test_same_turn_gives_the_same_envelope_twice(converse: type[Watched]) -> None:
    one, other = (second_turn(converse, layout="in_place") for _ in range(2))
    assert one == other
