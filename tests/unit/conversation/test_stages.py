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


def test_next_question_has_stage_changes(chat: Work) -> None:
    assert "Stage 1 of 6" in talk(chat)
    finish(chat, "Desks it is.")
    turn = chat.ask("And now?")
    assert (turn.prefix_change.cause, turn.prefix_change.segment) == ("system_changed", "workflow")
    assert "- Problem: Desks it is." in turn.messages[0].text
    chat.reply("Now.")
    assert chat.ask("Still?").prefix_change.cause == "none"


def test_preview_shows_stage_and_changes_nothing(chat: Work) -> None:
    talk(chat)
    finish(chat)
    assert "Stage 2 of 6" in chat.preview("What would be sent?").messages[0].text
    assert "Stage 2 of 6" in talk(chat)


def test_pending_turn_is_stopped_before_stage_changes(chat: Work) -> None:
    chat.ask("Nobody answers this.")
    finish(chat)
    work = chat.workflow
    assert work is not None
    assert len(work.stages[0].messages) == 2
    talk(chat)


def test_refused_stage_change_keeps_workflow_and_pending_turn(chat: Work) -> None:
    chat.ask("This waits.")
    before = chat.workflow
    deeds: tuple[Callable[[], object], ...] = (
        chat.submit_stage,
        chat.approve_stage,
        lambda: chat.rewind_to_stage("design"),
        lambda: chat.start_workflow("paper"),
        lambda: chat.write_stage({}),
    )
    for deed in deeds:
        with pytest.raises(WorkflowError):
            deed()
    assert chat.workflow == before
    chat.reply("It was answered.")


def test_workflow_part_is_rendered_by_session(chat: Work) -> None:
    with pytest.raises(InvalidOperationError, match="workflow is what the stages"):
        chat.ask("Hello?", system={"workflow": "Mine."})
    assert "Stage 1 of 6" in talk(chat)


def test_missing_workflow_hint_says_how_to_start() -> None:
    chat = Conversation()
    assert chat.workflow is None
    with pytest.raises(WorkflowError) as raised:
        chat.submit_stage()
    assert 'start_workflow("paper")' in raised.value.hint


def test_compaction_shortens_stage_data_and_undo_restores_it(chat: Work) -> None:
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


def test_stage_data_after_compaction_is_detailed(chat: Work) -> None:
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
def test_unstorable_fields_are_refused(fields: object) -> None:
    with pytest.raises(lamella.BadInputError):
        to_stored_fields(fields)  # type: ignore[arg-type]


def test_fields_are_normalized_like_stored_ones() -> None:
    assert to_stored_fields({"b": ("x", 1), "a": {"z": None, "y": 2.5}}) == {"a": {"y": 2.5, "z": None}, "b": ["x", 1]}


def test_each_prefix_change_of_workflow_names_its_cause(chat: Work) -> None:
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
    chat.rewind_to_stage("problem")
    ask()
    assert moved == [
        ("first_turn", None),
        ("system_changed", "workflow"),
        ("none", None),
        ("compacted", "recent_stages"),
        ("compacted", "undo"),
        ("system_changed", "workflow"),
    ]


def test_workflows_are_listed_in_python() -> None:
    assert {"paper", "rfc"} <= set(list_workflows())
    assert len(get_workflow("paper").stages) == 13


def test_date_in_stage_data_gives_no_warning(chat: Work) -> None:
    chat.write_stage({"problem": "On 2026-11-17 at 10:30 every desk was booked twice."})
    assert chat.ask("What then?").envelope.warnings == ()


def test_secret_in_stage_data_warns(chat: Work) -> None:
    made = "".join(("ghp_", "abcDEF0123456789", "abcDEF0123456789abcd"))
    chat.write_stage({"problem": f"The token {made} is known."})
    turn = chat.ask("What then?", model="anthropic:claude-opus-5-5")
    assert [line for line in turn.envelope.warnings if "workflow" in line and "looks like" in line]
