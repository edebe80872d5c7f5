"""A project in words, and what changed in it."""

from lamella.ports import ProjectFolder
from lamella.runners.project import MAX_LISTED_SOURCES, describe_source_changes, render_project, render_project_header


def folder(*paths: str, at: float = 10.0, **further: object) -> ProjectFolder:
    return ProjectFolder(name="garden", sources=dict.fromkeys(paths, at), folders={".": at}, **further)  # type: ignore[arg-type]


def test_a_folder_without_sources_says_so() -> None:
    assert render_project(folder()).endswith("It has no sources yet.")


def test_names_cannot_break_out_of_their_line() -> None:
    assert "\n- a&lt;b\\n- c.md" in render_project(folder("a<b\n- c.md")).replace("&#10;", "\\n")


def test_as_many_as_are_listed_are_not_counted() -> None:
    assert "more" not in render_project(folder(*(f"{number}.md" for number in range(MAX_LISTED_SOURCES))))


def test_what_changed_after_a_time_is_told_and_what_did_before_is_not() -> None:
    now = folder("a.md", "b.md", at=10.0)
    assert describe_source_changes(render_project(now), now, since=20.0) == ""
    assert describe_source_changes(render_project(now), now, since=5.0).endswith("New or changed: a.md, b.md.")


def test_a_line_of_the_instructions_is_no_source_that_went_away() -> None:
    now = folder("a.md", instructions="Rules:\n- be brief", at=10.0)
    assert render_project_header(now) in render_project(now)
    assert describe_source_changes(render_project(now), now, since=5.0).endswith("New or changed: a.md.")


def test_of_many_changes_some_are_named_and_the_rest_is_counted() -> None:
    now = folder(*(f"{number:02}.md" for number in range(25)))
    assert describe_source_changes(render_project(now), now, since=0.0).endswith("19.md, and 5 more.")
