"""Attaching between turns from the shell: written down, found by the next command, shown, taken back, and exported."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from tests.documents import make_pdf
from tests.journeys.running import Ran, refusal, run, spawn
from tests.unit.pictures import png
from tests.unit.providers.secret_scanner.test_formats import MADE

from lamella import Note
from lamella import open as open_engine

Run = Callable[..., Ran]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "docs").mkdir(parents=True)
    (folder / "plan.md").write_text("Low tide is at 14:10.\n", encoding="utf-8")
    (folder / "list.md").write_text("Milk.\n", encoding="utf-8")
    for number in range(12):
        text = f"# Note {number}\n\nOf subject{number}. {'Words. ' * 150}\n"
        (folder / "docs" / f"{number:02}.md").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def lamella(
    home: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vault: Path, script: Callable[..., str]
) -> Run:
    """The command in a home where one turn was asked of a chat in a small window."""
    for name, value in {**home, "LAMELLA_STORE": store(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    model = script("Yes.", "No.", "Maybe.")
    small: dict[str, object] = {"window": 3_000, "reserve": 200, "attachments": "sticky", "layout": "in_place"}
    ask(vault, "Read.", attach=[Note(path="plan.md")], given={**small, "model": model})
    return run


def store(folder: Path) -> str:
    return f"sqlite:///{folder / 'chats.db'}"


def ask(
    vault: Path,
    text: str,
    *,
    chat: str = "talk",
    attach: Sequence[Note] = (),
    given: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """A question and its answer, by a program that has the store for as long as that takes."""
    with open_engine(store(vault.parent), vault=vault) as engine:
        talk = engine.chat(chat, **given)
        talk.ask(text, attach=attach)
        talk.reply("Yes.")


def body(ran: Ran) -> dict[str, object]:
    assert ran.exit == 0, ran
    read = json.loads(ran.out)
    assert isinstance(read, dict)
    return read


def rows(ran: Ran) -> dict[str, dict[str, object]]:
    artifacts = body(ran)["artifacts"]
    assert isinstance(artifacts, list)
    return {one["id"]: one for one in artifacts}


def test_attached_note_is_shown_and_sent_with_next_question(lamella: Run, vault: Path) -> None:
    ran = lamella("attach", "talk", "list.md", "--vault", str(vault))
    assert ran.exit == 0, ran
    assert "attached to the next turn: list.md, note, " in ran.out
    assert "Next request, without the question: " in ran.out
    shown = rows(lamella("show", "talk", "--json"))
    assert [(name, one["waits"], one["in_working_set"]) for name, one in shown.items()] == [
        ("plan.md", False, True),
        ("list.md", True, True),
    ]
    model = f"scripted:{vault.parent / 'replies.json'}"
    assert spawn("ask", "And now?", "--chat", "talk", "--vault", str(vault), "--model", model).exit == 0
    turns = body(lamella("replay", "talk", "--json"))["turns"]
    assert "Milk." in json.dumps(turns)
    assert all(not one["waits"] for one in rows(lamella("show", "talk", "--json")).values())


def test_each_command_is_reverted_by_its_opposite(lamella: Run, vault: Path) -> None:
    assert "pinned with the next turn: plan.md" in lamella("pin", "talk", "plan.md").out
    assert "list.md, note, " in lamella("attach", "talk", "list.md", "--vault", str(vault)).out
    assert ", pinned\n" in lamella("pin", "talk", "list.md").out
    assert ", pinned\n" not in lamella("unpin", "talk", "list.md").out
    assert lamella("detach", "talk", "list.md").exit == 0
    assert "Nothing pending for the next turn of talk." in lamella("unpin", "talk", "plan.md").out
    assert "detached with the next turn: plan.md" in lamella("detach", "talk").out
    ran = lamella("drop", "talk", "plan.md")
    assert "dropped with the next turn: plan.md" in ran.out
    assert "note: plan.md will not be detached with the next turn." in ran.err
    ran = lamella("attach", "talk", "plan.md", "--vault", str(vault), "--json")
    waiting = body(ran)["waiting"]
    assert isinstance(waiting, dict)
    assert ([one["id"] for one in waiting["attach"]], waiting["drop"], waiting["detach"]) == (["plan.md"], [], [])


def test_folder_that_does_not_fit_is_selected_and_stays_after_reload(lamella: Run, vault: Path, tmp_path: Path) -> None:
    ran = lamella("attach", "talk", "docs", "--for", "What of subject7?", "--vault", str(vault))
    assert "note: Not all notes of docs fit: " in ran.err
    shown = rows(lamella("show", "talk", "--json"))
    assert (shown["docs/07.md"]["form"], shown["docs"]["kind"]) == ("full", "folder")
    assert shown["docs"]["left_out"]
    assert "Left out of docs, " in lamella("show", "talk").out
    head = body(lamella("chats", "show", "talk", "--json"))["head"]
    assert lamella("chats", "fork", "talk", str(head), "--into", "other").exit == 0
    assert list(rows(lamella("show", "other", "--json"))) == list(shown)
    ask(vault, "What of subject7?")
    ask(vault, "What of subject7?", chat="other")
    sent = sends(lamella, "talk")
    assert sent == sends(lamella, "other")
    assert "folder_context" in json.dumps(sent)
    assert lamella("chats", "export", "talk", "--transcript", "--to", str(tmp_path / "out")).exit == 0
    (file,) = (tmp_path / "out").iterdir()
    assert sends(lamella, str(file)) == sent
    assert lamella("chats", "export", "other", "--to", str(tmp_path / "md")).exit == 0
    (page,) = (tmp_path / "md").iterdir()
    assert lamella("chats", "import", str(page), "--store", f"sqlite:///{tmp_path / 'second.db'}").exit == 0
    assert lamella("store", "verify").exit == 0


def sends(lamella: Run, name: str) -> list[object]:
    turns = body(lamella("replay", name, "--json"))["turns"]
    assert isinstance(turns, list)
    return [turn["messages"] for turn in turns]


def test_refreshed_note_is_sent_again_and_deleted_one_is_kept(lamella: Run, vault: Path) -> None:
    assert "note: plan.md is as it was." in lamella("refresh", "talk", "--vault", str(vault)).err
    (vault / "plan.md").write_text("Low tide is at 15:20.\n", encoding="utf-8")
    ran = lamella("refresh", "talk", "plan.md", "--vault", str(vault))
    assert "note: plan.md was read anew; its new text goes with the next turn." in ran.err
    (vault / "plan.md").unlink()
    assert "note: plan.md stays as it is: " in lamella("refresh", "talk", "--vault", str(vault)).err
    ask(vault, "And now?")
    assert "15:20" in json.dumps(sends(lamella, "talk"))


def test_refresh_without_vault_says_how_to_name_one(lamella: Run, vault: Path) -> None:
    told = lamella("refresh", "talk").err.splitlines()
    assert told[-1] == "hint: Add --vault FOLDER."
    assert "there is no vault to read it from." in told[-2]
    assert "hint:" not in lamella("refresh", "talk", "--vault", str(vault)).err


def test_invalid_library_command_is_reported_and_changes_nothing(lamella: Run, vault: Path) -> None:
    before = lamella("show", "talk", "--json").out
    assert refusal(lamella("detach", "talk", "x.md", "--json"), code="bad_call") == "x.md is not attached."
    assert refusal(lamella("drop", "talk", "x.md", "--json"), code="bad_call") == "x.md is not in the prompt."
    assert "is neither an attachment nor a message" in refusal(
        lamella("pin", "talk", "x.md", "--json"), code="bad_call"
    )
    assert refusal(lamella("unpin", "talk", "plan.md", "--json"), code="bad_call") == "plan.md is not pinned."
    assert refusal(lamella("refresh", "talk", "x.md", "--json"), code="bad_call") == "x.md is not known here."
    gone = lamella("attach", "talk", "x.md", "--vault", str(vault), "--json")
    assert "x.md" in refusal(gone, code="source_missing")
    assert (
        refusal(lamella("attach", "talk", "--json"), code="bad_usage") == "Missing name of a file, folder, note or tag."
    )
    assert "nobody" in refusal(lamella("show", "nobody", "--json"), code="bad_call")
    bad = lamella("attach", "talk", "plan.md", "--policy", "glue", "--vault", str(vault), "--json")
    assert "glue" in refusal(bad, code="bad_setting")
    assert lamella("show", "talk", "--json").out == before


def test_unreadable_attachment_prevents_all_and_says_so(lamella: Run, vault: Path) -> None:
    page = "http://127.0.0.1:1/minutes"
    environment = {**os.environ, "LAMELLA_PRIVATE_ADDRESSES": "127.0.0.1"}
    words = ("attach", "talk", "list.md", page, "--vault", str(vault))
    ran = spawn(*words, environment=environment)
    error, hint = ran.err.splitlines()[-2:]
    assert error.startswith(f"error: {page} cannot be reached: ")
    assert error.endswith(". Nothing was attached.")
    assert hint == "hint: Try again in a few minutes, or attach its text. You can attach the others without it."
    again = spawn(*words, environment=environment).err
    assert "hint: Try again after 20" in again
    assert "list.md" not in lamella("show", "talk").out
    alone = lamella("attach", "talk", "gone.md", "--vault", str(vault))
    assert "Nothing was attached" not in alone.err


@pytest.mark.parametrize("do", ["attach", "detach", "drop", "pin", "unpin", "refresh"])
def test_blank_name_is_refused_and_does_not_mean_everything(lamella: Run, vault: Path, do: str) -> None:
    assert lamella("attach", "talk", "list.md", "--vault", str(vault)).exit == 0
    before = lamella("show", "talk", "--json").out
    assert "A name is blank" in refusal(lamella(do, "talk", "", "--json"), code="bad_usage")
    assert lamella("show", "talk", "--json").out == before


def test_secret_warns_on_terminal_or_is_refused(lamella: Run, vault: Path) -> None:
    token = MADE["ghp_"]
    (vault / "keys.md").write_text(f"One.\n{token}\n", encoding="utf-8")
    model = f"scripted:{vault.parent / 'replies.json'}"
    words = ("--chat", "talk", "--vault", str(vault), "--json", "--model", model)
    refused = spawn("ask", "Read @keys.md", *words, "--set", "secrets=refuse")
    assert refused.exit == 2
    assert json.loads(refused.out)["error"]["code"] == "secret_found"
    assert "Line 2 of keys.md looks like a GitHub token" in refused.err
    warned = spawn("ask", "Read @keys.md", *words, "--set", "secrets=warn")
    assert any("Line 2 of keys.md looks like a GitHub token" in line for line in json.loads(warned.out)["warnings"])
    assert token not in refused.out + refused.err + warned.out + warned.err


def test_paper_is_attached_by_path_without_vault(lamella: Run, tmp_path: Path) -> None:
    paper = tmp_path / "tides.pdf"
    paper.write_bytes(make_pdf(["The harbour is closed for nine days."]))
    ran = lamella("attach", "talk", str(paper), "--json")
    assert ran.exit == 0, ran.err
    [waits] = json.loads(ran.out)["waiting"]["attach"]
    assert (waits["kind"], waits["title"]) == ("pdf", "tides")


def test_long_name_is_printed_whole_and_image_by_file_name(lamella: Run, vault: Path) -> None:
    long = f"{'a-long-name-' * 8}.md"
    (vault / long).write_text("Text.\n", encoding="utf-8")
    (vault / "map.png").write_bytes(png(8, 8))
    ran = lamella("attach", "talk", long, "map.png", "--vault", str(vault))
    assert "attached to the next turn: map.png, image" in ran.out
    shown = lamella("show", "talk").out.splitlines()
    assert any(line.startswith(f"{long}  note") for line in shown)


def test_attaching_more_than_fits_warns(lamella: Run, vault: Path) -> None:
    (vault / "huge.md").write_text("Words of it. " * 2_000, encoding="utf-8")
    ran = lamella("attach", "talk", "huge.md", "--vault", str(vault))
    assert ran.exit == 0
    assert "note: This does not fit into the context window." in ran.err
    assert "does not fit" not in lamella("detach", "talk", "huge.md").err


def test_missing_chat_is_reported_before_missing_file(lamella: Run) -> None:
    ran = lamella("attach", "nobody", "nothing.md", "--json")
    assert refusal(ran, code="bad_call") == "There is no conversation 'nobody'."
    assert "chats list" in ran.err
    ran = lamella("attach", "talk", "nothing.md", "--json")
    assert refusal(ran, code="source_missing").startswith("There is no file nothing.md")
