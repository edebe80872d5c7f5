"""Templates: which tokens there are, and what a literal brace is."""

import pytest

from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource
from lamella.core.prompt.templates import (
    Template,
    TemplateKind,
    TemplateResolution,
    expand_instructions,
    expand_typed_text,
    find_matching_notes,
)


def find_templates(text: str) -> tuple[Template, ...]:
    """Everything in a text that is asked for."""
    found: list[Template] = []

    def note_down(template: Template) -> TemplateResolution:
        found.append(template)
        return TemplateResolution()

    expand_typed_text(text, note_down)
    return tuple(found)


def note(path: str, title: str = "") -> Artifact:
    return make_artifact(ArtifactKind.NOTE, text=f"text of {path}", source=ArtifactSource(path=path), title=title)


@pytest.mark.parametrize(
    ("token", "kind", "name"),
    [
        ("{activeNote}", TemplateKind.ACTIVE_NOTE, "activeNote"),
        ("{[[Note]]}", TemplateKind.NOTE, "Note"),
        ("{[[docs/a b.md]]}", TemplateKind.NOTE, "docs/a b.md"),
        ("{[[Note|shown as]]}", TemplateKind.NOTE, "Note"),
        ("{[[Note#Heading]]}", TemplateKind.NOTE, "Note"),
        ("{ [[Note]] }", TemplateKind.NOTE, "Note"),
        ("{#tag}", TemplateKind.TAG, "#tag"),
        ("{#one, #two/three}", TemplateKind.TAG, "#one, #two/three"),
        ("{docs/api}", TemplateKind.FOLDER, "docs/api"),
        ("{}", TemplateKind.SELECTION, ""),
    ],
)
def test_template_token_is_parsed(token: str, kind: TemplateKind, name: str) -> None:
    assert find_templates(f"see {token}.") == (Template(kind=kind, name=name, token=token),)


@pytest.mark.parametrize("text", ["no braces", "{ open", "close }", "{two\nlines}", "{{"])
def test_unpaired_braces_are_not_template(text: str) -> None:
    assert find_templates(text) == ()


def test_of_nested_braces_only_the_inner_pair_can_be_a_template() -> None:
    assert [template.token for template in find_templates("{{activeNote}}")] == ["{activeNote}"]


def test_template_becomes_quoted_id_and_attaches_note() -> None:
    expanded = expand_typed_text(
        "Sum up {[[a]]}!", lambda _: TemplateResolution(id="docs/a.md", artifacts=(note("docs/a.md"),))
    )
    assert expanded.text == 'Sum up "docs/a.md"!'
    assert [artifact.id for artifact in expanded.artifacts] == ["docs/a.md"]


def test_unresolved_template_is_literal_with_warning() -> None:
    expanded = expand_typed_text(
        "f = {x} {[[y]]}",
        lambda t: TemplateResolution(reason="no such note.") if "[[" in t.token else TemplateResolution(),
    )
    assert expanded.text == "f = {x} {[[y]]}"
    assert expanded.warnings == ("{[[y]]} was left as typed: no such note.",)
    assert expanded.artifacts == ()


def test_blank_braces_are_not_resolved() -> None:
    typed = "f() { } {.} {./} { .. }"
    assert expand_typed_text(typed, lambda _: TemplateResolution(id="the whole vault")).text == typed


def test_token_used_twice_attaches_once() -> None:
    expanded = expand_typed_text(
        "{[[a]]} and {[[a]]}", lambda _: TemplateResolution(id="a.md", artifacts=(note("a.md"),))
    )
    assert expanded.text == '"a.md" and "a.md"'
    assert len(expanded.artifacts) == 1


def test_id_that_looks_like_a_template_is_not_expanded_again() -> None:
    expanded = expand_typed_text(
        "{[[a]]}", lambda _: TemplateResolution(id="{[[a]]}.md", artifacts=(note("{[[a]]}.md"),))
    )
    assert expanded.text == '"{[[a]]}.md"'


def test_in_instructions_the_text_is_drawn_in() -> None:
    expanded = expand_instructions(
        "Follow {[[a]]} always.", lambda _: TemplateResolution(id="a.md", artifacts=(note("a.md"),))
    )
    assert expanded.text == (
        "Follow <note_context>\n<title>a</title>\n<path>a.md</path>\n<content>\ntext of a.md\n</content>\n"
        "</note_context> always."
    )


def test_in_instructions_an_empty_pair_of_braces_is_literal() -> None:
    expanded = expand_instructions(
        "Answer with {}.", lambda _: TemplateResolution(id="a.md", artifacts=(note("a.md"),))
    )
    assert (expanded.text, expanded.artifacts) == ("Answer with {}.", ())


def test_link_means_the_path_before_the_name_before_the_title() -> None:
    notes = [note("docs/spec.md"), note("spec.md"), note("other.md", title="spec")]
    assert [found.id for found in find_matching_notes("spec", notes)] == ["spec.md"]
    assert [found.id for found in find_matching_notes("spec", notes[:1])] == ["docs/spec.md"]
    assert [found.id for found in find_matching_notes("spec", [notes[0], notes[2]])] == ["docs/spec.md", "other.md"]
    assert find_matching_notes("nothing", notes) == ()
