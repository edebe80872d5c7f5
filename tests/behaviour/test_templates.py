"""Templates over a vault and what is attached: all five, and what becomes of them."""

from pathlib import Path

import pytest
from tests.conftest import Watched
from tests.unit.rendered import attached, library, sent

from lamella import ActiveNote, Note, Selection
from lamella.conversation.turn_reader import AttachmentReader
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.templates import expand_typed_text
from lamella.sources.open_sources import make_source_opener

INSTRUCTED = pytest.mark.moves_prefix(reason="a note drawn into the instructions changes")


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    for path, text in {
        "Spec.md": "the spec text #public",
        "docs/api.md": "the api text #public/beta",
        "docs/log.md": "the log text",
        "a/Twin.md": "one",
        "b/Twin.md": "two",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_linked_note_is_attached_and_named(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("Sum up {[[spec]]} please")
    assert turn.envelope.layer(LayerId.L5).text == 'Sum up "Spec.md" please'
    assert attached(turn) == [("Spec.md", "full")]
    assert turn.envelope.warnings == ()


def test_tag_template_attaches_notes_with_tag_or_subtag(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("Compare {#public}")
    assert turn.envelope.layer(LayerId.L5).text == 'Compare "#public"'
    assert attached(turn) == [("Spec.md", "full"), ("docs/api.md", "full")]


def test_several_tags_attach_the_notes_of_each_once(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("{#public, #public/beta}")
    assert attached(turn) == [("Spec.md", "full"), ("docs/api.md", "full")]


def test_folder_template_attaches_its_notes(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("Read {docs}")
    assert turn.envelope.layer(LayerId.L5).text == 'Read "docs"'
    assert attached(turn) == [("docs/api.md", "full"), ("docs/log.md", "full")]


def test_active_note_template_uses_attached_active_note(converse: type[Watched]) -> None:
    turn = converse().ask("Sum up {activeNote}", attach=[ActiveNote(path="a.md", text="A")])
    assert turn.envelope.layer(LayerId.L5).text == 'Sum up "a.md"'
    assert attached(turn) == [("a.md", "full")]
    assert turn.messages[-1].text.count("<active_note>") == 1


def test_empty_pair_of_braces_is_the_selection(converse: type[Watched]) -> None:
    turn = converse().ask("Translate {}", attach=[Selection(path="a.md", text="chosen")])
    ((name, form),) = attached(turn)
    assert form == "full"
    assert turn.envelope.layer(LayerId.L5).text == f'Translate "{name}"'


@pytest.mark.parametrize(
    "typed", ["{}", "if (x) {y}", '{"json": 1}', "f{o}o", "{docs/nothing}", "{{}}", "a { b", "\\{x}"]
)
def test_literal_brace_stays_literal(converse: type[Watched], vault: Path, typed: str) -> None:
    turn = converse(vault=vault).ask(typed)
    assert turn.messages[-1].text == typed
    assert turn.envelope.warnings == ()


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("{[[Nowhere]]}", "no note is called Nowhere."),
        ("{[[Twin]]}", "2 notes are called Twin: a/Twin.md, b/Twin.md. Name one by its path."),
        ("{#nothing}", "no note carries #nothing."),
        ("{activeNote}", "no active note is attached."),
    ],
)
def test_template_without_match_or_with_too_many_is_literal_with_warning(
    converse: type[Watched], vault: Path, typed: str, why: str
) -> None:
    turn = converse(vault=vault).ask(typed)
    assert turn.messages[-1].text == typed
    assert turn.envelope.warnings == (f"{typed} was left as typed: {why}",)


def test_path_distinguishes_notes_of_same_name(converse: type[Watched], vault: Path) -> None:
    assert attached(converse(vault=vault).ask("{[[b/Twin]]}")) == [("b/Twin.md", "full")]


def test_note_attached_twice_by_template_is_sent_once(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("{[[Spec]]} {#public} {[[Spec]]}", attach=[Note(path="Spec.md")])
    assert attached(turn) == [("Spec.md", "full"), ("docs/api.md", "full")]
    assert sent(turn).count("the spec text") == 1


@pytest.mark.parametrize("typed", ["{docs}", "{activeNote} {docs}", "{docs} {activeNote}"])
def test_policy_applies_to_note_however_it_is_named(converse: type[Watched], vault: Path, typed: str) -> None:
    note = vault / "docs" / "policy.md"
    note.write_text("first", encoding="utf-8")
    chat = converse(vault=vault, layout="in_place")
    chat.ask("one", attach=[Note(path="docs/policy.md", policy="snapshot")])
    chat.reply("r")
    note.write_text("second", encoding="utf-8")
    turn = chat.ask(typed, attach=[ActiveNote(path="docs/policy.md", policy="follow")])
    assert ("docs/policy.md", "update") in attached(turn)
    assert "second" in sent(turn)
    assert turn.envelope.warnings == ()


def test_attached_note_wins_over_vault_in_template(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("{[[Spec]]}", attach=[Note(path="Spec.md", text="given text")])
    assert "given text" in sent(turn)
    assert "the spec text" not in sent(turn)


def test_link_without_vault_can_mean_note_of_earlier_turn(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("one", attach=[Note(path="docs/a.md", text="A")])
    chat.reply("r")
    turn = chat.ask("again {[[a]]}")
    assert attached(turn) == [("docs/a.md", "reference")]


@pytest.mark.layout("library")
@pytest.mark.moves_prefix(reason="in layout library what was drawn in goes into the system message")
def test_history_repeats_sent_text_and_note_moves_to_library(converse: type[Watched], vault: Path) -> None:
    chat = converse(vault=vault)
    chat.ask("Sum up {[[Spec]]}")
    chat.reply("r")
    turn = chat.ask("two")
    assert turn.messages[1].text == 'Sum up "Spec.md"'
    assert library(turn) == ["Spec.md"]


def test_artifact_records_how_it_was_attached(vault: Path) -> None:
    reading = AttachmentReader(make_source_opener(vault)(), known=tuple)
    drawn = expand_typed_text("{[[Spec]]} {docs}", reading.resolve_template)
    assert [artifact.source.via for artifact in drawn.artifacts] == ["template", "template:docs", "template:docs"]


def test_instructions_include_text_of_note(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault, system={"base": "B.", "instructions": "Obey {[[Spec]]}."}).ask("hi")
    assert "Obey <note_context>\n" in turn.messages[0].text
    assert "the spec text" in turn.messages[0].text
    assert attached(turn) == []


@INSTRUCTED
@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_changed_note_in_the_instructions_is_a_changed_instruction(
    converse: type[Watched], vault: Path, layout: str
) -> None:
    chat = converse(vault=vault, layout=layout, system={"instructions": "Obey {[[Spec]]}.", "memory": "M."})
    chat.ask("one")
    chat.reply("r")
    (vault / "Spec.md").write_text("another text", encoding="utf-8")
    turn = chat.ask("two")
    assert str(turn.prefix_change.prefix_change) == "system_changed(instructions)"
    assert "another text" in turn.messages[0].text
    assert turn.envelope.epoch == 1


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_note_in_instructions_is_referenced_not_repeated(converse: type[Watched], vault: Path, layout: str) -> None:
    chat = converse(vault=vault, layout=layout, system={"instructions": "Obey {[[Spec]]}."})
    first = chat.ask("one", attach=[Note(path="Spec.md")])
    assert attached(first) == [("Spec.md", "reference")]
    assert sent(first).count("the spec text") == 1


def test_unknown_template_in_instructions_is_literal_with_warning(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault, system={"instructions": "Obey {[[Nowhere]]} {}."}).ask("hi")
    assert turn.messages[0].text == "Obey {[[Nowhere]]} {}."
    assert turn.envelope.warnings == ("{[[Nowhere]]} was left as typed: no note is called Nowhere.",)


def test_empty_folder_template_warns(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("Read {empty}")
    assert attached(turn) == []
    assert len(turn.envelope.warnings) == 1
