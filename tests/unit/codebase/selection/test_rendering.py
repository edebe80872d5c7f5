"""A selection as artifacts and as text."""

from lamella.codebase.selection import code_path, make_selection_artifacts, render_overview, render_selection
from lamella.ports import CodeFile, CodeForm, CodeSelection


def file(path: str, form: CodeForm, text: str = "") -> CodeFile:
    return CodeFile(path=path, form=form, text=text, tokens=1, score=1.0)


FILES = (
    file("a.py", CodeForm.FULL, "x = 1\n"),
    file("b.py", CodeForm.SKELETON, "def b(): …\n````"),
    file("c\nd.py", CodeForm.NAME),
)


def test_code_path_includes_folder_name() -> None:
    assert [code_path(root, "a.py") for root in ("", ".", "src", "/home/x")] == [
        "a.py", "a.py", "src/a.py", "/home/x/a.py",
    ]  # fmt: skip


def test_overview_has_skeletons_and_names_within_fence() -> None:
    shown = render_overview("src", "why\n# not", FILES, total_files=1_234)
    assert shown == (
        "Chosen from 1,234 files of src for the question: why # not\n"
        "1 in full, 1 as skeletons, 1 by name. Attach a path for its whole text.\n\n"
        "## src/b.py\n`````\ndef b(): …\n````\n`````\n\n"
        "## Others that may matter\n- src/c&#10;d.py"
    )


def test_selection_is_artifact_of_overview_and_full_files() -> None:
    overview, text = render_selection("src", "why", FILES, total_files=3)
    selection = CodeSelection(root="src", question="why", budget=9, tokens=9, text=text, overview=overview, files=FILES)
    whole, code = make_selection_artifacts(selection, read=True)
    assert (whole.id, whole.kind, whole.source.via, whole.source.query) == (
        "codebase:src", "codebase", "codebase:src", "why",
    )  # fmt: skip
    assert (code.id, code.kind, code.source.via, code.text) == ("src/a.py", "code", "codebase:src", "x = 1\n")
    assert not whole.source.is_rereadable
    assert code.source.is_rereadable
    assert "<codebase_context>" in text
    assert "<path>src/a.py</path>" in text
