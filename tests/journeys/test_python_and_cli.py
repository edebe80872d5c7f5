"""Operations of Python on stored conversations work on the command line, too, and the other way round."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import Ran, run, spawn

import lamella
from lamella import (
    CompactionProposal,
    ConflictError,
    Conversation,
    LedgerTotals,
    MessageHit,
    Note,
    StoreError,
    TurnEvent,
    build_ledger_rows,
    total_ledger_rows,
)
from lamella.testing import ScriptedProvider, ScriptedReply

Script = Callable[..., str]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chats.db'}"


@pytest.fixture
def kept(url: str, script: Script, home: Mapping[str, str]) -> str:
    """The name of a conversation of two turns, the first with a note; the command line trusts its model, too."""
    with lamella.open(url) as engine:
        model = script("Peas.", "Beets.")
        conversation = engine.chat("garden", layout="in_place", model=model)
        conversation.ask(
            "What grows here?", attach=[Note(path="garden.md", text="# Garden\nBeans.\n")], system="Be terse."
        )
        conversation.reply("Beans.")
        conversation.ask("And in winter?")
        conversation.reply("Nothing.")
    words = ("trust", "add", "model", model)
    assert (run(*words).exit, spawn(*words, environment=home).exit) == (0, 0)
    return "garden"


def said(url: str, name: str = "garden") -> list[str]:
    with lamella.open(url) as engine:
        return [node.text for record in engine.chat(name).turns() for node in (record.message, record.reply) if node]


def name_question(url: str, number: int = 1) -> str:
    with lamella.open(url) as engine:
        return engine.chat("garden").turns()[number].message.id


def test_stored_conversation_replays_by_name_like_python(url: str, kept: str) -> None:
    ran = run("replay", kept, "--store", url, "--json", "--layout", "library", "--window", "9000")
    assert (ran.exit, ran.err) == (0, "")
    body = json.loads(ran.out)
    with lamella.open(url) as engine:
        turns, key = list(engine.chat(kept).replay(layout="library", window=9_000)), engine.chat(kept).id
    assert (body["conversation"], body["layout"]) == (key, "library")
    assert [turn["messages"] for turn in body["turns"]] == [[m.to_dict() for m in turn.messages] for turn in turns]
    assert [turn["tokens"]["limit"] for turn in body["turns"]] == [4_904, 4_904]


def test_request_of_stored_conversation_is_printed(url: str, kept: str) -> None:
    words = ("--provider", "anthropic", "--model", "anthropic:claude-opus-5-5", "--turn", "2", "--store", url)
    body = json.loads(run("request", kept, *words).out)
    assert body["model"] == "claude-opus-5-5"
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert "has 2)." in run("request", kept, *words[:4], "--turn", "3", "--store", url).err


def test_transcript_of_stored_conversation_replays_same_bytes(url: str, kept: str, tmp_path: Path) -> None:
    exported = run("chats", "export", kept, "--transcript", "--to", str(tmp_path / "out"), "--store", url)
    file = Path(exported.out.strip())
    assert (exported.exit, file.name) == (0, "garden.json")
    with lamella.open(url) as engine:
        assert json.loads(file.read_text(encoding="utf-8")) == engine.chat(kept).transcript()
    replayed, sent = (
        json.loads(run("replay", *words, "--json").out) for words in ((str(file),), (kept, "--store", url))
    )
    assert [turn.pop("check") for turn in sent["turns"]] == [{"status": "verified", "detail": ""}] * 2
    assert replayed == sent
    again = run("chats", "export", kept, "--transcript", "--to", str(tmp_path / "out"), "--store", url)
    assert again.out == exported.out, "its own file is written over"
    assert run("chats", "export", kept, "--transcript", "--vault", ".", "--store", url).exit == 2


def test_file_wins_over_conversation_of_same_name_with_note(
    url: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / kept).write_text('{"lamella": 1, "conversation": "file", "turns": [{"user": "hi"}]}')
    ran = run("replay", kept, "--json", "--store", url)
    assert json.loads(ran.out)["conversation"] == "file"
    assert "is both a file and a conversation; this is the file" in ran.err
    with lamella.open(url) as engine:
        key = engine.chat(kept).id
    assert f"For the conversation, give its id, {key}." in ran.err
    assert json.loads(run("replay", key, "--json", "--store", url).out)["conversation"] == key
    assert run("replay", str(tmp_path / kept), "--json", "--store", url).err == ""


@pytest.mark.parametrize(
    "words", [("replay", "--json"), ("request", "--provider", "openai", "--model", "openai:gpt-5")]
)
def test_folder_of_same_name_is_never_a_transcript(
    words: tuple[str, ...], url: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = run(words[0], kept, *words[1:], "--store", url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / kept).mkdir()
    ran = run(words[0], kept, *words[1:], "--store", url)
    assert (ran.exit, ran.out, ran.err) == (0, elsewhere.out, "")
    (tmp_path / "nobody").mkdir()
    error = run(words[0], "nobody", *words[1:], "--store", url).err.splitlines()
    assert error[0].startswith("error: nobody cannot be read: ")
    assert "lamella chats list" in error[1]


def test_unknown_name_is_reported_for_file_and_conversation(url: str, kept: str) -> None:
    error = run("replay", "nobody", "--store", url).err.splitlines()
    assert error[0].startswith("error: nobody cannot be read")
    assert "lamella chats list" in error[1]


def test_conversation_is_forked_by_cli_and_python(url: str, kept: str) -> None:
    question = name_question(url)
    ran = run("chats", "fork", kept, question, "--into", "winter", "--store", url)
    assert ran.out.startswith(f"winter continues from {question} of garden.")
    with lamella.open(url) as engine:
        engine.fork(kept, question, "frost")
        assert [listed.name for listed in engine.chats()][:2] == ["frost", "winter"]
        assert list(engine.verify()) == []
    assert said(url, "winter") == said(url, "frost") == ["What grows here?", "Beans.", "And in winter?"]
    assert "already" in run("chats", "fork", kept, question, "--into", "winter", "--store", url).err


def test_question_is_edited_and_the_answer_printed(url: str, kept: str) -> None:
    ran = run("chats", "edit", kept, name_question(url), "And in spring?", "--store", url)
    assert (ran.exit, ran.out) == (0, "Peas.\n")
    assert said(url) == ["What grows here?", "Beans.", "And in spring?", "Peas."]


def test_question_is_answered_again_and_the_answer_printed(url: str, kept: str) -> None:
    assert run("chats", "regenerate", kept, "--store", url).out == "Peas.\n"
    assert said(url)[2:] == ["And in winter?", "Peas."]
    assert run("chats", "regenerate", kept, name_question(url, 0), "--store", url).out == "Peas.\n"
    assert said(url) == ["What grows here?", "Peas."]


def test_question_is_regenerated_with_other_model_by_cli_and_python(url: str, kept: str, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('["Leeks."]', encoding="utf-8")
    other = f"scripted:{tmp_path / 'other.json'}"
    ran = run("chats", "regenerate", kept, name_question(url, 0), "--model", other, "--store", url)
    assert (ran.exit, ran.out) == (0, "Leeks.\n")
    with lamella.open(url) as engine:
        conversation = engine.chat(kept)
        assert conversation.regenerate().envelope.model == other, "who answered last is asked again"
        turn = conversation.regenerate(model="scripted:third")
        assert turn.envelope.model == "scripted:third"
        assert ["Beans." in str(message.to_dict()) for message in turn.messages] == [False, True]
        conversation.reply("Garlic.")
        assert list(engine.verify()) == []
    assert said(url) == ["What grows here?", "Garlic."]


async def _resume(url: str) -> str:
    async with lamella.open(url) as engine:
        return "".join([event.text async for event in engine.chat("garden").resume()])


@pytest.mark.parametrize("door", ["chats regenerate", "chats edit", "chats resume", "/resume", "/retry", "resume()"])
def test_chat_without_model_uses_settings_in_each_interface(
    door: str, url: str, script: Script, home: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("garden")
        question = conversation.ask("What grows here?").envelope.message_id
        if door in ("chats regenerate", "chats edit"):
            conversation.reply("Beans.")
    there = {**home, "LAMELLA_MODEL": script("Peas.")}
    if door == "resume()":
        monkeypatch.setenv("LAMELLA_MODEL", there["LAMELLA_MODEL"])
        assert asyncio.run(_resume(url)) == "Peas."
        return
    text = (question, "And now?") if door == "chats edit" else ()
    if door.startswith("/"):
        ran = spawn("chat", "garden", "--store", url, stdin=f"{door}\n".encode(), environment=there)
    else:
        ran = spawn(*door.split(), "garden", *text, "--store", url, environment=there)
    assert (ran.exit, "Peas." in ran.out) == (0, True), ran.err


@pytest.mark.parametrize("left", ["without a model", "with one"])
def test_pending_question_is_answered_by_named_model(left: str, url: str, tmp_path: Path) -> None:
    own, other = (tmp_path / name for name in ("own.json", "other.json"))
    own.write_text('["Peas."]', encoding="utf-8")
    other.write_text('["Leeks."]', encoding="utf-8")
    with lamella.open(url) as engine:
        model = {} if left == "without a model" else {"model": f"scripted:{own}"}
        engine.chat("garden", **model).ask("What grows here?")
    ran = run("chats", "resume", "garden", "--model", f"scripted:{other}", "--store", url)
    assert (ran.exit, ran.out) == (0, "Leeks.\n")
    assert said(url) == ["What grows here?", "Leeks."]


@pytest.mark.parametrize("words", [("edit", "nobody", "x", "y"), ("regenerate", "nobody"), ("remove", "nobody", "x")])
def test_asking_again_creates_no_conversation(url: str, kept: str, words: tuple[str, ...]) -> None:
    ran = run("chats", *words, "--store", url)
    assert (ran.exit, ran.err.splitlines()[0]) == (2, "error: There is no conversation 'nobody'.")
    with lamella.open(url) as engine:
        assert [listed.name for listed in engine.chats()] == [kept]


def test_message_is_removed_from_the_branch(url: str, kept: str) -> None:
    question = name_question(url)
    assert run("chats", "remove", kept, question, "--store", url).out == f"garden continues without {question}.\n"
    assert said(url) == ["What grows here?", "Beans."]


def ask(home: Mapping[str, str], *words: str) -> Ran:
    return spawn("ask", *words, environment=home)


def test_preview_prints_next_request_and_stores_nothing(
    url: str, kept: str, home: Mapping[str, str], tmp_path: Path
) -> None:
    note = tmp_path / "plan.md"
    note.write_text("# Plan\n")
    words = ("And now?", "--chat", kept, "--store", url, "--attach", str(note), "--policy", "pin", "--preview")
    body = json.loads(ask(home, *words, "--json").out)
    shown = ask(home, *words)
    with lamella.open(url) as engine:
        conversation = engine.chat(kept)
        turn = conversation.preview("And now?", attach=[Note(path=str(note), text="# Plan\n", policy="pin")])
        assert len(conversation.turns()) == 2
    assert (body["turn"], body["messages"]) == (3, [message.to_dict() for message in turn.messages])
    assert body["tokens"]["total"] == turn.tokens.total
    assert f"{turn.tokens.total:,} of 123,904 tokens" in shown.out


def test_preview_needs_no_key_and_no_conversation(home: Mapping[str, str]) -> None:
    ran = ask(home, "Hello?", "--model", "anthropic:claude-opus-5-5", "--preview", "--json")
    assert ran.exit == 0
    assert json.loads(ran.out)["cost"]["currency"] == "USD"


def test_policy_that_does_not_exist_is_refused(home: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("# Plan\n")
    ran = ask(home, "Hello?", "--attach", str(tmp_path / "plan.md"), "--policy", "glue", "--preview")
    assert "There is no policy 'glue'." in ran.err


def test_in_a_chat_questions_are_previewed_pinned_edited_answered_again_and_deleted(
    url: str, kept: str, home: Mapping[str, str]
) -> None:
    first = name_question(url, 0)
    lines = (
        "/preview How much?", "/pin garden.md", "/pin nowhere.md", "Why?",
        "/edit Since when?", "/regenerate", f"/delete {first}", "/delete", "/edit", "/pin",
    )  # fmt: skip
    ran = spawn("chat", kept, "--store", url, stdin="\n".join(lines).encode(), environment=home)
    assert "of 123,904 tokens" in ran.out
    assert "nowhere.md is neither an attachment nor a message of the prompt." in ran.err
    assert ran.err.count("error: ") == 5, "a pin of nothing, one answer more than the script has, and three empty words"
    assert said(url)[:2] == ["And in winter?", "Nothing."]
    assert "Since when?" in said(url)


def test_artifact_pinned_by_id_cannot_be_dropped(url: str, kept: str) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat(kept)
        conversation.ask("Keep it.", pin=["garden.md"])
        conversation.reply("Yes.")
        turn = conversation.ask("Drop it.", drop=["garden.md"])
        assert any("garden.md" in warning for warning in turn.envelope.warnings)
        with pytest.raises(lamella.BadInputError, match=r"nobody.md cannot be pinned"):
            conversation.ask("Keep it.", pin=["nobody.md"])


async def _talk(chat: Conversation) -> list[TurnEvent]:
    return [event async for event in chat.send("When?")]


def test_totals_markers_and_edit_results_are_available_in_python(url: str) -> None:
    async def talk() -> tuple[LedgerTotals, list[str], list[str]]:
        provider = ScriptedProvider(ScriptedReply(text="At noon."), ScriptedReply(text="At six."))
        async with lamella.open(url, model="local", provider=provider) as engine:
            conversation = engine.chat("tides", layout="in_place")
            events = await _talk(conversation)
            turn = conversation.edit(conversation.turns()[0].message.id, "When is low tide?")
            answers = [event.text async for event in conversation.send(turn)]
            rows = build_ledger_rows(conversation.turns(), conversation.ledger())
            planned: CompactionProposal = conversation.plan(to=0.5)
            assert planned.receipt is None
            assert list(conversation.compaction_markers()) == []
            hits: list[MessageHit] = list(engine.search("six"))
            assert [hit.excerpt for hit in hits] == ["At six."]
            return total_ledger_rows(rows), [event.kind.value for event in events][-1:], answers

    sums, kinds, answers = asyncio.run(talk())
    assert (sums.calls, kinds, "".join(answers)) == (1, ["done"], "At six.")
    assert issubclass(ConflictError, StoreError)


def test_default_window_and_layout_match_in_cli_and_python(url: str) -> None:
    told = json.loads(run("config", "show", "--model", "local", "--json").out)["chat"]
    with lamella.open(url) as engine:
        fitting = engine.default_settings_for("local")
    assert {name: told[name] for name in fitting} == dict(fitting)
    assert told["model"] == "local"
