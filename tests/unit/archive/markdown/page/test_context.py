"""The context line: the attachments by the names people know, unambiguous for any name."""

import pytest

from lamella.archive.markdown.page import is_context_line, parse_context_line, render_context_line
from lamella.archive.markdown.payload import ArtifactRef
from lamella.core.artifacts.kinds import make_artifact, make_tool_result
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource
from lamella.core.log.events.artifact import to_stored_artifact


def ref(artifact: Artifact) -> ArtifactRef:
    return ArtifactRef(stored=to_stored_artifact(artifact))


def made(kind: ArtifactKind, **source: object) -> ArtifactRef:
    return ref(make_artifact(kind, text="text", source=ArtifactSource(**source)))  # type: ignore[arg-type]


def test_attachments_are_shown_by_group_in_a_fixed_order() -> None:
    refs = [
        ref(make_tool_result("search", arguments={}, output="x")),
        made(ArtifactKind.URL, url="https://example.org/x"),
        made(ArtifactKind.WEB_TAB, url="https://example.org/tab"),
        made(ArtifactKind.SELECTED_TEXT, path="a.md", lines=(10, 20)),
        made(ArtifactKind.PDF, path="paper.pdf"),
        made(ArtifactKind.NOTE, path="a.md"),
        made(ArtifactKind.ACTIVE_NOTE, path="b.md"),
    ]
    assert render_context_line(refs) == (
        "[Context: Notes: a.md, b.md | Files: paper.pdf | URLs: https://example.org/x"
        " | Web Tabs: https://example.org/tab | Selections: a.md#L10-L20 | Tools: search]"
    )


def test_folder_and_a_tag_are_shown_once_instead_of_their_notes() -> None:
    refs = [made(ArtifactKind.NOTE, path=f"docs/{n}.md", via="folder:docs") for n in range(100)]
    refs += [made(ArtifactKind.NOTE, path="x.md", via="tag:#red"), made(ArtifactKind.NOTE, path="y.md", via="template")]
    assert render_context_line(refs) == "[Context: Notes: y.md | Tags: #red | Folders: docs]"


def test_no_attachments_give_no_line() -> None:
    assert render_context_line([]) == ""


@pytest.mark.parametrize(
    "name",
    [
        "a, b.md",
        "a | URLs: c.md",
        "[draft] v1].md",
        'quo"te.md',
        '"quoted".md',
        "back\\slash.md",
        " spaces ",
        "new\nline\r.md",
        "😀 \u202etxt.md",
        "Notes: x.md",
        "comma,",
        "nul\x00.md",
    ],
)
def test_any_name_round_trips_through_context_line(name: str) -> None:
    line = render_context_line(
        [made(ArtifactKind.NOTE, path=name), made(ArtifactKind.NOTE, path="last.md"), made(ArtifactKind.URL, url=name)]
    )
    assert is_context_line(line)
    assert "\n" not in line
    assert parse_context_line(line) == {"Notes": [name, "last.md"], "URLs": [name]}


def test_context_lines_of_other_programs_are_parsed() -> None:
    line = (
        "[Context: Notes: a.md, deep/b.md | URLs: https://x.org | Web Tabs: https://y.org | Tags: #a, #b | Folders: d]"
    )
    assert parse_context_line(line) == {
        "Notes": ["a.md", "deep/b.md"],
        "URLs": ["https://x.org"],
        "Web Tabs": ["https://y.org"],
        "Tags": ["#a", "#b"],
        "Folders": ["d"],
    }


def test_names_without_group_and_broken_quotes_are_kept() -> None:
    assert parse_context_line('[Context: loose.md, "half]') == {"": ["loose.md", '"half']}
    assert parse_context_line("[Context: ]") == {}


def test_line_of_very_many_names_is_read() -> None:
    names = [f"note {n}.md" for n in range(50_000)]
    assert parse_context_line(f"[Context: Notes: {', '.join(names)}]") == {"Notes": names}


def test_other_lines_are_not_context() -> None:
    assert not is_context_line("[Context]")
    assert not is_context_line(" [Context: Notes: a.md]")
    assert not is_context_line("[Context: Notes: a.md] and more")
