"""A turn: unset fields change nothing, and parts of the system prompt have their order."""

from lamella.core.log.turn import SystemParts, Turn, TurnBatch, TurnSettings, expand_batches


def test_minimal_turn_changes_nothing() -> None:
    turn = Turn(text="x")
    assert (turn.typed, turn.attached, turn.tool_results, turn.drop, turn.fold, turn.warnings) == (
        "",
        (),
        (),
        (),
        False,
        (),
    )
    assert (turn.id, turn.system, turn.tools, turn.model, turn.history_summary, turn.history_rewrite) == (None,) * 6
    assert (turn.receipts, turn.rounds, turn.reply, turn.reply_id) == ((), (), None, None)
    assert turn.turn_settings == TurnSettings()


def test_empty_system_parts_are_omitted_and_others_ordered() -> None:
    assert SystemParts().non_empty_parts() == []
    parts = SystemParts(
        memory="M", workflow="W", project="P", instructions="I", guidelines="G", base="B", typed_instructions="{I}"
    )
    order = ["base", "guidelines", "instructions", "project", "workflow", "memory"]
    assert parts.non_empty_parts() == list(zip(order, "BGIPWM", strict=True))
    assert parts.typed_parts() == {**dict(parts.non_empty_parts()), "instructions": "{I}"}
    assert SystemParts().typed_parts() == {"instructions": ""}
    staged = SystemParts(workflow="Long.", workflow_brief="Short.", workflow_detail="outline topic")
    assert staged.typed_parts() == {
        "instructions": "",
        "workflow": "Long.",
        "workflow_brief": "Short.",
        "workflow_detail": "outline topic",
    }


RUN = TurnBatch(TurnSettings(), ("q1", "a1", "q2", "a2"), ("One?", "1.", "Two?", "2."))
ONE = Turn(text="One?", typed="One?", id="q1", reply="1.", reply_id="a1")
TWO = Turn(text="Two?", typed="Two?", id="q2", reply="2.", reply_id="a2")


def test_batch_expands_to_its_turns() -> None:
    assert expand_batches([RUN, ONE]) == [ONE, TWO, ONE]
    assert (RUN.get_turn(0), RUN.get_turn(1)) == (ONE, TWO)


def test_batch_without_first_or_last_turn_is_shorter() -> None:
    rest = RUN.without_first()
    assert rest == TurnBatch(TurnSettings(), ("q2", "a2"), ("Two?", "2."))
    assert RUN.without_last() == TurnBatch(TurnSettings(), ("q1", "a1"), ("One?", "1."))
    assert (rest.without_first(), rest.without_last()) == (None, None)
