"""Which files fit a question, and by which parts."""

from pathlib import Path

import pytest
from tests.unit.codebase.repositories import WATCH, commit, write

from lamella.codebase.index import (
    CodeIndexRefresher,
    CodeRanker,
    InMemoryTables,
    RankedFile,
    build_fts_terms,
    files_named_in,
    refresh_commit_tables,
)
from lamella.codebase.repository import FolderFiles

FILLER = {f"other/{number}.py": f"value_{number} = {number}\n" for number in range(12)}


def rank(root: Path, question: str, *touched: str) -> list[RankedFile]:
    tables, files = InMemoryTables(), FolderFiles(root)
    listing = CodeIndexRefresher(tables, files, anchors=WATCH.anchors, find_secrets=WATCH.find_secrets).refresh()
    refresh_commit_tables(tables, files.git)
    return CodeRanker(tables).rank(question, candidates=listing.states.keys(), recent_paths=touched)


def test_words_in_a_text_a_path_and_a_definition_all_count(tmp_path: Path) -> None:
    files = {
        "text.py": "# the watering of beds\n",
        "watering.py": "x = 1\n",
        "symbols.py": "def start_watering(): ...\n",
    }
    found = rank(write(tmp_path, {**FILLER, **files}), "How does watering work?")
    assert {one.path for one in found[:3]} == set(files)
    parts = {one.path: set(one.score_parts) for one in found[:3]}
    assert "text" in parts["text.py"]
    assert "path" in parts["watering.py"]
    assert {"symbols", "text"} <= parts["symbols.py"]


def test_compound_name_is_found_by_one_part(tmp_path: Path) -> None:
    root = write(tmp_path, {**FILLER, "a.py": "class PodTemplateSpec: ...\n"})
    assert rank(root, "template of a pod")[0].path == "a.py"


def test_commit_messages_and_recent_changes_raise_rank(tmp_path: Path) -> None:
    root = write(tmp_path, {**FILLER, "a.py": "x = 1\n", "z.py": "x = 1\n"})
    commit(root, "Begin")
    commit(write(root, {"z.py": "x = 2\n"}), "Mend the hydraulics of locks")
    commit(write(root, {"other/1.py": "y = 2\n"}), "Rename")
    found = rank(root, "hydraulics")
    assert found[0].path == "z.py"
    assert {"commits", "recent"} == set(found[0].score_parts)


def test_files_of_conversation_and_named_files_come_first(tmp_path: Path) -> None:
    root = write(tmp_path, {**FILLER, "beds.py": "beds beds beds\n"})
    assert rank(root, "beds")[0].path == "beds.py"
    assert rank(root, "what now?", "other/7.py")[0].path == "other/7.py"
    assert rank(root, "beds in other/3.py")[0].path == "other/3.py"


def test_equal_ranks_are_ordered_by_path(tmp_path: Path) -> None:
    root = write(tmp_path, FILLER)
    assert [one.path for one in rank(root, "nothing of that")] == sorted(FILLER)


def test_ambiguous_file_name_matches_no_file() -> None:
    among = ["a/model.py", "b/model.py", "c/views.py", "LICENSE"]
    assert files_named_in("see model.py and views.py", among) == ["c/views.py"]
    assert files_named_in("see b/model.py", among) == ["b/model.py"]
    assert files_named_in("see a\\model.py.", among) == ["a/model.py"]
    assert files_named_in("the model and the views", among) == []


def test_operators_are_search_words() -> None:
    assert build_fts_terms('NOT "x" AND (y* OR z):') == ['"x"', '"y"', '"z"']
    assert build_fts_terms('"near" NEAR') == ['"near"', '"NEAR"']
    assert build_fts_terms("?!") == []


@pytest.mark.parametrize("others", [1, 2, 8])
def test_words_outweigh_recency_among_few_files(tmp_path: Path, others: int) -> None:
    files = {"a.py": "def open_gate(): ...\n", **{f"z{one}.py": f"def feed_{one}(): ...\n" for one in range(others)}}
    commit(write(tmp_path, files), "Begin")
    for number in range(3):
        commit(write(tmp_path, {"z0.py": f"def feed_{number + 10}(): ...\n"}), "Feed more")
    assert rank(tmp_path, "How does the gate open?")[0].path == "a.py"
    assert rank(tmp_path, "Where do we feed?")[0].path == "z0.py"
    assert rank(tmp_path, "nothing of that")[0].path == "z0.py"


def test_repeated_word_ranks_higher_among_few_files(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "# locks\n" + "x = 1\n" * 9, "b.py": "# locks, locks and locks\n" + "x = 1\n" * 9})
    commit(root, "Begin")
    commit(write(root, {"a.py": "# locks\n" + "x = 2\n" * 9}), "Change")
    assert [one.path for one in rank(root, "locks")] == ["b.py", "a.py"]
