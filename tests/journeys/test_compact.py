"""``lamella compact``: planned, committed and undone, each time in a process of its own."""

import json
import re
from pathlib import Path

import pytest
from tests.journeys.running import Ran, refusal, run, spawn

import lamella
from lamella import Note, Selection, ToolResult

CHAT = "garden"
TURNS = 14
STORED = {"layout": "in_place", "window": 8_000, "reserve": 1_000, "model": "anthropic:claude-opus-5-5"}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with a conversation that never had to shrink."""
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(store) as engine:
        conversation = engine.chat(CHAT, **STORED)
        for number in range(TURNS):
            note = Note(path=f"bed-{number}.md", text=f"# Bed {number}\n" + f"Row {number} of beans. " * 30)
            found = ToolResult(name="weather", arguments={"day": number}, output=f"{number} degrees. " * 20)
            conversation.ask(
                f"What of bed {number}?" + " It was sown in April." * 10,
                attach=[note] if number % 3 == 0 else [],
                results=[found] if number % 4 == 1 else [],
            )
            conversation.reply(f"Bed {number} is fine." + " It grows well." * 10)
    return store


def ask_next(url: str, text: str = "And now?") -> lamella.Turn:
    """The next turn, without an answer; nobody is to go on after it."""
    with lamella.open(url) as engine:
        return engine.chat(CHAT).ask(text)


def compact(url: str, *words: str) -> Ran:
    return run("compact", CHAT, "--store", url, *words)


def planned(url: str, *words: str) -> dict[str, object]:
    ran = compact(url, "--json", *words)
    assert (ran.exit, ran.err) == (0, ""), ran
    told: dict[str, object] = json.loads(ran.out)
    return told


def test_plan_changes_nothing_and_commit_matches_it(url: str) -> None:
    plan = spawn("compact", CHAT, "--plan", "--to", "0.3", "--json", "--store", url)
    again = spawn("compact", CHAT, "--plan", "--to", "0.3", "--json", "--store", url)
    assert plan.exit == 0
    # On a busy machine planning may take long enough to be told of.
    assert plan.err in ("", f"Planning the compaction of {CHAT} …\n")
    assert plan.out == again.out
    done = spawn("compact", CHAT, "--to", "0.3", "--json", "--store", url)
    told, did = json.loads(plan.out), json.loads(done.out)
    assert (told.pop("committed"), did.pop("committed")) == (False, True)
    assert told == did
    with lamella.open(url) as engine:
        assert [receipt.id for receipt in engine.chat(CHAT).receipts()] == [did["receipt"]["id"]]


def _key(url: str) -> str:
    with lamella.open(url) as engine:
        return engine.chat(CHAT).id


def test_plan_as_data_has_steps_tokens_and_money(url: str) -> None:
    told = json.loads(compact(url, "--plan", "--to", "0.2", "--json").out)
    receipt, tokens, outlook = told["receipt"], told["tokens"], told["outlook"]
    assert told["conversation"] == _key(url)
    names = [step["name"] for step in receipt["steps"]]
    assert names == ["handle", "tool_results", "digest", "expendable"]
    assert all(step["removed"] and step["tokens_after"] < step["tokens_before"] for step in receipt["steps"])
    why = "nobody here has named the model that would write it"
    assert receipt["skipped"] == [{"name": "summary", "why": why}]
    assert told["warnings"] == []
    assert tokens["before"]["total"] == receipt["tokens_before"]
    assert tokens["after"]["total"] == receipt["tokens_after"] <= receipt["target"] == 1_400
    assert tokens["after"]["limit"] == 7_000
    assert sum(tokens["after"]["by_layer"].values()) == tokens["after"]["total"]
    assert outlook["moved"] > 0
    assert float(outlook["saved_per_turn"]) > 0


def test_plan_table_shows_removed_kept_and_savings(url: str) -> None:
    out = compact(url, "--plan", "--to", "0.2").out
    head, *lines = out.splitlines()
    assert re.fullmatch(rf"{CHAT}  [\d,]+ → [\d,]+ of 7,000 tokens  target 1,400  █ kept  ░ removed", head)
    for start in ("  L2_PREVIOUS █", "  L4_STRIP    █", "  handle ", "  expendable ", "  summary "):
        assert any(line.startswith(start) for line in lines), start
    assert "bed-0.md, bed-3.md and 2 more" in out
    assert re.search(
        r"[\d,]+ cached tokens will be sent again\. The next request costs \$[\d.]+ (more|less), each later one", out
    )
    assert lines[-1] == "Preview only. Run without --plan to apply."


def test_commit_table_names_receipt_and_undo_command(url: str) -> None:
    out = compact(url, "--to", "0.3").out
    with lamella.open(url) as engine:
        (receipt,) = engine.chat(CHAT).receipts()
    assert out.endswith(f"Compacted (receipt {receipt.id}). To undo: lamella compact {CHAT} --undo --store {url}\n")


def test_undo_gives_back_every_byte(url: str, tmp_path: Path) -> None:
    untouched = f"sqlite:///{tmp_path / 'untouched.db'}"
    assert run("store", "copy", "--from", url, "--to", untouched).exit == 0
    for share in ("0.4", "0.2"):
        assert spawn("compact", CHAT, "--to", share, "--store", url).exit == 0
    undone = spawn("compact", CHAT, "--undo", "--store", url)
    assert re.fullmatch(r"Undone: 1 compaction \(\w+\)\. The next request has [\d,]+ of 7,000 tokens\.\n", undone.out)
    assert spawn("compact", CHAT, "--undo", "--store", url).exit == 0
    turn, same = ask_next(url), ask_next(untouched)
    assert [message.to_dict() for message in turn.messages] == [message.to_dict() for message in same.messages]
    assert turn.prefix_change.cause in ("none", "compacted")


def test_undo_of_earlier_receipt_voids_later_ones(url: str) -> None:
    first, second = (planned(url, "--to", share)["receipt"]["id"] for share in ("0.4", "0.2"))  # type: ignore[index]
    undone = json.loads(compact(url, "--undo", "--receipt", first, "--json").out)
    assert undone == {"lamella": 1, "conversation": _key(url), "undone": [first, second]}
    with lamella.open(url) as engine:
        assert engine.chat(CHAT).receipts() == ()


def test_show_marks_compactions_and_undos(url: str) -> None:
    names = [planned(url, "--to", share)["receipt"]["id"] for share in ("0.4", "0.2")]  # type: ignore[index]
    compact(url, "--undo")
    ask_next(url)
    lines = run("chats", "show", CHAT, "--store", url).out.splitlines()
    marks = [line.strip() for line in lines if line.lstrip().startswith("~")]
    assert [mark.split(":")[0] for mark in marks] == ["~ compacted", "~ compacted", "~ undone"]
    assert f"(receipt {names[0]}" in marks[0]
    assert marks[1].endswith(", undone later")
    assert marks[2] == f"~ undone: {names[1]}"
    *_, mark, asked, hint = lines
    assert (mark.strip(), "And now?" in asked) == (marks[-1], True)
    assert "chats resume" in hint


REFUSED = {
    "a share of nothing": (("--to", "0"), "bad_setting", "0.0 is no share"),
    "a share below nothing": (("--to", "-0.5"), "bad_setting", "-0.5 is no share"),
    "a share past everything": (("--to", "1.5"), "bad_setting", "1.5 is no share"),
    "a share that is no number": (("--to", "nan"), "bad_setting", "nan is no share"),
    "a share in words": (("--to", "half"), "bad_usage", "--to"),
    "room enough": (("--to", "1"), "bad_call", "Nothing to compact: the next request of garden has"),
    "nothing to undo": (("--undo",), "bad_call", "There is no compaction to undo."),
    "no such receipt": (("--undo", "--receipt", "x"), "bad_call", "There is no compaction 'x' here."),
    "a receipt and no undo": (("--receipt", "x"), "bad_usage", "--receipt needs --undo."),
    "an undo that is planned": (
        ("--undo", "--plan"),
        "bad_usage",
        "Use either --undo or --plan, --to, --since and --until, not both.",
    ),
    "an undo to a share": (
        ("--undo", "--to", "0.5"),
        "bad_usage",
        "Use either --undo or --plan, --to, --since and --until, not both.",
    ),
}


@pytest.mark.parametrize(("words", "code", "told"), REFUSED.values(), ids=REFUSED)
def test_impossible_compaction_is_explained_with_hint(url: str, words: tuple[str, ...], code: str, told: str) -> None:
    before = run("chats", "show", CHAT, "--store", url).out
    assert told in refusal(compact(url, "--json", *words), code=code)
    assert run("chats", "show", CHAT, "--store", url).out == before


def test_missing_conversation_is_reported_and_not_created(url: str) -> None:
    ran = run("compact", "nobody", "--json", "--store", url)
    assert refusal(ran, code="bad_call") == "There is no conversation 'nobody'."
    assert "nobody" not in run("chats", "list", "--store", url).out


def test_erased_conversation_is_reported(url: str) -> None:
    run("chats", "delete", CHAT, "--yes", "--store", url)
    refusal(compact(url, "--json"), code="erased", exit_code=1)


def test_unanswered_turn_counts_as_stopped(url: str) -> None:
    ask_next(url)
    before = run("chats", "show", CHAT, "--store", url).out
    planned = compact(url, "--plan", "--to", "0.01")
    assert (planned.exit, planned.err) == (0, "")
    assert run("chats", "show", CHAT, "--store", url).out == before, "a plan changes nothing"
    done = compact(url, "--to", "0.01")
    assert done.exit == 0
    told = "No answer yet: "
    assert done.err.startswith(told)
    assert f"(lamella chats regenerate {CHAT} --store {url} asks it again)" in done.err
    ask_next(url)
    undone = compact(url, "--undo")
    assert (undone.exit, undone.err.startswith(told)) == (0, True)
    again = compact(url, "--undo")
    assert "hint: Nothing was compacted on this branch." in again.err


def test_undo_without_compaction_is_explained(url: str) -> None:
    assert "hint: Nothing was compacted on this branch." in compact(url, "--undo").err


def test_compaction_without_candidates_is_explained(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(store) as engine:
        conversation = engine.chat(CHAT)
        conversation.ask("What?", attach=[Selection(path="a.md", text="kept words " * 50)])
        conversation.reply("This.")
    message = refusal(run("compact", CHAT, "--to", "0.0001", "--json", "--store", store), code="bad_call")
    assert message.endswith("and all of them are protected.")


@pytest.mark.parametrize("answers", [(), ("They grow.",)])
def test_hint_suggests_continuing_if_only_recent_turns_exist(tmp_path: Path, answers: tuple[str, ...]) -> None:
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(store) as engine:
        conversation = engine.chat(CHAT)
        conversation.ask("What of the beans?")
        for answer in answers:
            conversation.reply(answer)
    told = run("compact", CHAT, "--plan", "--to", "0.0001", "--store", store).err
    assert "and all of them are protected." in told
    assert "the last turns are never removed. A longer conversation can be compacted." in told


def test_hint_suggests_unpinning_if_message_is_pinned(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(store) as engine:
        conversation = engine.chat(CHAT)
        conversation.ask("What of the beans?")
        conversation.reply("They grow.")
    assert run("pin", CHAT, "turn:1", "--store", store).exit == 0
    assert "Drop or unpin something." in run("compact", CHAT, "--plan", "--to", "0.0001", "--store", store).err


def test_store_setting_is_default(url: str) -> None:
    ran = spawn("compact", CHAT, "--plan", "--to", "0.3", environment={"LAMELLA_STORE": url})
    assert (ran.exit, ran.err) == (0, "")


@pytest.mark.layout("library")
def test_names_that_would_move_the_cursor_are_shown_escaped(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(store) as engine:
        conversation = engine.chat("a\x1b[2Jb", window=4_000, reserve=500)
        conversation.ask("What?", attach=[Note(path="\x1b[31mred.md", text="words " * 500)])
        for _ in range(5):
            conversation.reply("Yes.")
            conversation.ask("And?")
        conversation.reply("No.")
    ran = run("compact", "a\x1b[2Jb", "--to", "0.1", "--store", store)
    assert ran.exit == 0, ran
    assert "\x1b" not in ran.out
    assert "red.md" in ran.out
