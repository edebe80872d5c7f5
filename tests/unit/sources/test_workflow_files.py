"""Workflow files: those that ship, one's own by name or path, and what is wrong with a bad one."""

from pathlib import Path

import pytest

from lamella.errors import WorkflowError
from lamella.sources.workflow_files import WorkflowFolder, is_workflow_path, read_workflow

GOOD = """
lamella = 1
name = "mine"
title = "My work"
title_from = "end.title"

[summary]
language = "German"
form = "one line"

[[stages]]
id = "begin"
labels = { en = "Begin", id = "Mulai" }
required = ["what"]
search = true

[[stages]]
id = "end"
labels = { en = "End" }
phase = "Late"
instructions = "End it."
"""


@pytest.fixture
def folder(tmp_path: Path) -> WorkflowFolder:
    (tmp_path / "mine.toml").write_text(GOOD, encoding="utf-8")
    return WorkflowFolder(tmp_path)


def test_bundled_paper_has_thirteen_stages(folder: WorkflowFolder) -> None:
    paper = folder.load("paper")
    assert [stage.id for stage in paper.stages] == [
        "gagasan",
        "topik",
        "outline",
        "abstrak",
        "pendahuluan",
        "tinjauan_literatur",
        "metodologi",
        "hasil",
        "diskusi",
        "kesimpulan",
        "daftar_pustaka",
        "lampiran",
        "judul",
    ]
    assert all(set(stage.labels) == {"id", "en"} and stage.instructions and stage.phase for stage in paper.stages)
    assert [stage.id for stage in paper.stages if stage.search] == ["gagasan", "tinjauan_literatur"]
    assert [stage.id for stage in paper.stages if not stage.required] == ["lampiran"]
    assert (paper.language, paper.title) == ("en", "Academic paper")


def test_paper_is_there_in_indonesian_with_the_same_keys(folder: WorkflowFolder) -> None:
    english, indonesian = folder.load("paper"), folder.load("paper", language="id_ID")
    assert (indonesian.language, indonesian.title) == ("id", "Karya tulis ilmiah")
    assert [stage.required for stage in english.stages] == [stage.required for stage in indonesian.stages]
    for one, other in zip(english.stages, indonesian.stages, strict=True):
        assert one.instructions != other.instructions
        assert one.phase != other.phase
        assert [set(field.labels) for field in other.fields] == [{"id", "en"}] * len(other.fields)
        assert set(one.required) <= {field.name for field in one.fields}
    with pytest.raises(WorkflowError, match="not there in 'de'"):
        folder.load("paper", language="de")


def test_another_workflow_is_only_another_file(folder: WorkflowFolder) -> None:
    assert folder.list_names() == ["mine", "paper", "rfc"]
    assert len(folder.load("rfc").stages) == 6
    mine = folder.load("mine")
    assert (mine.title, mine.summary_language, mine.summary_form) == ("My work", "German", "one line")
    assert (mine.stages[0].required, mine.stages[0].search) == (("what",), True)


def test_own_workflow_wins_over_bundled_one(folder: WorkflowFolder, tmp_path: Path) -> None:
    (tmp_path / "rfc.toml").write_text(GOOD.replace('"mine"', '"rfc"'), encoding="utf-8")
    assert len(folder.load("rfc").stages) == 2


def test_path_names_workflow_file_anywhere(folder: WorkflowFolder, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(GOOD, encoding="utf-8")
    assert folder.load(str(other)).name == "mine"
    assert is_workflow_path("a/b")
    assert is_workflow_path("b.toml")
    assert not is_workflow_path("paper")


@pytest.mark.parametrize("name", ["nothing", "../mine", "", "Paper", "a b"])
def test_unknown_workflow_error_has_hint(folder: WorkflowFolder, name: str) -> None:
    with pytest.raises(WorkflowError) as raised:
        folder.load(name)
    assert raised.value.hint


def test_unknown_workflow_lists_known_ones(folder: WorkflowFolder) -> None:
    with pytest.raises(WorkflowError, match="There is no workflow 'thesis'") as raised:
        folder.load("thesis")
    assert "mine, paper, rfc" in raised.value.hint


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("lamella = 1", "lamella = 2", "lamella is 2, and this version reads 1"),
        ("lamella = 1\n", "", "missing required field `lamella`"),
        ('name = "mine"', 'name = "My Own"', "name is 'My Own'"),
        ('id = "end"', 'id = "begin"', "stage 2 has the id 'begin', which an earlier one has"),
        ('id = "end"', 'id = "The end"', "stage 2 has the id 'The end'"),
        ('{ en = "End" }', "{}", "stage 2 has no label"),
        ('{ en = "End" }', '{ en = " " }', "stage 2 has a label"),
        ('["what"]', '["what", "what"]', "stage 1 requires 'what', which is blank or named twice"),
        ('["what"]', '[" "]', "stage 1 requires ' '"),
        ('"End it."', '"' + "x" * 20_001 + '"', "stage 2 has instructions of 20,001 characters"),
        ('form = "one line"', 'form = "' + "x" * 81 + '"', "summary.form has 81 characters"),
        ("search = true", 'search = "yes"', "Expected `bool`"),
        ("search = true", "searches = true", "unknown field `searches`"),
        ('"end.title"', '"nowhere.title"', "title_from is 'nowhere.title'"),
        ("[[stages]]", "[[stages", "is not TOML"),
    ],
)
def test_invalid_workflow_is_reported_with_position(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(WorkflowError) as raised:
        read_workflow(path)
    assert told in raised.value.message
    assert str(path) in raised.value.message
    assert raised.value.hint


def test_workflow_name_must_match_file_name(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(WorkflowError, match="name is 'mine', and the file is called 'other'"):
        WorkflowFolder(tmp_path).load("other")


def test_unreadable_workflow_file_is_reported(tmp_path: Path) -> None:
    for name, data in (("latin.toml", b'title = "\xe9"'), ("large.toml", b"#" * 1_000_001)):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(WorkflowError):
            read_workflow(tmp_path / name)
    with pytest.raises(WorkflowError, match="cannot be read"):
        read_workflow(tmp_path / "gone.toml")
    with pytest.raises(WorkflowError, match="cannot be read"):
        read_workflow(tmp_path)
    (tmp_path / "none.toml").write_text('lamella = 1\nname = "none"\nstages = []\n', encoding="utf-8")
    with pytest.raises(WorkflowError, match="it has 0 stages"):
        read_workflow(tmp_path / "none.toml")
