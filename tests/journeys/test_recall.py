"""``lamella recall``: what left the prompt is found and comes back to the letter."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.journeys.running import Ran, refusal, run, spawn

import lamella
from lamella import Note, ToolResult

CHAT = "garden"
PLAN = "# Plan\n\tSow the beans «Ä-17» on 2026-04-03.  \n\nThen wait.\n" + "Water them in the evening.\n" * 20
ASKED = datetime(2026, 3, 1, 7, 30, tzinfo=UTC)
SAID_AT = f"{ASKED.astimezone():%Y-%m-%d %H:%M:%S}"
WEATHER = "Frost until 04:30, then 12 °C.\n"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A conversation that was compacted once, so that its beginning is out of the prompt."""
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(store) as engine:
        conversation = engine.chat(CHAT, layout="in_place", window=5_000, reserve=500)
        conversation.ask(
            "When do we sow?",
            attach=[Note(path="plan.md", text=PLAN)],
            results=[ToolResult(name="weather", arguments={"city": "Graz"}, output=WEATHER)],
            at=ASKED,
        )
        conversation.reply("In April, says the plan.", at=ASKED)
        for number in range(12):
            conversation.ask(f"What of bed {number}?" + " It was dug in March." * 12)
            conversation.reply(f"Bed {number} is fine." + " It grows well." * 12)
        assert conversation.compact(0.2) is not None
    return store


def recall(url: str, query: str, *words: str) -> Ran:
    return run("recall", CHAT, query, "--store", url, *words)


def test_note_is_recalled_exactly_with_its_place(url: str) -> None:
    ran = spawn("recall", CHAT, '"beans «Ä-17»"', "--store", url, "--whole")
    assert (ran.exit, ran.err) == (0, "")
    assert ran.out.startswith(f"─── turn 1, {SAID_AT}, note plan.md\n{PLAN}\n")
    by_name = spawn("recall", CHAT, "plan.md", "--store", url, "--limit", "1")
    assert by_name.out.startswith(f"─── turn 1, {SAID_AT}, note plan.md\n{PLAN}\n")


def test_long_note_is_shown_by_best_sentences_with_messages_around_it(url: str) -> None:
    long = "Nothing of interest is said here. " * 300 + "\nThe otter sleeps in the shed.\n" + "And so on. " * 300
    with lamella.open(url) as engine:
        chat = engine.chat("river", layout="in_place", window=50_000, reserve=500)
        chat.ask("Who sleeps where?", attach=[Note(path="otter.md", text=long)])
        chat.reply("It says so.")
        chat.ask("Thanks.", drop=["otter.md"])
        chat.reply("Yes.")
    ran = run("recall", "river", "otter shed", "--store", url)
    assert "part of 13,5" in ran.out.splitlines()[0]
    assert "The otter sleeps in the shed." in ran.out
    assert len(ran.out) < 1_000
    assert "─ after: turn 1, user\nWho sleeps where?" in ran.out
    (hit,) = json.loads(run("recall", "river", "otter shed", "--store", url, "--json").out)["hits"]
    assert (hit["whole"], hit["characters"], hit["turn"]) == (False, len(long), 1)
    assert "The otter sleeps in the shed." in hit["text"]
    assert hit["after"] == {"role": "user", "turn": 1, "message": hit["message"], "text": "Who sleeps where?"}
    assert hit["before"] is None
    with lamella.open(url) as engine:
        (same,) = engine.chat("river").recall("otter shed")
    assert same.text == hit["text"]
    assert same.passage.text == long


def test_tool_result_is_found_by_call_id_and_words(url: str) -> None:
    for query in ("weather Graz", "Frost", "04:30"):
        (found, *_) = json.loads(recall(url, query, "--json").out)["hits"]
        assert (found["place"], found["role"], found["text"]) == ("turn 1", "tool", WEATHER)
    by_id = json.loads(recall(url, found["title"].split()[0], "--limit", "1", "--json").out)["hits"]
    assert by_id[0]["text"] == WEATHER


def test_json_has_query_and_all_fields_of_originals(url: str) -> None:
    told = json.loads(recall(url, "plan April", "--json").out)
    with lamella.open(url) as engine:
        key = engine.chat(CHAT).id
    assert (told["conversation"], told["query"]) == (key, "plan April")
    fields = (
        *("text", "role", "turn", "at", "message", "id", "title", "place", "score", "excerpt", "whole", "characters"),
        *("before", "after"),
    )
    assert {tuple(found) for found in told["hits"]} == {fields}
    assert {found["at"] for found in told["hits"] if found["place"] == "turn 1"} == {"2026-03-01T07:30:00Z"}
    scores = [found["score"] for found in told["hits"]]
    assert scores == sorted(scores, reverse=True)


def test_no_more_than_the_limit_is_shown(url: str) -> None:
    assert recall(url, "dug in March", "--limit", "2").out.count("─── turn ") == 2
    assert recall(url, "dug in March").out.count("─── turn ") > 5
    assert recall(url, "dug in March", "--max-tokens", "100").out.count("─── turn ") == 1


def test_excerpts_are_short(url: str) -> None:
    whole, short = recall(url, "beans", "--limit", "1"), recall(url, "beans", "--limit", "1", "--excerpts")
    assert short.out.startswith(whole.out.splitlines()[0])
    assert len(short.out) < len(whole.out)


def test_text_still_in_prompt_is_not_recalled(url: str) -> None:
    ran = recall(url, "bed 11")
    assert all("bed 11?" not in line for line in ran.out.splitlines())
    nothing = recall(url, "zebra")
    assert (nothing.exit, nothing.out, nothing.err) == (1, "", "Nothing found outside the prompt.\n")
    told = recall(url, "zebra", "--json")
    assert (told.exit, json.loads(told.out)["hits"]) == (1, [])


def test_undo_returns_text_to_prompt(url: str) -> None:
    assert run("compact", CHAT, "--undo", "--store", url).exit == 0
    assert recall(url, "beans").exit == 1


def test_erased_text_is_not_found(url: str) -> None:
    assert run("chats", "delete", CHAT, "--artifact", "plan.md", "--yes", "--store", url).exit == 0
    assert '"note"' not in recall(url, "beans plan April", "--json").out
    assert "turn 1" in recall(url, "When do we sow?").out


REFUSED = {
    "no words": ("  ", (), "bad_call", "There is nothing to look for."),
    "none at most": ("beans", ("--limit", "0"), "bad_usage", "--limit"),
    "a limit in words": ("beans", ("--limit", "few"), "bad_usage", "--limit"),
}


@pytest.mark.parametrize(("query", "words", "code", "told"), REFUSED.values(), ids=REFUSED)
def test_invalid_recall_is_explained_with_hint(
    url: str, query: str, words: tuple[str, ...], code: str, told: str
) -> None:
    assert told in refusal(recall(url, query, "--json", *words), code=code)


def test_missing_conversation_is_reported(url: str) -> None:
    ran = run("recall", "nobody", "beans", "--json", "--store", url)
    assert refusal(ran, code="bad_call") == "There is no conversation 'nobody'."


@pytest.fixture
def many(url: str) -> str:
    """Three conversations, one of which was compacted."""
    with lamella.open(url) as engine:
        for name, said in (("kitchen", "The beans are cooked at noon."), ("cellar", "Wine and cheese.")):
            conversation = engine.chat(name)
            conversation.ask(said, at=ASKED)
            conversation.reply("Noted.", at=ASKED)
    return url


def test_all_option_searches_every_conversation(many: str) -> None:
    ran = run("recall", "--all", "cooking beans", "--store", many, "--limit", "1")
    assert (ran.exit, ran.err) == (0, "")
    place, text, *_ = ran.out.splitlines()
    assert place.startswith(f"─── kitchen, turn 1, {SAID_AT}, user ")
    assert text == "The beans are cooked at noon."
    both = json.loads(run("recall", "--all", "beans", "--store", many, "--json").out)
    assert {(found["name"], found["role"]) for found in both["hits"]} == {("kitchen", "user"), ("garden", "note")}
    assert set(both["hits"][0]) == {
        *("conversation", "name", "chat_title", "place", "at", "role", "id", "message", "title", "score"),
        *("excerpt", "text", "turn", "whole", "characters", "before", "after"),
    }


def test_python_recall_covers_all_conversations_and_changes(many: str) -> None:
    with lamella.open(many) as engine:
        found = [(chat.name, one.passage.role, one.at) for chat, one in engine.recall("beans")]
        assert ("kitchen", "user", "2026-03-01T07:30:00Z") in found
        assert list(engine.recall("zebra")) == []
        engine.chat("kitchen").ask("A zebra!")
        assert [chat.name for chat, _ in engine.recall("zebras")] == ["kitchen"]
        engine.erase("kitchen")
        assert list(engine.recall("zebras")) == []


def test_erased_text_is_not_found_in_any_conversation(many: str) -> None:
    assert run("chats", "delete", CHAT, "--artifact", "plan.md", "--yes", "--store", many).exit == 0
    told = json.loads(run("recall", "--all", "beans", "--store", many, "--json").out)
    assert {found["name"] for found in told["hits"]} == {"kitchen"}


def test_all_option_excludes_conversation_and_recall_needs_words(many: str) -> None:
    assert "Leave one of them out" in run("recall", CHAT, "beans", "--all", "--store", many).err
    assert "search words" in refusal(run("recall", CHAT, "--json", "--store", many), code="bad_usage")
    nothing = run("recall", "--all", "zebra", "--store", many)
    assert (nothing.exit, nothing.out, nothing.err) == (1, "", "Nothing found in any conversation.\n")


def test_damaged_conversation_does_not_block_others(many: str) -> None:
    with lamella.open(many) as engine:
        key = engine.resolve_conversation("cellar").conversation
    with closing(sqlite3.connect(many.removeprefix("sqlite:///"))) as database, database:
        database.execute("UPDATE events SET body = '{' WHERE conversation = ?", (key,))
    ran = run("recall", "--all", "beans", "--store", many)
    assert "kitchen" in ran.out
    assert ran.exit != 0
    assert "damaged" in ran.err or "cannot be read" in ran.err
    for command, hits in ((("recall", "--all"), "hits"), (("chats", "search"), "hits")):
        told = run(*command, "beans", "--store", many, "--json")
        body = json.loads(told.out)
        assert "kitchen" in {hit["name"] for hit in body[hits]}
        assert (body["error"]["code"], told.exit) == ("store_damaged", 1)
        assert "hint: " in told.err


def test_removed_text_is_found_while_turn_is_pending(url: str) -> None:
    with lamella.open(url) as engine:
        engine.chat(CHAT).ask("And now?")
    assert "note plan.md" in recall(url, "beans").out
