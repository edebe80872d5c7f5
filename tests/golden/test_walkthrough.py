"""Three turns: a spec, then the spec and an API note, then the spec alone. Expectations for each, layer by layer."""

from itertools import pairwise
from pathlib import Path

import pytest
from tests.golden.cases import CARRY_FORWARD, HERE, LAYOUTS
from tests.golden.conftest import Replay

import lamella
from lamella import Note

SPEC, API = "project-spec.md", "docs/api-docs.md"
TYPED = ("Summarize this", "What endpoints does the API support?", "Explain the auth flow from the spec")
MODES = [(layout, carry) for layout in LAYOUTS for carry in CARRY_FORWARD]
PROMOTES = pytest.mark.moves_prefix(reason="in layout library a promoted note goes into the system message")
EACH_MODE = pytest.mark.parametrize(
    ("layout", "carry_forward"),
    [pytest.param(*mode, marks=PROMOTES if mode[0] == "library" else ()) for mode in MODES],
)


def note(path: str, vault: Path = HERE / "vault") -> str:
    return (vault / path).read_text(encoding="utf-8")


@EACH_MODE
def test_turn_1_sends_new_note_in_full(replayed: Replay, layout: str, carry_forward: str) -> None:
    first = replayed("walkthrough", layout, carry_forward)[0]
    assert first.forms("L2_PREVIOUS") == []
    assert first.forms("L3_TURN") == [(SPEC, "full")]
    assert first.forms("L4_STRIP") == []
    assert first.text("L5_USER") == "Summarize this"
    assert first.last == (
        f"<note_context>\n<title>project-spec</title>\n<path>{SPEC}</path>\n<content>\n{note(SPEC)}\n</content>\n"
        "</note_context>\n[User query]:\nSummarize this"
    )
    assert first.movement.cause == "first_turn"


@EACH_MODE
def test_l1_is_same_in_every_turn_with_ordered_parts(replayed: Replay, layout: str, carry_forward: str) -> None:
    turns = replayed("walkthrough", layout, carry_forward)
    assert len({turn.hash("L1_SYSTEM") for turn in turns}) == 1
    assert [name for name, _ in turns[0].forms("L1_SYSTEM")] == ["base", "project", "memory"]
    assert all(turn.system.startswith(turn.text("L1_SYSTEM")) for turn in turns)


@EACH_MODE
def test_l4_has_typed_text_and_replies_only(replayed: Replay, layout: str, carry_forward: str) -> None:
    turns = replayed("walkthrough", layout, carry_forward)
    for number, turn in enumerate(turns):
        assert turn.kinds("L4_STRIP") == ["user", "reply"] * number
        assert "note_context" not in turn.text("L4_STRIP")
    assert turns[2].text("L4_STRIP").split("\n\n") == [
        "Summarize this",
        "The spec describes a service that books shared rooms: rooms, holds and tokens.",
        "What endpoints does the API support?",
        "Five: list rooms, make and release a hold, issue and revoke a token.",
    ]


@EACH_MODE
def test_library_is_cumulative_in_first_seen_order(replayed: Replay, layout: str, carry_forward: str) -> None:
    turns = replayed("walkthrough", layout, carry_forward)
    ids = [[name for name, _ in turn.forms("L2_PREVIOUS")] for turn in turns]
    assert ids == [[], [SPEC], [SPEC, API]]


@EACH_MODE
def test_unattached_note_is_not_sent_or_referenced(replayed: Replay, layout: str, carry_forward: str) -> None:
    third = replayed("walkthrough", layout, carry_forward)[2]
    assert API not in [name for name, _ in third.forms("L3_TURN")]
    assert API not in third.last
    assert sum(content.count("`DELETE /tokens/{id}`") for _, content in third.messages) == 1


@pytest.mark.parametrize("layout", [pytest.param("library", marks=PROMOTES), "in_place"])
def test_note_already_in_request_is_reference(replayed: Replay, layout: str) -> None:
    _, second, third = replayed("walkthrough", layout, "full")
    assert second.forms("L3_TURN") == [(SPEC, "reference"), (API, "full")]
    assert third.forms("L3_TURN") == [(SPEC, "reference")]
    for turn in (second, third):
        assert f"\n- {SPEC}\n" in turn.last
        assert sum(content.count("# Project spec") for _, content in turn.messages) == 1


@pytest.mark.parametrize("layout", [pytest.param("library", marks=PROMOTES), "in_place"])
def test_references_precede_new_artifacts_and_question(replayed: Replay, layout: str) -> None:
    second = replayed("walkthrough", layout, "full")[1]
    order = [second.last.index(part) for part in (f"- {SPEC}\n", "<note_context>", "[User query]:\n", TYPED[1])]
    assert order == sorted(order)
    assert second.last.endswith(f"[User query]:\n{TYPED[1]}")


@PROMOTES
def test_library_layout_puts_library_in_system_message(replayed: Replay) -> None:
    _, second, third = replayed("walkthrough", "library", "full")
    assert third.places("L2_PREVIOUS") == ["system", "system"]
    assert second.system == f"{second.text('L1_SYSTEM')}\n\n## Context Library\n\n{second.text('L2_PREVIOUS')}"
    assert third.system.startswith(second.system)
    assert [content for role, content in third.messages if role == "user"][:2] == list(TYPED[:2])


@PROMOTES
def test_in_library_the_ledger_names_the_note_that_moved_the_prefix(replayed: Replay) -> None:
    turns = replayed("walkthrough", "library", "full")
    assert [str(turn.movement) for turn in turns] == [
        "first_turn",
        f"artifact_added({SPEC})",
        f"artifact_added({API})",
    ]


def test_in_place_resends_earlier_messages_unchanged(replayed: Replay) -> None:
    turns = replayed("walkthrough", "in_place", "full")
    for earlier, later in pairwise(turns):
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert later.movement.cause == "none"
    assert turns[2].places("L2_PREVIOUS") == ["message:1", "message:3"]
    assert len({turn.system for turn in turns}) == 1


def test_in_place_makes_no_previews_within_epoch(replayed: Replay) -> None:
    full = replayed("walkthrough", "in_place", "full")
    preview = replayed("walkthrough", "in_place", "preview")
    assert [turn.messages for turn in preview] == [turn.messages for turn in full]


def test_preview_keeps_headings_and_says_how_to_get_full_text() -> None:
    chat = lamella.open("memory:", model="openai:gpt-5").chat("x", layout="library", carry_forward="preview")
    chat.ask("Summarize this", attach=[Note(path=SPEC, text=note(SPEC))])
    chat.reply("A service.")
    preview = chat.ask("And then?").messages[0].text
    fenced = ("# not a heading", "## also not a heading")
    headings = [line for line in note(SPEC).split("\n") if line.startswith("#") and line not in fenced]
    assert len(headings) > 20
    assert [line for line in preview.split("\n") if line in headings] == headings
    assert "Every page works with a keyboard alone" not in preview
    assert "[The text of 4 more sections is left out.]" in preview
    assert f"[This is a preview. Attach {SPEC} again for the whole text.]" in preview


@PROMOTES
def test_reattaching_previewed_note_restores_full_text(replayed: Replay) -> None:
    _, second, third = replayed("walkthrough", "library", "preview")
    assert second.forms("L3_TURN") == [(SPEC, "reference"), (API, "full")]
    assert third.forms("L3_TURN") == [(SPEC, "reference")]
    assert note(SPEC) in third.system
    assert third.forms("L2_PREVIOUS") == [(SPEC, "full"), (API, "full")]
