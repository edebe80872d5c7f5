"""Pages, videos, PDFs, selections, tool results, pictures and heavy context: what becomes of each, turn by turn."""

import pytest
from tests.golden.cases import CARRY_FORWARD, LAYOUTS, naive_file
from tests.golden.conftest import Replay

MOVES = pytest.mark.moves_prefix(reason="a library takes things in, and folds and compactions move the prefix")
PAGE, TAB = "https://example.org/tides?bay=east&year=2026", "https://example.org/ferry"
VIDEO = "https://www.youtube.com/watch?v=b4yT1de5"
PAPER = "papers/tidal-bars.pdf"
KEPT = "Berth 41 is never let."
EACH_LAYOUT = pytest.mark.parametrize("layout", LAYOUTS)
GROWING_IN_PLACE = pytest.mark.parametrize("layout", [pytest.param("library", marks=MOVES), "in_place"])


@GROWING_IN_PLACE
def test_pages_tabs_and_videos_are_sent_once_then_referenced(replayed: Replay, layout: str) -> None:
    turns = replayed("web", layout, "full")
    assert [turn.forms("L3_TURN") for turn in turns] == [
        [(PAGE, "full")],
        [(PAGE, "reference"), (TAB, "full")],
        [(VIDEO, "full")],
        [(VIDEO, "reference"), (PAGE, "reference")],
    ]
    assert [name for name, _ in turns[3].forms("L2_PREVIOUS")] == [PAGE, TAB, VIDEO]
    last = "".join(content for _, content in turns[3].messages)
    for tag in ("url_content", "web_tab_context", "youtube_video_context"):
        assert last.count(f"<{tag}>") == 1


@MOVES
@EACH_LAYOUT
@pytest.mark.parametrize("carry_forward", CARRY_FORWARD)
def test_selections_stay_verbatim_and_pdf_is_file(replayed: Replay, layout: str, carry_forward: str) -> None:
    turns = replayed("papers", layout, carry_forward)
    ids = [name for name, _ in turns[4].forms("L2_PREVIOUS")]
    assert ids[0] == PAPER
    assert ids[1].startswith("papers/notes.md#L10-L12")
    assert ids[2].startswith("https://example.org/storms")
    assert [form for _, form in turns[4].forms("L2_PREVIOUS")] == ["full"] * 3
    assert "The east bar moved nineteen metres,\nmore than any other," in turns[4].text("L2_PREVIOUS")
    assert "harbour was closed for nine days." in turns[4].text("L2_PREVIOUS")


@GROWING_IN_PLACE
def test_note_is_sent_once_with_embeds_and_canvas_as_text(replayed: Replay, layout: str) -> None:
    turns = replayed("house", layout, "full")
    moving, rooms, checklist = "house/moving.md", "house/rooms.canvas", "house/checklist.md"
    assert [turn.forms("L3_TURN") for turn in turns] == [
        [(moving, "full")],
        [(moving, "reference"), (rooms, "full")],
        [(moving, "reference"), (checklist, "full")],
    ]
    first = turns[0].text("L3_TURN")
    assert first.count("Ask [[Ada]] for boxes.") == first.count("Give back both keys.") == 1
    assert first.count('<embedded_note path="house/checklist.md#Before">') == 1
    assert "![[plan of the flat.png]] ![[nowhere]]" in first
    assert "[2] → [1]: first" in turns[1].text("L3_TURN")


@MOVES
@EACH_LAYOUT
@pytest.mark.parametrize("carry_forward", CARRY_FORWARD)
def test_vault_documents_are_read_once_then_referenced(replayed: Replay, layout: str, carry_forward: str) -> None:
    turns = replayed("documents", layout, carry_forward)
    tides, plan, fees, talk = (f"bay/{name}" for name in ("tides.pdf", "plan.docx", "fees.xlsx", "talk.pptx"))
    assert [turn.forms("L3_TURN") for turn in turns] == [
        [(tides, "full")],
        [(tides, "reference"), (plan, "full"), (fees, "full")],
        [(talk, "full")],
        [(tides, "reference")],
    ]
    last = turns[3].text("L2_PREVIOUS")
    for part in ("## Page 2\n\n[This page has no text.]", "# The pier\n\n", "| 41 | 7.5 | TRUE |", "Notes: Say where"):
        assert last.count(part) == 1
    assert (last.count("<pdf_context>"), last.count("<office_context>")) == (1, 3)


@MOVES
@EACH_LAYOUT
def test_results_belong_to_their_turn_and_calls_have_theirs(replayed: Replay, layout: str) -> None:
    turns = replayed("tools", layout, "full")
    assert [form for _, form in turns[0].forms("L3_TURN")] == ["full"]
    assert all(turn.forms("L2_PREVIOUS") == [] for turn in turns)
    earlier = dict(zip(turns[3].kinds("L4_STRIP"), turns[3].forms("L4_STRIP"), strict=True))
    assert earlier["tool"][1] == ("handle" if layout == "library" else "full")
    sent = "".join(content for _, content in turns[3].messages)
    assert ("Page 7: dredged on the third." in sent) is (layout == "in_place")


@GROWING_IN_PLACE
def test_images_go_with_their_turn_and_never_into_the_library(replayed: Replay, layout: str) -> None:
    turns = replayed("pictures", layout, "full")
    assert all(turn.forms("L2_PREVIOUS") == [] for turn in turns)
    assert [turn.kinds("L3_TURN") for turn in turns] == [["image"], ["image"] * 2, []]
    parts = [[len(message.get("images", ())) for message in turn.body["messages"]] for turn in turns]
    assert sum(parts[2]) == (0 if layout == "library" else sum(parts[1]))


@MOVES
@EACH_LAYOUT
@pytest.mark.parametrize("carry_forward", CARRY_FORWARD)
def test_heavy_context_stays_in_window_and_keeps_selections(replayed: Replay, layout: str, carry_forward: str) -> None:
    turns = replayed("heavy", layout, carry_forward)
    assert all(turn.body["tokens"]["total"] <= turn.body["tokens"]["limit"] for turn in turns)
    steps = [step["name"] for turn in turns if turn.body["compaction"] for step in turn.body["compaction"]["steps"]]
    assert {"handle", "expendable"} <= set(steps)
    for turn in turns[4:]:
        assert KEPT in turn.text("L2_PREVIOUS")
    assert [form for _, form in turns[8].forms("L3_TURN")] == ["full"]


@MOVES
@EACH_LAYOUT
def test_query_is_sent_once_then_referenced_and_updated(replayed: Replay, layout: str) -> None:
    turns = replayed("dataview", layout, "full")
    quay = "harbour/Quay.md"
    (query,) = [name for name, _ in turns[0].forms("L3_TURN")]
    assert query.startswith(f"{quay}#dataview:")
    assert "| [[harbour/Wren]] | 4 | nobody | [[harbour/Quay]] |" in turns[0].last
    assert dict(turns[1].forms("L3_TURN")) == {query: "reference", quay: "full"}
    assert "```dataview-result\n2 rows\n[[harbour/Quay]]\n- [ ] Mend the fender" in turns[1].last
    assert "Not run: GROUP BY is not read here (line 3, column 1)." in turns[1].last
    assert turns[2].forms("L3_TURN") == [(query, "update")]
    assert turns[3].forms("L2_PREVIOUS") == [(query, "full"), (quay, "full")]
    assert "Wren]] | 4" not in turns[3].text("L2_PREVIOUS")


def test_naive_request_repeats_current_attachments_only() -> None:
    turns = naive_file("web").read_text(encoding="utf-8").split("═══ turn ")[1:]
    assert [turn.count("<url_content>") for turn in turns] == [1, 1, 0, 1]
    assert [turn.count("<youtube_video_context>") for turn in turns] == [0, 0, 1, 1]
