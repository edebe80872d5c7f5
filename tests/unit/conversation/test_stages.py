"""Work in stages is the same in memory and in a store, and what cannot be done changes nothing."""

import math
from collections.abc import Callable, Iterator

import pytest

import lamella
from lamella import Conversation, InvalidOperationError
from lamella.conversation.stages import to_stored_fields
from lamella.workflows import WorkflowError, get_workflow, list_workflows

Work = Conversation | Conversation


@pytest.fixture(params=["memory", "store"])
def chat(request: pytest.FixtureRequest) -> Iterator[Work]:
    """A conversation that works by ``rfc``, in memory and in a store."""
    if request.param == "memory":
        yield _begun(Conversation(layout="in_place"))
        return
    with lamella.open("sqlite://", summarizer="off") as engine:
        yield _begun(engine.chat("work", layout="in_place"))


def _begun(chat: Work) -> Work:
    chat.start_workflow("rfc")
    return chat


def talk(chat: Work, text: str = "What then?") -> str:
    """One turn; the system message that it was asked under."""
    turn = chat.ask(text)
    chat.reply("So.")
    return turn.messages[0].text


def finish(chat: Work, decision: str = "Decided.") -> None:
    work = chat.workflow
    assert work is not None
    missing = next(stage.missing for stage in work.stages if stage.id == work.current)
    if missing:
        chat.write_stage(dict.fromkeys(missing, "given"))
    chat.submit_stage()
    chat.approve_stage(decision)


def test_the_next_question_has_what_was_done_about_stages(chat: Work) -> None:
    assert "Stage 1 of 6" in talk(chat)
    finish(chat, "Desks it is.")
    turn = chat.ask("And now?")
    assert (turn.prefix_change.cause, turn.prefix_change.segment) == ("system_changed", "workflow")
    assert "- Problem: Desks it is." in turn.messages[0].text
    chat.reply("Now.")
    assert chat.ask("Still?").prefix_change.cause == "none"


def test_a_preview_shows_the_stage_and_changes_nothing(chat: Work) -> None:
    talk(chat)
    finish(chat)
    assert "Stage 2 of 6" in chat.preview("What would be sent?").messages[0].text
    assert "Stage 2 of 6" in talk(chat)


def test_a_turn_that_waits_is_over_before_something_is_done_about_its_stage(chat: Work) -> None:
    chat.ask("Nobody answers this.")
    finish(chat)
    work = chat.workflow
    assert work is not None
    assert len(work.stages[0].messages) == 2
    talk(chat)


def test_what_is_refused_leaves_the_work_and_a_turn_that_waits_as_they_are(chat: Work) -> None:
    chat.ask("This waits.")
    before = chat.workflow
    deeds: tuple[Callable[[], object], ...] = (
        chat.submit_stage,
        chat.approve_stage,
        lambda: chat.rewind_stage("design"),
        lambda: chat.start_workflow("paper"),
        lambda: chat.write_stage({}),
    )
    for deed in deeds:
        with pytest.raises(WorkflowError):
            deed()
    assert chat.workflow == before
    chat.reply("It was answered.")


def test_the_part_is_the_sessions_own(chat: Work) -> None:
    with pytest.raises(InvalidOperationError, match="workflow is what the stages"):
        chat.ask("Hello?", system={"workflow": "Mine."})
    assert "Stage 1 of 6" in talk(chat)


def test_without_a_workflow_there_is_none_and_a_hint_says_how_one_begins() -> None:
    chat = Conversation()
    assert chat.workflow is None
    with pytest.raises(WorkflowError) as raised:
        chat.submit_stage()
    assert 'start_workflow("paper")' in raised.value.hint


def test_a_compaction_makes_data_short_and_its_undo_brings_it_back(chat: Work) -> None:
    talk(chat)
    chat.write_stage({"problem": "words " * 150, "goals": "others " * 150})
    finish(chat)
    full = talk(chat)
    receipt = chat.compact(to=0.001)
    assert receipt is not None
    assert "stage:problem:1" in [name for step in receipt.steps for name in step.removed]
    short = talk(chat)
    assert len(short) < len(full)
    chat.undo(receipt.id)
    assert talk(chat) == full


def test_what_is_done_after_a_compaction_is_told_in_detail(chat: Work) -> None:
    talk(chat)
    chat.write_stage({"problem": "words " * 150, "goals": "others " * 150})
    finish(chat)
    talk(chat)
    assert chat.compact(to=0.001) is not None
    talk(chat)
    chat.write_stage({"state": "state " * 150})
    finish(chat)
    told = talk(chat).partition("## Data")[2]
    lengths = {
        line.partition(":")[0]: len(line) for line in told.splitlines() if line.startswith(("Problem", "Backgr"))
    }
    assert lengths["Problem"] < 300 < lengths["Background"]


@pytest.mark.parametrize(
    "fields", [{"a": math.nan}, {"a": {1, 2}}, {"a": "x" * 1_000_001}, {1: "a"}, ["a"], {"a": "\ud800"}]
)
def test_fields_that_cannot_be_kept_are_refused(fields: object) -> None:
    with pytest.raises(lamella.BadInputError):
        to_stored_fields(fields)  # type: ignore[arg-type]


def test_fields_are_kept_as_a_store_gives_them_back() -> None:
    assert to_stored_fields({"b": ("x", 1), "a": {"z": None, "y": 2.5}}) == {"a": {"y": 2.5, "z": None}, "b": ["x", 1]}


def test_each_move_of_the_prefix_is_told_by_what_moved_it(chat: Work) -> None:
    moved: list[tuple[str, str | None]] = []

    def ask() -> None:
        turn = chat.ask("What then?")
        chat.reply("So it is, and so it goes on.")
        assert turn.ledger.prefix.triggered
        moved.append((str(turn.prefix_change.cause), turn.prefix_change.segment))

    ask()
    chat.write_stage({"problem": "words " * 150, "goals": "others " * 150})
    finish(chat)
    ask()
    ask()
    assert chat.compact(to=0.001) is not None
    ask()
    chat.undo()
    ask()
    chat.rewind_stage("problem")
    ask()
    assert moved == [
        ("first_turn", None),
        ("system_changed", "workflow"),
        ("none", None),
        ("compacted", "recent_stages"),
        ("compacted", "undo"),
        ("system_changed", "workflow"),
    ]


def test_a_program_can_tell_which_workflows_there_are() -> None:
    assert {"paper", "rfc"} <= set(list_workflows())
    assert len(get_workflow("paper").stages) == 13


def test_a_day_that_the_work_is_about_is_no_clock_in_the_prompt(chat: Work) -> None:
    chat.write_stage({"problem": "On 2026-11-17 at 10:30 every desk was booked twice."})
    assert chat.ask("What then?").envelope.warnings == ()


def test_what_looks_like_a_secret_in_the_data_is_said_before_it_leaves(chat: Work) -> None:
    made = "".join(("ghp_", "abcDEF0123456789", "abcDEF0123456789abcd"))
    chat.write_stage({"problem": f"The token {made} is known."})
    turn = chat.ask("What then?", model="anthropic:claude-opus-5-5")
    assert [line for line in turn.envelope.warnings if "workflow" in line and "looks like" in line]
