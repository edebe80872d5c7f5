"""``lamella search`` and ``lamella index``: passages of a vault, by several processes, and after a kill."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.documents import make_pdf, make_xlsx
from tests.journeys.running import COMMAND, Ran, refusal, run, spawn
from tests.unit.retrieval.vaults import write
from tests.waiting import HANG_SECONDS

import lamella
from lamella import Folder, Note, Tag
from lamella.core.search.language import list_stems
from lamella.errors import LamellaError
from lamella.notes import open_index
from lamella.testing import ScriptedProvider

NOTES: dict[str, str | bytes] = {
    "garden/beans.md": "---\ntags: [garden]\n---\n# Sowing\n\nBeans are sown in May.\n",
    "garden/tools.md": "A spade and a watering can.\n",
    "broken.md": b"\xff\xfe",
}
INDEXER = """
import sys
from lamella.notes import open_index
with open_index(sys.argv[1]) as index:
    index.refresh(on_progress=lambda done, total: print(done, flush=True))
"""


@pytest.fixture(autouse=True)
def indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMELLA_INDEX_FOLDER", str(tmp_path / "indexes"))
    return tmp_path / "indexes"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return write(tmp_path / "vault", NOTES)


def search(vault: Path, query: str, *words: str) -> Ran:
    return run("search", query, "--vault", str(vault), *words)


def test_passage_is_found_with_place_and_reason(vault: Path) -> None:
    ran = search(vault, "sowing a bean")
    assert ran.exit == 0
    assert ran.out.splitlines() == [
        " 1. garden/beans.md  Sowing",
        "    Beans are sown in May.",
        ran.out.splitlines()[-1],
    ]
    assert "sowing, bean in title, heading, path, text" in ran.out
    assert "not searched: broken.md: broken.md is not UTF-8" in ran.err


def test_json_matches_documented_shape_and_python(vault: Path) -> None:
    body = json.loads(search(vault, "watering", "--json").out)
    assert body["lamella"] == 1
    [hit] = body["hits"]
    assert {"path", "heading", "text", "score", "why"} <= set(hit)
    assert [one["path"] for one in body["unread"]] == ["broken.md"]
    with open_index(vault) as index:
        [found] = index.search("watering")
    assert (hit["path"], hit["text"], hit["score"], hit["id"]) == (found.path, found.text, found.score, found.id)


def test_change_is_found_by_next_search_and_vault_is_unchanged(vault: Path) -> None:
    assert search(vault, "pump").exit == 1
    (vault / "new.md").write_text("A pump.", encoding="utf-8")
    before = sorted(path.as_posix() for path in vault.rglob("*"))
    assert "new.md" in search(vault, "pump").out
    assert sorted(path.as_posix() for path in vault.rglob("*")) == before


def test_no_match_exits_with_1(vault: Path) -> None:
    ran = search(vault, "zzzyzx")
    assert (ran.exit, ran.out) == (1, "")
    assert "No matches in 3 files." in ran.err
    assert json.loads(search(vault, "zzzyzx", "--json").out)["hits"] == []


def test_index_is_built_updated_and_rebuilt(vault: Path, indexes: Path) -> None:
    first, second, rebuilt = (run("index", "--vault", str(vault), *words) for words in ((), (), ("--rebuild",)))
    assert first.out.startswith("3 files indexed: 2 files read, 0 removed, 1 not readable.")
    assert second.out.startswith("3 files indexed: 0 files read")
    assert rebuilt.out.startswith("3 files indexed: 2 files read")
    assert "The index was rebuilt: it was asked for." in rebuilt.err
    [file] = indexes.glob("*.db")
    body = json.loads(run("index", "--vault", str(vault), "--json").out)
    assert (body["index"], body["files"], body["read"], body["rebuilt"]) == (str(file), 3, 0, None)


def test_damaged_index_is_rebuilt_with_notice(vault: Path, indexes: Path) -> None:
    search(vault, "beans")
    [file] = indexes.glob("*.db")
    file.write_bytes(b"nonsense" * 1_000)
    ran = search(vault, "beans")
    assert ran.exit == 0
    assert "The index was rebuilt: it was damaged" in ran.err
    assert "made anew" not in search(vault, "beans").err


def test_vault_that_the_working_folder_is_in_is_searched(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (vault / ".obsidian").mkdir()
    monkeypatch.chdir(vault / "garden")
    assert run("search", "spade").exit == 0


def test_bad_words_are_refused_with_a_hint(tmp_path: Path, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "No vault is named" in refusal(run("search", "x", "--json"), code="bad_usage")
    assert "no vault folder" in refusal(search(tmp_path / "none", "x", "--json"), code="source_missing")
    assert "Missing search words" in refusal(search(vault, " ", "--json"), code="bad_usage")
    refusal(search(vault, "x", "--limit", "0", "--json"), code="bad_usage")
    assert "no vault folder" in refusal(
        run("index", "--vault", str(tmp_path / "none"), "--json"), code="source_missing"
    )


def test_project_cannot_set_index_folder(tmp_path: Path, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMELLA_INDEX_FOLDER")
    (tmp_path / "lamella.toml").write_text('index_folder = "theirs"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert "sets index_folder" in refusal(search(vault, "x", "--json"), code="bad_setting")
    assert not (tmp_path / "theirs").exists()


def test_python_refuses_invalid_search(vault: Path) -> None:
    with pytest.raises(LamellaError, match="not a folder"):
        open_index(None)  # type: ignore[arg-type]
    with open_index(vault) as index:
        wrong: list[dict[str, Any]] = [{"limit": 0}, {"limit": True}, {"now": "today"}, {"query": ""}, {"query": 7}]
        for words in wrong:
            with pytest.raises(LamellaError):
                index.search(**{"query": "beans", **words})
        with pytest.raises(LamellaError):
            index.rank_notes("beans", paths="garden/beans.md")
        with pytest.raises(LamellaError):
            index.refresh(only_paths="garden/beans.md")
        assert index.rank_notes("beans", paths=["garden/tools.md", "garden/beans.md"])[0] == "garden/beans.md"


def test_several_processes_index_and_search_at_once(tmp_path: Path) -> None:
    vault = write(
        tmp_path / "many", {f"{number:03}.md": f"# N{number}\n\npump word{number}\n" * 40 for number in range(80)}
    )
    started = [
        subprocess.Popen(
            [*COMMAND, *words, "--vault", str(vault), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for words in (["index"], ["search", "word17"], ["index"], ["search", "word42"])
    ]
    ended = [(*process.communicate(timeout=HANG_SECONDS), process.returncode) for process in started]
    assert [(code, err) for _, err, code in ended] == [(0, b"")] * len(ended)
    assert [hit["path"] for hit in json.loads(ended[1][0])["hits"]] == ["017.md"] * 10
    with open_index(vault) as index:
        assert index.refresh().read_count == 0
        assert index.search("word42")[0].path == "042.md"


def test_killed_indexing_continues(tmp_path: Path, indexes: Path) -> None:
    vault = write(tmp_path / "large", {f"{number:03}.md": f"pump{number} " * 60_000 for number in range(60)})
    process = subprocess.Popen([sys.executable, "-c", INDEXER, str(vault)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 58:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    assert process.wait(timeout=HANG_SECONDS) == -signal.SIGKILL
    with open_index(vault) as index:
        report = index.refresh()
        assert report.rebuild_reason is None
        assert 0 < report.read_count < 60
        assert [index.search(f"pump{number}")[0].path for number in (0, 30, 59)] == ["000.md", "030.md", "059.md"]
        assert index.refresh().read_count == 0


def test_progress_is_printed_to_terminal_only(vault: Path) -> None:
    assert spawn("index", "--vault", str(vault), "--json").err == ""


def test_pdf_and_office_text_is_found_by_cli_and_python(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMELLA_CONVERSIONS", str(tmp_path / "conversions"))
    write(
        vault,
        {"tides.pdf": make_pdf(["High water comes at noon."]), "quay.xlsx": make_xlsx({"Hours": [["Crane", "seven"]]})},
    )
    ran = search(vault, "water at noon")
    assert ran.out.startswith(" 1. tides.pdf  Page 1")
    assert "tides.pdf" not in ran.err
    with open_index(vault) as index:
        assert [hit.path for hit in index.search("crane")] == ["quay.xlsx"]


def test_archived_conversation_in_the_vault_is_in_no_hits_folders_or_tags(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "When are the beans sown? #garden"
    with lamella.open(
        f"sqlite:///{tmp_path / 'chats.db'}", provider=ScriptedProvider("Beans are sown in May.")
    ) as engine:
        chat = engine.chat("beans")
        chat.ask(question)
        chat.reply("Beans are sown in May.")
        archive = engine.export_archive(chat, vault / "garden")
    assert "lamella: 1" in archive.read_text(encoding="utf-8")
    paths = [hit["path"] for hit in json.loads(search(vault, question, "--json").out)["hits"]]
    assert paths == ["garden/beans.md"]
    for folder in (Folder(path="garden"), Tag(tag="#garden")):
        turn = lamella.Conversation(vault=vault).ask("What?", attach=[folder])
        assert not [one.id for one in turn.envelope.prompt.attached if one.id.endswith(archive.name)]
    named = lamella.Conversation(vault=vault).ask("What?", attach=[Note(path=f"garden/{archive.name}")])
    assert question in named.messages[-1].text


@pytest.mark.parametrize(
    ("note", "query"),
    [
        ("Saya suka masak nasi.", "memasak"),
        ("Saya suka masak nasi.", "pemasak"),
        ("Ibu dan adik yang memasak nasi untuk mereka dengan kompor.", "masak"),
    ],
)
def test_indonesian_prefixes_hide_no_word(tmp_path: Path, note: str, query: str) -> None:
    vault = write(tmp_path / "dapur", {"dapur.md": note, "kucing.md": "Kucing tidur."})
    hits = json.loads(search(vault, query, "--json").out)["hits"]
    assert [hit["path"] for hit in hits] == ["dapur.md"]
    assert set(list_stems("memasak")) & set(list_stems("masak")), "recall compares these"
