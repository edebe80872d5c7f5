"""Images for text-only models: a line of text and a warning, and the chat continues."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.journeys.running import spawn
from tests.unit.pictures import png

import lamella
from lamella import ActiveNote, Image
from lamella.errors import RequestRejectedError
from lamella.providers.scripted import ScriptedProvider, ScriptedReply

MODEL = "house:guest"
LINE = "[Picture: chart.png, 20 by 10 pixels. You cannot see it: say so if it matters.]\n"
WARNING = "does not see pictures: chart.png is sent as a line of words."


def chart(shade: int = 0) -> Image:
    return Image(data=png(20, 10, shade), media_type="image/png", title="chart.png")


@pytest.fixture
def blind(tmp_path: Path) -> Path:
    """A file that says of the model that it does not see."""
    file = tmp_path / "facts.toml"
    file.write_text('[[model]]\nmatch = "guest"\nas_of = 2026-11-17\nsees = false\n', encoding="utf-8")
    return file


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_image_becomes_text_line_for_text_only_model(layout: str) -> None:
    chat = lamella.Conversation(model="local", layout=layout)
    turn = chat.ask("What is this?", attach=[chart()])
    assert turn.messages[-1].to_dict() == {"role": "user", "content": f"{LINE}[User query]:\nWhat is this?"}
    assert turn.envelope.warnings == (f"local {WARNING}",)
    chat.reply("I cannot see it.")
    later = chat.ask("And this?", attach=[chart(), chart(9)])
    assert not any(message.images for message in later.messages)
    chat.reply("Nor that.")
    seen = chat.ask("And you?", attach=[chart()], model="anthropic:claude-opus-5-5")
    assert (len(seen.messages[-1].images), seen.envelope.warnings) == (1, ())


def test_image_of_active_note_becomes_text_and_counts_as_text(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("Look: ![[chart.png]]", encoding="utf-8")
    (tmp_path / "chart.png").write_bytes(png(2_000, 2_000))
    for model, pictures in (("local", 0), ("anthropic:claude-opus-5-5", 1)):
        turn = lamella.Conversation(model=model, vault=tmp_path).ask("What?", attach=[ActiveNote(path="note.md")])
        assert len(turn.messages[-1].images) == pictures
        assert (turn.tokens.total > 1_000) is bool(pictures)


def test_chat_blocked_by_image_continues_once_model_is_text_only(
    blind: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    refused = ScriptedReply(error=RequestRejectedError("This model takes text only.", hint="Read its documents."))

    async def talk(*lines: str | ScriptedReply) -> tuple[ScriptedProvider, str]:
        script = ScriptedProvider(*lines)
        async with lamella.open(url, model=MODEL, provider=script) as engine:
            conversation = engine.chat("demo", layout="in_place")
            told = (
                conversation.send("What is this?", attach=[chart()])
                if not conversation.turns()
                else conversation.send("And now?")
            )
            return script, "".join([event.text async for event in told])

    with pytest.raises(RequestRejectedError) as raised:
        asyncio.run(talk(refused))
    assert "sees = false" in raised.value.hint
    monkeypatch.setenv("LAMELLA_MODEL_FACTS", str(blind))
    script, said = asyncio.run(talk("Better."))
    assert said == "Better."
    (request,) = script.requests
    assert [message.text for message in request.messages] == [f"{LINE}[User query]:\nWhat is this?", "", "And now?"]
    assert not any(message.images for message in request.messages)
    with lamella.open(url, model=MODEL) as engine:
        conversation = engine.chat("demo")
        assert [turn.messages[0].text for turn in conversation.replay()][-1].startswith(LINE)
        planned = conversation.plan(to=0.001)
        assert planned.before.total < 100


def test_ask_warns_and_shows_the_words(home: Mapping[str, str], tmp_path: Path) -> None:
    file = tmp_path / "chart.png"
    file.write_bytes(png(20, 10))
    words = ("ask", "What is this?", "--attach", str(file), "--model", "local", "--preview", "--json")
    ran = spawn(*words, environment=home)
    turn = json.loads(ran.out)
    assert LINE.replace(".png", "") in turn["messages"][-1]["content"]
    assert turn["envelope"]["warnings"] == [f"local {WARNING}".replace(".png", "")]
