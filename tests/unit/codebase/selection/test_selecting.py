"""From a question to a selection."""

from pathlib import Path

import pytest
from tests.unit.codebase.repositories import WATCH, commit, count, write

from lamella.codebase.selection import CodeSelector, select_from_folder, select_from_texts
from lamella.errors import InvalidOperationError, SourceNotFoundError
from lamella.ports import CodeSelection

FILES = {
    **{f"other/{number}.py": f"value_{number} = {number}\n" for number in range(15)},
    "beds.py": "def water_beds():\n    return 1\n",
    "README.md": "# Garden\n",
}
TOKEN = "ghp_" + "a1B2" * 9


def select(root: Path, question: str = "who waters beds?", budget: int = 4_000, **given: object) -> CodeSelection:
    index = root.parent / "index.db"
    options = {"index": index, "secrets": WATCH, "root": "repo", "budget": budget, "count_tokens": count, **given}
    return select_from_folder(root, question, **options)  # type: ignore[arg-type]


def test_requested_file_comes_first_in_full(tmp_path: Path) -> None:
    selection = select(write(tmp_path / "repo", FILES))
    assert (selection.files[0].path, selection.files[0].form) == ("beds.py", "full")
    assert selection.files[0].text == FILES["beds.py"]
    assert selection.tokens == count(selection.text) <= 4_000


def test_same_files_and_the_same_question_give_the_same_selection(tmp_path: Path) -> None:
    root = write(tmp_path / "repo", FILES)
    commit(root, "Begin")
    first, second = select(root), select(root)
    anew = select(root, index=tmp_path / "another.db")
    assert first == second == anew


def test_each_omission_has_reason(tmp_path: Path) -> None:
    root = write(tmp_path / "repo", {**FILES, "key.py": f"k = '{TOKEN}'\n", ".env": "K=1", "a.png": b"\x89PNG"})
    selection = select(root, budget=150)
    told = dict(selection.left_out)
    assert told["key.py"] == "line 1 looks like a GitHub token"
    assert told[".env"] == "files of this name hold secrets"
    assert told["a.png"] == "it is binary, by its name"
    assert TOKEN not in selection.text
    every = {one.path for one in selection.files} | set(told)
    assert {*FILES, "key.py", ".env", "a.png"} <= every
    assert any(why.endswith("and the budget is used up") for why in told.values())


def test_changed_file_is_shown_as_current(tmp_path: Path) -> None:
    root = write(tmp_path / "repo", FILES)
    select(root)
    write(root, {"beds.py": "def water_beds():\n    return 'another'\n"})
    assert "another" in select(root).files[0].text


def test_secret_added_later_is_not_shown(tmp_path: Path) -> None:
    root = write(tmp_path / "repo", FILES)
    select(root)
    write(root, {"beds.py": f"def water_beds(): return '{TOKEN}'\n"})
    assert TOKEN not in select(root).text


def test_damaged_index_is_rebuilt(tmp_path: Path) -> None:
    root = write(tmp_path / "repo", FILES)
    first = select(root)
    (tmp_path / "index.db").write_bytes(b"no database" * 100)
    assert select(root) == first


def test_index_file_is_private(tmp_path: Path) -> None:
    select(write(tmp_path / "repo", FILES))
    assert (tmp_path / "index.db").stat().st_mode & 0o077 == 0


def test_empty_and_fully_excluded_folders_are_errors(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="No files to select from in repo: 0 were left out"):
        select(write(tmp_path / "repo", {}))
    with pytest.raises(SourceNotFoundError) as raised:
        select(write(tmp_path / "repo", {".env": "K=1"}))
    assert ".env: files of this name hold secrets" in raised.value.hint


def test_budget_that_is_smaller_than_one_name_is_an_error_with_numbers(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidOperationError, match=r"A budget of 5 tokens is too small for the name of one file, beds\.py"
    ):
        select(write(tmp_path / "repo", FILES), budget=5)


def test_given_files_are_returned_with_contents() -> None:
    selection = select_from_texts(FILES, "who waters beds?", secrets=WATCH, budget=4_000, count_tokens=count)
    assert (selection.files[0].path, selection.files[0].text) == ("beds.py", FILES["beds.py"])


def test_no_files_are_an_error() -> None:
    with pytest.raises(SourceNotFoundError, match="No files to select from in the given files"):
        select_from_texts({}, "what?", secrets=WATCH, budget=100, count_tokens=count)


def test_hostile_names_and_encodings_are_handled(tmp_path: Path) -> None:
    names = ["a\nb.py", "</content>.py", "[x], y.py", "-rf.py", "'quote\".py", "\u202ertl.py", "emoji \U0001f600.py"]
    root = write(tmp_path / "repo", {**dict.fromkeys(names, "x = 1\n"), "latin.py": b"\xe4", "wide.py": b"\xff\xfex\0"})
    selection = select(root)
    assert {one.path for one in selection.files} == set(names)
    assert selection.text.count("</content>") == len(names) + 1


def test_selector_works_on_given_files_without_folder() -> None:
    from lamella.codebase.index import InMemoryTables
    from lamella.codebase.repository import InlineFiles

    selector = CodeSelector(InMemoryTables(), InlineFiles(FILES), secrets=WATCH)
    found = selector.select("beds", root_label="r", budget=2_000, count_tokens=count)
    assert found.root == "r"
    assert "Chosen from 17 files of r" in found.overview


def test_selection_without_match_warns(tmp_path: Path) -> None:
    root = write(tmp_path / "repo", FILES)
    assert [one for one in select(root, "zebra quantum").warnings if "No file matches the question" in one]
    assert select(root).warnings == ()


def test_selection_of_names_only_warns(tmp_path: Path) -> None:
    root = write(tmp_path / "repo", {"beds.txt": "beds are watered\n" * 400, "empty.py": ""})
    (told,) = select(root, budget=150).warnings
    assert told.startswith("Nothing fits into 150 tokens but names")
    (root / "beds.txt").unlink()
    assert not [one for one in select(root, "empty", budget=150).warnings if "but names" in one]


@pytest.mark.parametrize(("label", "listed"), [("repo", "\n- repo/other/"), ("/home/person/repo", "\n- other/")])
def test_overview_names_absolute_root_once(tmp_path: Path, label: str, listed: str) -> None:
    selection = select_from_folder(
        write(tmp_path / "repo", FILES),
        "who waters beds?",
        index=tmp_path / "index.db",
        secrets=WATCH,
        root=label,
        budget=150,
        count_tokens=count,
    )
    assert listed in selection.overview
    assert selection.overview.count("/home/person/repo") == (label == "/home/person/repo")


def test_parts_of_a_name_count_although_most_files_have_the_words() -> None:
    files = {f"part{number}.py": "def write():\n    output = terminal.strip()\n" for number in range(20)}
    files["compat.py"] = "def should_strip_ansi(output):\n    return not output.terminal\n"
    files["other.py"] = "def nothing():\n    return 1\n"
    question = "Where is the colour stripped when output is not a terminal?"
    selection = select_from_texts(files, question, secrets=WATCH, budget=4_000, count_tokens=count)
    scores = {one.path: one.score for one in selection.files}
    assert scores["compat.py"] > scores["other.py"]
    assert scores["compat.py"] > 0.1
