"""The recipe for a setting, followed in a copy of the source: every source of settings has it, and turns store it."""

from pathlib import Path

import pytest
from tests.contracts.recipes import SourceCopy

MOOD = 'class Mood(StrEnum):\n    """The tone."""\n\n    CALM = "calm"\n    GLAD = "glad"\n\n\n'
READ = """
import json, os
from pathlib import Path

import lamella
from lamella import Conversation, LamellaError
from lamella.archive.transcript import load_transcript
from lamella.cli import main

def mood(chat):
    return chat.preview("Hello?").envelope.prompt.turn_settings.mood

# By default, in Python, from the environment and from a file; an unknown value is an error.
assert mood(Conversation()) == "calm"
assert mood(Conversation(mood="glad")) == "glad"
os.environ["LAMELLA_MOOD"] = "glad"
assert mood(Conversation()) == "glad"
del os.environ["LAMELLA_MOOD"]
Path("lamella.toml").write_text('mood = "glad"\\n', encoding="utf-8")
os.environ["LAMELLA_CONFIG"] = "lamella.toml"
assert mood(Conversation()) == "glad"
os.environ["LAMELLA_CONFIG"] = os.devnull
Path("lamella.toml").unlink()
try:
    Conversation(mood="odd")
except LamellaError as error:
    print(error.code, error.hint)

# In a transcript.
transcript = {"lamella": 1, "mood": "glad", "turns": [{"user": "Hello?"}]}
Path("talk.json").write_text(json.dumps(transcript), encoding="utf-8")
assert load_transcript(Path("talk.json")).settings() == {"mood": "glad"}
assert main(["replay", "talk.json", "--json"]) == 0

# In a store: a turn keeps the value it was asked with.
with lamella.open("sqlite:///one.db") as engine:
    chat = engine.chat("garden", mood="glad")
    chat.ask("Hello?")
    chat.reply("Hi.")
with lamella.open("sqlite:///one.db") as engine:
    assert mood(engine.chat("garden")) == "glad"
    chat = engine.chat("garden", mood="calm")
    assert mood(chat) == "calm"
    assert [turn["user"] for turn in chat.transcript()["turns"]] == ["Hello?"]
    assert chat.transcript()["mood"] == "glad"
"""
STORED = """
from lamella.core.log.events.codec import encode_event, decode_event
from lamella.core.log.events.kinds import EventKind, EventRecord
from lamella.core.log.events.message import make_question_event, make_unplaced_question_event, turn_from_event
from lamella.core.log.turn import Mood, Turn, TurnSettings

settings = TurnSettings(mood=Mood.GLAD, loud=True, pace=3)
turn = Turn(text="x", typed="x", id="m", turn_settings=settings)
record = encode_event(make_question_event(turn, message_id="m", parent=""), timestamp="")
assert '"loud":true,"mood":"glad","pace":3' in record.body, record.body
assert turn_from_event(decode_event(record), {}, defaults=TurnSettings()) == turn
# A turn that was stored before the setting existed has its default.
old = decode_event(EventRecord(kind=EventKind.MESSAGE, at="", body='{"id":"m","parent":"","text":"x"}'))
assert turn_from_event(old, {}, defaults=settings).turn_settings == TurnSettings()
# A turn that leaves its settings open has those of the conversation.
opened = decode_event(encode_event(make_unplaced_question_event(turn), timestamp=""))
assert turn_from_event(opened, {}, defaults=settings).turn_settings == settings
try:
    decode_event(EventRecord(kind=EventKind.MESSAGE, at="", body='{"id":"m","loud":"very","parent":"","text":"x"}'))
except ValueError as error:
    print(error)
"""


@pytest.fixture
def copy(tmp_path: Path) -> SourceCopy:
    return SourceCopy(tmp_path)


def test_setting_recipe_gives_a_setting_that_every_source_accepts_and_turns_store(copy: SourceCopy) -> None:
    copy.insert("settings/model.py", '    mood: str = "calm"\n', before="    history_turns: ")
    copy.insert("archive/transcript.py", "    mood: str | None = None\n", before="    history_turns: ")
    copy.insert("core/log/turn.py", MOOD, before="class TurnSettings(")
    copy.insert("core/log/turn.py", "    mood: Mood = Mood.CALM\n", before="    history_turns: ")
    assert "Choose one of: calm, glad." in copy.run(READ)
    copy.check("Add a setting")


def test_field_of_turn_settings_is_stored_with_every_turn(copy: SourceCopy) -> None:
    copy.insert("core/log/turn.py", MOOD, before="class TurnSettings(")
    fields = "    mood: Mood = Mood.CALM\n    loud: bool = False\n    pace: int | None = None\n"
    copy.insert("core/log/turn.py", fields, before="    image_notes: ImageNoteMode")
    assert "Expected `bool" in copy.run(STORED)
    assert copy.changed() == ["core/log/turn.py"]
