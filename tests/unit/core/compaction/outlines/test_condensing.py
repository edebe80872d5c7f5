"""Condensing: a long attachment is summarized in parts."""

from tests.unit.core.compaction.stories import QUARTERS, Story, attaching, make_rules, note, result, selection

from lamella.core.artifacts.model import AttachmentPolicy
from lamella.core.budget import TokenBudget, Tokenizer
from lamella.core.compaction.outlines import summarize_attachments
from lamella.core.compaction.rules import CompactionConfig, SummaryConfig
from lamella.core.compaction.summaries import Summaries, SummaryRequest, SummaryResult
from lamella.core.log.turn import Turn
from lamella.core.values import replace

CHAIN = CompactionConfig(
    summary=SummaryConfig(item=50, max_input_tokens=100, max_output_tokens=60, max_exact_tokens=20)
)
BUDGET = TokenBudget(window=400, reserve=0)
# 40 lines of 40 characters: 400 tokens, of which a summariser reads 100 at a time.
TEXT = "".join(f"The line {number:02} says what it has to say....\n" for number in range(40))
LONG = note("long.md", TEXT)


def story(chain: CompactionConfig = CHAIN, measure: Tokenizer = QUARTERS) -> Story:
    return Story(replace(make_rules(chain, budget=BUDGET), tokenizer=measure))


def condense(turn: Turn, summaries: Summaries | None, told: Story | None = None) -> tuple[Turn, list[SummaryRequest]]:
    now = told or story()
    made, needs = summarize_attachments(
        now.state,
        now.bind(turn),
        now.open(turn),
        config=now.rules.compaction_config,
        budget=BUDGET,
        summaries=summaries,
    )
    return made, list(needs)


def read_parts(needs: list[SummaryRequest]) -> list[str]:
    """What of the text is asked for in each."""
    asked = [request.messages[0].text for request in needs]
    return [text.partition("<content>\n")[2].rpartition("\n</content>")[0] for text in asked]


def answers(turn: Turn, text: str = "It was told.") -> dict[str, SummaryResult]:
    return {request.key: SummaryResult(text=text) for request in condense(turn, {})[1]}


def test_long_text_is_requested_in_parts_ending_with_lines() -> None:
    asked = attaching(LONG)
    turn, needs = condense(asked, {})
    assert turn.attached == (LONG,)
    lines = TEXT.splitlines(keepends=True)
    assert read_parts(needs) == ["".join(lines[at : at + 10]) for at in (0, 10, 20, 30)]
    for request in needs:
        (message,) = request.messages
        assert message.text.startswith(
            "Summarise this part of a document that was attached to a question. Keep what it claims, its names, "
            "numbers and headings; invent nothing; write it in the language of the document; answer with the summary "
            "only.\n\n<"
        )
        assert message.tokens == QUARTERS.count(message.text)
        assert request.max_tokens == 60
    one = needs[1].key
    assert [request.key for request in condense(asked, {one: SummaryResult(text="Told.")})[1]] == [
        request.key for request in needs if request.key != one
    ]


def test_text_without_lines_is_cut_at_part_size() -> None:
    _, needs = condense(attaching(note("long.md", "x" * 1_600)), {})
    assert [part.strip() for part in read_parts(needs)] == ["x" * 400] * 4


def test_denser_part_is_cut_to_readable_size() -> None:
    dense = replace(QUARTERS, count=lambda text: text.count("x"))
    text = "x" * 300 + " " * 700
    _, needs = condense(attaching(note("long.md", text)), {}, story(measure=dense))
    found = read_parts(needs)
    assert len(found) > 4
    assert max(part.count("x") for part in found) <= 100
    assert sum(part.count("x") for part in found) == 300


def test_condensed_text_has_summaries_exact_terms_and_warning() -> None:
    turn = attaching(note("long.md", f"See src/app.py.\n{TEXT}"))
    made, needs = condense(turn, answers(turn))
    assert needs == []
    (condensed,) = made.attached
    summary, _, exact = (condensed.condensed or "").rpartition("\n\n")
    assert summary == "\n\n".join(["It was told."] * len(answers(turn)))
    assert exact.startswith("src/app.py")
    assert made.warnings == ("long.md is sent as a summary: its 404 tokens do not fit beside the rest.",)
    assert replace(condensed, condensed=None) == turn.attached[0]


def test_condensed_text_without_exact_terms_is_summary_only() -> None:
    turn = attaching(note("long.md", "word " * 320))
    (condensed,) = condense(turn, answers(turn))[0].attached
    assert condensed.condensed == "\n\n".join(["It was told."] * 4)


def test_part_without_valid_summary_keeps_full_text() -> None:
    turn = attaching(LONG)
    made, needs = condense(turn, answers(turn, "word " * 60))
    assert (made, needs) == (story().bind(turn), [])
    failed = {key: SummaryResult(failure="no answer within 60 seconds") for key in answers(turn)}
    assert condense(turn, failed)[0] == story().bind(turn)


def test_unsummarized_text_of_two_is_reported() -> None:
    other = note("other.md", TEXT.replace("line", "word"))
    both = attaching(LONG, other)
    given = {**{key: SummaryResult(failure="no answer") for key in answers(both)}, **answers(attaching(LONG))}
    made, _ = condense(both, given)
    assert [one.condensed is None for one in made.attached] == [False, True]
    assert made.warnings[1] == "other.md could not be summarised: no answer"


def test_condensed_text_of_earlier_turn_is_reused() -> None:
    turn, told = attaching(LONG), story()
    made, _ = condense(turn, answers(turn))
    told.say("one", "yes", made).say("two", "yes", replace(turn, text="two", attached=(), drop=()))
    again, needs = condense(turn, {}, told)
    assert needs == []
    assert again.attached == made.attached
    changed = attaching(note("long.md", f"{TEXT}More."))
    assert condense(changed, {}, told)[1] != []


def test_short_pinned_cited_and_tool_texts_are_not_condensed() -> None:
    pinned = note("pinned.md", TEXT, policy=AttachmentPolicy.PIN)
    for whole in (pinned, selection("cited.md", TEXT), result("x", TEXT)):
        turn = attaching(whole)
        assert condense(turn, {}) == (story().bind(turn), [])
    short = attaching(note("short.md", "word " * 20), pinned)
    assert condense(short, {})[1] == []


def test_turn_is_unchanged_if_short_or_without_summarizer() -> None:
    turn = attaching(LONG)
    assert condense(turn, None) == (story().bind(turn), [])
    # 50 of 100 tokens are its own: up to that, other things than what is attached now make room.
    fits = Turn(text="x" * 4 * (200 - 150), attached=(note("long.md", "x" * 4 * 100),))
    weight = story().ask(fits).tokens.by_layer
    spare = 200 - sum(weight.values()) + weight["overhead"]
    at = replace(fits, text=fits.text + "x" * 4 * spare)
    assert condense(at, {})[1] == []
    assert condense(replace(at, text=at.text + "x"), {})[1] != []
