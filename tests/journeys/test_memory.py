"""``lamella memory`` and ``/memory``: shown, edited and loaded, by people and programs."""

import json
import os
from pathlib import Path

import pytest
from tests.journeys.running import Ran, refusal, spawn_in


class Person:
    """Somebody with a memory and a store of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "memory"
        self._environment = {
            **os.environ,
            "LAMELLA_MEMORY_FOLDER": str(self.folder),
            "LAMELLA_STORE": f"sqlite:///{folder / 'chats.db'}",
        }
        self._here = folder

    def run(self, *words: str, typed: str = "", **environment: str) -> Ran:
        return spawn_in({**self._environment, **environment}, *words, stdin=typed.encode(), folder=self._here)

    def chat(self, *lines: str, **environment: str) -> Ran:
        script = self._here / "script.json"
        script.write_text(json.dumps(["Yes."] * 9), encoding="utf-8")
        model = f"scripted:{script}"
        return self.run("chat", "garden", "--model", model, typed="\n".join((*lines, "")), **environment)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_facts_are_listed_added_edited_and_removed(person: Person) -> None:
    assert person.run("memory", "list").out.startswith("No facts yet.\nFolder: ")
    assert person.run("memory", "add", "My garden is in Graz").out == "Saved: My garden is in Graz\n"
    assert person.run("memory", "add", "my garden is in graz").out == "Already saved: My garden is in Graz\n"
    added = json.loads(person.run("memory", "add", "Likes tea", "--json").out)
    assert (added["kind"], added["text"], added["new"]) == ("saved", "Likes tea", True)
    assert person.run("memory", "edit", "tea", "Likes coffee").out == "Changed: Likes coffee\n"
    assert person.run("memory", "remove", "1").out == "Removed: My garden is in Graz\n"
    listed = json.loads(person.run("memory", "list", "--json").out)
    assert listed["folder"] == str(person.folder)
    assert [(fact["number"], fact["text"]) for fact in listed["facts"]] == [(1, "Likes coffee")]


def test_manually_edited_memory_file_is_used(person: Person) -> None:
    person.run("memory", "add", "one")
    (person.folder / "facts.md").write_text("# About me\n\nI keep bees\n* I sow beans in May\n", encoding="utf-8")
    assert person.run("memory", "list").out.splitlines()[:2] == ["  1  I keep bees", "  2  I sow beans in May"]


def test_invalid_memory_command_is_reported(person: Person) -> None:
    assert "No fact is '7'" in refusal(person.run("memory", "remove", "7", "--json"), code="bad_call")
    assert "600 characters" in refusal(person.run("memory", "add", "x" * 600, "--json"), code="bad_call")
    person.run("memory", "add", "one")
    (person.folder / "facts.md").write_bytes(b"\xff\xfe")
    assert "is not UTF-8" in refusal(person.run("memory", "list", "--json"), code="source_unreadable")
    assert person.run("memory", "list", LAMELLA_MEMORY_FOLDER="~nobody-at-all/x").exit == 2


def test_chat_shows_adds_and_loads_memory(person: Person) -> None:
    person.run("memory", "add", "Likes tea")
    ran = person.chat(
        "/memory",
        "Hello",
        "/memory add Keeps bees",
        "Two",
        "/memory refresh",
        "Three",
        "/memory refresh",
        "/memory edit 2 Keeps hens",
        "/memory remove tea",
        "/memory keep",
        "/memory burn",
        "/memory add",
    )
    assert "  1  Likes tea\n" in ran.out
    assert "Saved: Keeps bees\n" in ran.out
    assert "The memory is updated with the next message (new: Keeps bees)" in ran.out
    assert "The memory of this conversation is up to date." in ran.out
    assert "Changed: Keeps hens" in ran.out
    assert "Removed: Likes tea" in ran.out
    assert "Unknown /memory action: burn" in ran.err
    assert "Missing fact." in ran.err
    told = person.run("ledger", "garden").out
    assert told.count("system_changed") == 1
    assert "system_changed(memory, new: Keeps bees)" in told
    assert "It has the remembered facts" in person.run("why", "garden", "memory").out


def test_chat_with_disabled_memory_has_none(person: Person) -> None:
    person.run("memory", "add", "Likes tea")
    person.chat("Hello", LAMELLA_MEMORY="off")
    assert "Likes tea" not in person.run("chats", "export", "garden", "--to", str(person.folder)).out
    why = person.run("why", "garden", "memory").out
    assert why.startswith("memory is not in the prompt")
    assert "attach it" not in why
    assert "the setting memory excludes them" in why
    assert person.run("chats", "show", "garden", "--sources").out.endswith("No answer cites a source.\n")


def test_conversation_summary_in_memory_is_erased_with_conversation(person: Person) -> None:
    person.chat("When are beans sown?")
    kept = json.loads(person.run("memory", "keep", "garden", "--json", LAMELLA_SUMMARIZER="off").out)
    assert (kept["kind"], kept["text"].endswith(", When are beans sown?")) == ("recent", True)
    assert "(a conversation)" in person.run("memory", "list").out
    assert person.run("chats", "delete", "garden", "--yes").exit == 0
    assert json.loads(person.run("memory", "list", "--json").out)["facts"] == []


def test_control_characters_in_memory_are_not_printed(person: Person) -> None:
    person.run("memory", "add", "one")
    (person.folder / "facts.md").write_text("- \x1b[2Jgone\u202e\n", encoding="utf-8")
    assert "\x1b" not in person.run("memory", "list").out
