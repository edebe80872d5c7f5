"""The recipe for a setting, followed in a copy of the source: it is read from everywhere, and holds for each turn."""

from pathlib import Path

import pytest
from tests.contracts.recipes import SourceCopy, named_files

# How many files of ``src`` a setting touches now that bytes follow from, and how many it should.
AT_MOST, AIM = 3, 3

MOOD = 'class Mood(StrEnum):\n    """How it is said."""\n\n    CALM = "calm"\n    GLAD = "glad"\n\n\n'
READ = """
import json, os
from pathlib import Path

import lamella
from lamella import Conversation, LamellaError
from lamella.adapters.archive.transcript import load_transcript
from lamella.faces.cli import main

def mood(chat):
    return chat.preview("Hello?").envelope.prompt.terms.mood

# By its default, given in Python, from the environment, from a file; a wrong one is told.
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

# In a store: a turn keeps the one it was asked under.
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


@pytest.fixture
def copy(tmp_path: Path) -> SourceCopy:
    return SourceCopy(tmp_path)


def test_a_setting_that_bytes_follow_from_is_a_field_in_each_place_that_names_it(copy: SourceCopy) -> None:
    copy.put("settings/model.py", '    mood: str = "calm"\n', before="    history_turns: ")
    copy.put("adapters/archive/transcript.py", "    mood: str | None = None\n", before="    history_turns: ")
    copy.put("core/log/terms.py", MOOD, before="class Terms(")
    copy.put("core/log/terms.py", "    mood: Mood = Mood.CALM\n", before="    history_turns: ")
    told = copy.run(READ)
    assert "Choose one of: calm, glad." in told
    assert copy.changed() == named_files("A setting")
    assert AIM <= len(copy.changed()) <= AT_MOST
