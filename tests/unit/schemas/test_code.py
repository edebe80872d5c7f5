"""Responses of the documented endpoints, in their names and ours."""

from tests.bodies import as_json

from lamella.code import CodeAnswer, InstructionsInPrompt, select_files
from lamella.core.values import replace
from lamella.runners.code_questions import PlainMessage
from lamella.schemas.code import filter_to_json, solution_to_json

SOLUTION = CodeAnswer(
    reply="so",
    history=(PlainMessage("user", "why"), PlainMessage("assistant", "so")),
    state=InstructionsInPrompt(("regular",)),
    tokens_used=47,
    model="m",
    warnings=("Odd.",),
    ignored=("apiKey",),
)
FLAGS = {
    "hasTerminalErrorInstructionsBeenGiven": False,
    "hasCodebaseAnalysisInstructionsBeenGiven": False,
    "hasRegularChatInteractionInstructionsBeenGiven": True,
    "given": ["regular"],
}


def test_solution_json_has_documented_names_and_ignored_fields() -> None:
    body = as_json(solution_to_json(SOLUTION))
    assert (body["data"], body["tokensUsed"], body["chatState"]) == ("so", 47, FLAGS)
    assert body["chatHistory"] == [{"role": "user", "content": "why"}, {"role": "assistant", "content": "so"}]
    assert (body["ignored"], body["warnings"], body["conversation"], body["lamella"]) == (["apiKey"], ["Odd."], None, 1)
    assert str(body["ignoredBecause"]).startswith("apiKey is ignored, and neither stored nor logged")


def test_ignored_fields_are_omitted_if_none_was_sent() -> None:
    body = as_json(solution_to_json(replace(SOLUTION, ignored=())))
    assert (body["ignored"], "ignoredBecause" in body) == ([], False)
    several = solution_to_json(replace(SOLUTION, ignored=("userId", "isPremium")))
    assert "userId, isPremium are ignored" in str(several.ignored_because)


def test_filter_json_has_contents_within_budget() -> None:
    files = {
        f"{name}.py": f"def {name}():\n    return {number}\n" for number, name in enumerate(("water", "dig", "sow"))
    }
    selection = select_files(files, "Who can water?", budget=120)
    body = as_json(filter_to_json(selection, ("userId",)))
    chosen = body["data"]
    assert chosen[0]["path"] == "water.py"
    assert "def water" in chosen[0]["content"]
    assert body["tokensUsed"] == selection.tokens <= 120
    assert body["ignored"] == ["userId"]
