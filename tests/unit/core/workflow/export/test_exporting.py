"""The finished work is markdown: stages whole and in order, one bibliography, and what is not approved yet."""

from tests.unit.core.workflow.working import STAGES, Desk

from lamella.core.workflow.export import render_approved_stages


def test_every_approved_stage_is_written_whole_with_one_bibliography() -> None:
    long = "A sentence of the text. " * 200
    desk = Desk().finish(fields={"references": [{"title": "A", "url": "https://x.org/a"}]})
    desk.finish("planned").finish(fields={"body": long, "citations": [{"title": "A", "url": "https://x.org/a#2"}]})
    desk.finish(fields={"chosen": "Desks for all", "options": ["One", {"b": 2}], "count": 3})
    text = render_approved_stages(desk.session, title="")
    assert text.startswith(
        "# Desks for all\n\n## Idea\n\n### what\n\nidea data\n\n### why\n\nidea data\n\n## Plan\n\nplanned\n"
    )
    assert f"## Text\n\n{long.strip()}\n" in text
    assert "### options\n\n- One\n- b: 2\n\n" in text
    assert "## Bibliography\n\n1. A. https://x.org/a#2\n" in text
    assert text.endswith("*Not approved yet: End.*\n")
    assert render_approved_stages(desk.session, title="Mine").startswith("# Mine\n")


def test_untitled_export_is_named_by_workflow() -> None:
    desk = Desk()
    assert render_approved_stages(desk.session, title="").startswith("# Tiny work\n")
    for _ in STAGES:
        desk.finish()
    assert "Not approved" not in render_approved_stages(desk.session, title="")
