"""A project in words, and what changed in it."""

from lamella.ports import ProjectFolder
from lamella.runners.project import (
    MAX_LISTED_SOURCES,
    describe_source_changes,
    render_project_header,
    render_project_system_part,
)


def folder(*paths: str, at: float = 10.0, **further: object) -> ProjectFolder:
    return ProjectFolder(name="garden", source_mtimes=dict.fromkeys(paths, at), folders={".": at}, **further)  # type: ignore[arg-type]


def test_project_without_sources_says_so() -> None:
    assert render_project_system_part(folder()).endswith("It has no sources yet.")


def test_names_cannot_break_out_of_their_line() -> None:
    assert "\n- a&lt;b\\n- c.md" in render_project_system_part(folder("a<b\n- c.md")).replace("&#10;", "\\n")


def test_as_many_as_are_listed_are_not_counted() -> None:
    assert "more" not in render_project_system_part(folder(*(f"{number}.md" for number in range(MAX_LISTED_SOURCES))))


def test_only_later_source_changes_are_described() -> None:
    now = folder("a.md", "b.md", at=10.0)
    assert describe_source_changes(render_project_system_part(now), now, since=20.0) == ""
    assert describe_source_changes(render_project_system_part(now), now, since=5.0).endswith(
        "New or changed: a.md, b.md."
    )


def test_line_of_instructions_is_not_removed_source() -> None:
    now = folder("a.md", instructions="Rules:\n- be brief", at=10.0)
    assert render_project_header(now) in render_project_system_part(now)
    assert describe_source_changes(render_project_system_part(now), now, since=5.0).endswith("New or changed: a.md.")


def test_many_changes_are_truncated_with_count() -> None:
    now = folder(*(f"{number:02}.md" for number in range(25)))
    assert describe_source_changes(render_project_system_part(now), now, since=0.0).endswith("19.md, and 5 more.")
