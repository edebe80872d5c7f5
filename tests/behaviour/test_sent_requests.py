"""Every interface shows the requests that were sent, or gives the reason why a request cannot be derived."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.invariants.tool_rounds import call_tools
from tests.journeys.running import run

import lamella
from lamella import Conversation, InvalidOperationError, Note
from lamella.conversation.turn import ModelAnswer
from lamella.core.log.events.kinds import EventBatch, EventRecord
from lamella.core.messages import ModelReply, StopReason
from lamella.core.values import replace
from lamella.stores.open_store import open_sqlite
from lamella.wiring import build_request_body

NOTE = Note(path="tides.md", text="# Tides\n\n" + "The water rises twice a day, and falls as often.\n\n" * 40)
LONG = "The tide is a long wave that the moon pulls around the world. " * 40
REQUEST = ("--provider", "anthropic", "--model", "anthropic:claude-opus-5-5")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chats.db'}"


def talk(conversation: Conversation) -> list[list[dict[str, object]]]:
    """Four turns with a compaction after the second and its undo after the third; returns what was sent."""
    sent = []
    for number in range(4):
        attach = [NOTE] if number == 0 else []
        turn = conversation.ask(f"Question {number}?", attach=attach)
        sent.append([message.to_dict() for message in turn.messages])
        conversation.reply(LONG)
        if number == 1:
            assert conversation.compact(to=0.001) is not None
        elif number == 2:
            conversation.undo()
    return sent


def shown(conversation: Conversation) -> list[list[dict[str, object]]]:
    return [[message.to_dict() for message in turn.messages] for turn in conversation.replay()]


@pytest.fixture
def sent(url: str) -> list[list[dict[str, object]]]:
    with lamella.open(url) as engine:
        return talk(engine.chat("tides", layout="in_place"))


def test_replay_shows_requests_before_and_after_a_compaction_as_sent(
    url: str, sent: list[list[dict[str, object]]]
) -> None:
    with lamella.open(url) as engine:
        assert shown(engine.chat("tides")) == sent
        sizes = [turn.tokens.total for turn in engine.chat("tides").replay()]
    assert sizes[2] < 0.6 * sizes[3]


def test_replay_command_shows_requests_as_sent_and_checks_their_hashes(
    url: str, sent: list[list[dict[str, object]]]
) -> None:
    body = json.loads(run("replay", "tides", "--store", url, "--json").out)
    assert [turn["messages"] for turn in body["turns"]] == sent
    assert [turn["check"]["status"] for turn in body["turns"]] == ["verified"] * 4
    checked = run("replay", "tides", "--store", url, "--check")
    assert checked.exit == 0
    assert "4 requests as sent, by the stored hash" in checked.out


def test_request_command_prints_the_body_that_was_sent(url: str, sent: list[list[dict[str, object]]]) -> None:
    body = json.loads(run("request", "tides", *REQUEST, "--turn", "3", "--store", url).out)
    assert json.dumps(body).count(LONG.strip()) == 1
    whole = json.loads(run("request", "tides", *REQUEST, "--turn", "4", "--store", url).out)
    assert json.dumps(whole).count(LONG.strip()) == 3


def test_transcript_lists_the_turns_that_it_cannot_reproduce(
    url: str, sent: list[list[dict[str, object]]], tmp_path: Path
) -> None:
    exported = run("chats", "export", "tides", "--transcript", "--to", str(tmp_path / "out"), "--store", url)
    assert exported.exit == 0
    assert "turn 3 of this transcript differs from what was sent" in exported.err
    file = Path(exported.out.strip())
    assert json.loads(file.read_text(encoding="utf-8"))["differing_turns"] == [3]
    replayed = run("replay", str(file), "--json")
    assert "turn 3 of this transcript differs" in replayed.err
    turns = json.loads(replayed.out)["turns"]
    assert [turn["messages"] for at, turn in enumerate(turns) if at != 2] == [
        one for at, one in enumerate(sent) if at != 2
    ]


def with_other_hash(url: str, other: str) -> None:
    """Copy the conversation into another store, in which the second question has another stored hash."""
    copy_changed(url, other, change_second_fingerprint)


def change_second_fingerprint(records: list[EventRecord]) -> None:
    number = [at for at, one in enumerate(records) if '"whole"' in one.body][1]
    body = json.loads(records[number].body)
    body["imprint"]["whole"] = body["imprint"]["prefix"]
    records[number] = replace(records[number], body=json.dumps(body, sort_keys=True, separators=(",", ":")))


def change_last_request_hash(records: list[EventRecord]) -> None:
    number = [at for at, one in enumerate(records) if '"request":[' in one.body][-1]
    body = json.loads(records[number].body)
    body["calls"][-1]["request"][0] = "sha256:" + "0" * 64
    records[number] = replace(records[number], body=json.dumps(body, sort_keys=True, separators=(",", ":")))


def remove_request_hashes(records: list[EventRecord]) -> None:
    """Make the records those of an earlier version, which stored only the hash of the first request of a turn."""
    for number, record in enumerate(records):
        body = json.loads(record.body)
        for call in (*body.get("calls", ()), *body.get("made", ())):
            if isinstance(call, dict):
                call.pop("request", None)
        records[number] = replace(record, body=json.dumps(body, sort_keys=True, separators=(",", ":")))


def copy_changed(url: str, other: str, change: Callable[[list[EventRecord]], None]) -> None:
    source, target = open_sqlite(url.removeprefix("sqlite:///")), open_sqlite(other.removeprefix("sqlite:///"))
    key = source.list_conversations()[0].conversation
    records = list(source.load(key))
    change(records)
    names = {name for record in records for name in record.contents}
    contents = source.read_contents(key, sorted(names))
    target.append(key, EventBatch(records=tuple(records), contents=contents), expected=0, title="", name="tides")
    source.close()
    target.close()


def test_request_with_another_hash_fails_every_check(
    url: str, sent: list[list[dict[str, object]]], tmp_path: Path
) -> None:
    other = f"sqlite:///{tmp_path / 'other.db'}"
    with_other_hash(url, other)
    checked = run("replay", "tides", "--store", other, "--check")
    assert checked.exit == 1
    assert "not as sent: turns 2" in checked.err
    verified = run("store", "verify", "--store", other)
    assert verified.exit == 1
    assert "the request derived for it is not the one that was sent" in verified.err
    refused = run("request", "tides", *REQUEST, "--turn", "2", "--store", other)
    assert (refused.exit, "cannot be shown as it was sent" in refused.err) == (2, True)
    with lamella.open(other) as engine:
        assert any("not the one that was sent" in one.description for one in engine.verify())
    assert run("store", "verify", "--store", url).exit == 0


def test_each_request_after_a_tool_round_is_checked(url: str, tmp_path: Path) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("tides")
        conversation.ask("When is high tide?")
        for number in range(2):
            last = call_tools(conversation, number)
        conversation.reply(ModelAnswer(reply=ModelReply(text="At noon.", stop=StopReason.END)))
        sent = [message.to_dict() for message in last.messages]
    (shown,) = json.loads(run("replay", "tides", "--store", url, "--json").out)["turns"]
    assert shown["messages"] == sent
    assert shown["check"]["status"] == "verified"
    for change, status, exit_code in (
        (change_last_request_hash, "differs", 1),
        (remove_request_hashes, "unverified", 0),
    ):
        other = f"sqlite:///{tmp_path / status}.db"
        copy_changed(url, other, change)
        (shown,) = json.loads(run("replay", "tides", "--store", other, "--json").out)["turns"]
        assert shown["messages"] == sent
        assert shown["check"]["status"] == status
        assert run("replay", "tides", "--store", other, "--check").exit == exit_code
        assert run("store", "verify", "--store", other).exit == exit_code


def test_request_with_erased_content_reports_it(url: str, sent: list[list[dict[str, object]]]) -> None:
    with lamella.open(url) as engine:
        engine.erase_artifact("tides", "tides.md")
        first = next(engine.chat("tides").replay())
        assert first.check is not None
        assert (first.check.status, first.check.has_no_known_difference) == ("erased", False)
        with pytest.raises(InvalidOperationError):
            build_request_body(first, "openai", max_answer_tokens=None, allow_any_model=True)
    messages = run("replay", "tides", "--store", url, "--messages").out
    assert "not shown as it was sent" in messages
    checked = run("replay", "tides", "--store", url, "--check")
    assert "cannot be derived: turns 1" in checked.out
    assert run("store", "verify", "--store", url).exit == 0
    refused = run("request", "tides", *REQUEST, "--turn", "1", "--store", url)
    assert (refused.exit, "erased" in refused.err) == (2, True)
