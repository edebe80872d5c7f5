"""Work in stages from the shell: begun, written down, submitted, approved, gone back, exported, and talked about."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import Ran, refusal, run, spawn

import lamella

MINE = """
lamella = 1
name = "mine"

[[stages]]
id = "only"
labels = { en = "Only" }
required = ["what"]
"""


@pytest.fixture
def url(tmp_path: Path, home: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """A store of its own, which every command works in."""
    for name, value in {**home, "LAMELLA_STORE": f"sqlite:///{tmp_path / 'chats.db'}"}.items():
        monkeypatch.setenv(name, value)
    return f"sqlite:///{tmp_path / 'chats.db'}"


def status(ran: Ran) -> dict[str, object]:
    assert (ran.exit, ran.err) == (0, "")
    body = json.loads(ran.out)
    assert isinstance(body, dict)
    return body


def rfc(*words: str) -> Ran:
    return run("workflow", "rfc", *words)


def finish(session: str, *fields: str, decision: str = "So be it.") -> None:
    for words in (("data", session, *fields), ("submit", session), ("approve", session, "--decision", decision)):
        if words[0] != "data" or fields:
            assert rfc(*words).exit == 0


def test_workflow_moves_between_stages(url: str) -> None:
    assert status(rfc("new", "desks", "--json"))["current"] == "problem"
    assert "missing: problem, goals." in refusal(rfc("submit", "desks", "--json"), code="bad_workflow")
    finish(
        "desks", "problem=Desks are booked twice.", 'goals:=["One desk, one person"]', decision="End double bookings."
    )
    finish("desks", "state=A spreadsheet", "references+=https://example.org/a", "references+=https://example.org/a#2")
    body = status(rfc("status", "desks", "--json"))
    assert (body["lamella"], body["workflow"], body["current"], body["status"]) == (1, "rfc", "options", "drafting")
    stages = body["stages"]
    assert isinstance(stages, list)
    assert [(one["id"], one["status"], one["attempt"], one["digest"]) for one in stages[:3]] == [
        ("problem", "approved", 1, "End double bookings."),
        ("background", "approved", 1, "So be it."),
        ("options", "drafting", 1, None),
    ]
    back = status(rfc("rewind", "desks", "background", "--json"))
    assert (back["current"], back["digest"]) == (
        "background",
        [
            {
                "stage": "problem",
                "label": "Problem",
                "decision": "End double bookings.",
                "attempt": 1,
                "superseded": False,
            },
            {"stage": "background", "label": "Background", "decision": "So be it.", "attempt": 1, "superseded": True},
        ],
    )
    kept = status(rfc("data", "desks", "--json"))["data"]
    assert isinstance(kept, dict)
    assert kept["background"]["state"] == "A spreadsheet"
    with lamella.open(url) as engine:
        work = engine.chat("desks").workflow
        assert work is not None
        assert (work.current, work.stages[1].attempt) == ("background", 2)


def test_next_step_is_printed_as_command(url: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE, encoding="utf-8")
    begun = run("workflow", str(tmp_path / "mine.toml"), "new", "my work")
    assert "Missing in only: what.\n" in begun.err
    told = [
        run("workflow", "mine", *words).err.splitlines()[0]
        for words in (("data", "my work", "what=This"), ("submit", "my work"), ("approve", "my work"))
    ]
    assert told == [
        "only is complete. Submit it for approval: lamella workflow mine submit 'my work'",
        "only is pending approval. Approve it: lamella workflow mine approve 'my work'",
        "All stages are approved. Export the work: lamella workflow mine export 'my work'",
    ]


def test_work_is_exported_to_stdout_or_to_a_new_file(url: str, tmp_path: Path) -> None:
    assert rfc("new", "desks").exit == 0
    finish(
        "desks",
        "problem=Twice.",
        "goals=Once.",
        "references+=https://example.org/a/",
        "citations+=https://example.org/a",
    )
    shown = rfc("export", "desks", "--title", "Desks")
    assert shown.out.startswith("# Desks\n\n## Problem\n\n### Problem\n\nTwice.\n")
    assert shown.out.count("https://example.org/a") == 1
    place = tmp_path / "desks.md"
    written = rfc("export", "desks", "--to", str(place), "--json")
    body = status(written)
    assert (body["file"], body["text"]) == (str(place), place.read_text(encoding="utf-8"))
    again = rfc("export", "desks", "--to", str(place), "--json")
    assert "is there already" in refusal(again, code="bad_call")
    assert url


def test_fields_come_from_file_stdin_and_last_answer(url: str, tmp_path: Path) -> None:
    assert rfc("new", "desks").exit == 0
    with lamella.open(url) as engine:
        conversation = engine.chat("desks")
        conversation.ask("What is the problem?")
        conversation.reply("Double bookings.")
    fields = tmp_path / "fields.json"
    fields.write_text('{"goals": ["One", "Two"]}', encoding="utf-8")
    assert rfc("data", "desks", "--file", str(fields), "--reply", "problem").exit == 0
    assert rfc("data", "desks", "goals+=Three", "note=x").exit == 0
    assert rfc("data", "desks", "note:=null").exit == 0
    kept = status(rfc("data", "desks", "--json"))["data"]
    assert isinstance(kept, dict)
    assert kept == {"problem": {"problem": "Double bookings.", "goals": ["One", "Two", "Three"]}}
    finish("desks")
    body = status(rfc("status", "desks", "--json"))
    stages = body["stages"]
    assert isinstance(stages, list)
    assert [len(one["messages"]) for one in stages[:2]] == [2, 0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("workflow", "thesis", "new"), "There is no workflow 'thesis'"),
        (("workflow", "gone.toml", "new"), "cannot be read"),
        (("workflow", "rfc", "status", "nobody"), "There is no conversation 'nobody'"),
        (("workflow", "rfc", "status", "plain"), "plain has no workflow"),
        (("workflow", "paper", "status", "desks"), "desks uses the workflow rfc, not paper"),
        (("paper", "submit", "desks"), "desks uses the workflow rfc, not paper"),
        (("workflow", "rfc", "new", "desks"), "works by rfc already"),
        (("workflow", "rfc", "new", " "), "name is blank"),
        (("workflow", "rfc", "approve", "desks"), "is not submitted"),
        (("workflow", "rfc", "rewind", "desks", "design"), "is not done yet"),
        (("workflow", "rfc", "rewind", "desks", "nowhere"), "is not known"),
        (("workflow", "rfc", "data", "desks", "no field"), "Invalid field: 'no field'"),
        (("workflow", "rfc", "data", "desks", "goals:={"), "goals is not JSON"),
        (("workflow", "rfc", "data", "desks", "--file", "gone.json"), "gone.json cannot be read"),
        (("workflow", "rfc", "data", "desks", "--reply", "goals"), "No answer to save"),
        (("workflow", "rfc", "data", "desks", "goals:=NaN"), "cannot be kept"),
    ],
)
def test_invalid_workflow_command_changes_nothing(url: str, words: tuple[str, ...], told: str) -> None:
    assert rfc("new", "desks").exit == 0
    with lamella.open(url) as engine:
        engine.chat("plain").ask("Hello?")
    before = rfc("status", "desks", "--json").out
    ran = run(*words, "--json")
    assert told in refusal(ran, code=json.loads(ran.out)["error"]["code"])
    assert rfc("status", "desks", "--json").out == before


def test_endless_fields_are_not_read_completely(url: str, tmp_path: Path) -> None:
    assert rfc("new", "desks").exit == 0
    assert "it is a device" in rfc("data", "desks", "--file", "/dev/zero").err
    vast = tmp_path / "vast.json"
    with vast.open("wb") as file:
        file.truncate(1 << 40)
    assert "has 1,099,511,627,776 bytes" in rfc("data", "desks", "--file", str(vast)).err
    assert url


def test_own_workflow_is_found_by_folder_and_path(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "flows"
    folder.mkdir()
    (folder / "mine.toml").write_text(MINE, encoding="utf-8")
    path = str(folder / "mine.toml")
    assert status(run("workflow", path, "new", "one", "--json"))["workflow"] == "mine"
    assert status(run("workflow", path, "status", "one", "--json"))["current"] == "only"
    monkeypatch.setenv("LAMELLA_WORKFLOW_FOLDER", str(folder))
    assert status(run("workflow", "mine", "new", "--json"))["name"] == "mine-1"
    (folder / "mine.toml").write_text(MINE.replace("only", "other"), encoding="utf-8")
    assert status(run("workflow", "mine", "status", "one", "--json"))["current"] == "only", "it was begun with that"
    assert url


def test_project_cannot_set_workflow_folder(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lamella.toml").write_text('workflow_folder = "theirs"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert "workflow_folder" in refusal(run("paper", "new", "--json"), code="bad_setting")
    assert url


def test_chat_works_in_stages_and_shows_stage(home: Mapping[str, str], script: Callable[..., str]) -> None:
    model = script("Double bookings, then.", "Fine.")
    lines = (
        "What is the problem?",
        "/stage data problem",
        "/stage submit",
        "/stage data goals=No desk twice",
        "/stage submit",
        "/stage approve Desks are booked once.",
        "/stage rewind nowhere",
        "And today?",
        "/stage export",
        "/stage what",
    )
    words = ("chat", "desks", "--workflow", "rfc", "--model", model)
    ran = spawn(*words, stdin="".join(f"{line}\n" for line in lines).encode(), environment=home)
    assert ran.exit == 0
    assert "[rfc 1/6 problem (drafting)] [" in ran.err
    assert "missing: goals." in ran.err
    assert "is not known" in ran.err
    assert "[rfc 2/6 background (drafting)] [" in ran.err
    assert "Unknown /stage action: 'what'" in ran.err
    assert "Double bookings, then." in ran.out
    assert "## Problem" in ran.out
    body = json.loads(spawn("workflow", "rfc", "status", "desks", "--json", environment=home).out)
    assert body["stages"][0]["digest"] == "Desks are booked once."
    other = spawn("chat", "desks", "--workflow", "paper", "--model", model, stdin=b"", environment=home)
    assert (other.exit, "uses the workflow rfc, not paper" in other.err) == (2, True)


def test_workflow_is_exported_with_conversation(url: str, tmp_path: Path) -> None:
    assert rfc("new", "desks").exit == 0
    with lamella.open(url) as engine:
        conversation = engine.chat("desks")
        for number in range(2):
            conversation.ask(f"Question {number}?")
            conversation.reply(f"Answer {number}.")
        first = conversation.turns()[0].reply
        assert first is not None
    finish("desks", "problem=Twice.", "goals=Once.", decision="Once it is.")
    with lamella.open(url) as engine:
        engine.chat("desks").ask("And then?")
    assert run("chats", "export", "desks", "--to", str(tmp_path / "out")).exit == 0
    (file,) = (tmp_path / "out").glob("*.md")
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert run("chats", "import", str(file), "--store", other).exit == 0
    assert run("chats", "fork", "desks", first.id, "--into", "early").exit == 0
    here = status(rfc("status", "desks", "--json"))
    there = status(rfc("status", "desks", "--store", other, "--json"))
    assert here == there
    early = status(rfc("status", "early", "--json"))
    assert (early["current"], early["digest"]) == ("problem", [])


def test_list_shows_every_workflow_and_invalid_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.toml").write_text("stages = 1\n", encoding="utf-8")
    monkeypatch.setenv("LAMELLA_WORKFLOW_FOLDER", str(tmp_path))
    lines = run("workflow", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", "broken", "paper", "rfc"]
    assert "its file is invalid" in lines[1]
    body = json.loads(run("workflow", "list", "--json").out)
    assert [one["name"] for one in body["workflows"]] == ["broken", "paper", "rfc"]
