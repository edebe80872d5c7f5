"""What the documented endpoints answer, in their names and ours."""

from lamella.code import ChatState, Solution, select_files
from lamella.runners.kinds.messages import PlainMessage
from lamella.views.code.solutions import view_filter, view_ignored, view_solution, view_state

SOLUTION = Solution(
    reply="so",
    history=(PlainMessage("user", "why"), PlainMessage("assistant", "so")),
    state=ChatState(("regular",)),
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


def test_a_solution_has_the_documented_names_and_says_what_was_ignored() -> None:
    body = view_solution(SOLUTION)
    assert (body["data"], body["tokensUsed"], body["chatState"]) == ("so", 47, FLAGS)
    assert body["chatHistory"] == [{"role": "user", "content": "why"}, {"role": "assistant", "content": "so"}]
    assert (body["ignored"], body["warnings"], body["conversation"], body["lamella"]) == (["apiKey"], ["Odd."], None, 1)
    assert str(body["ignoredBecause"]).startswith("apiKey is ignored, and neither stored nor logged")


def test_nothing_is_said_of_what_was_not_sent() -> None:
    assert view_ignored(()) == {"ignored": []}
    assert "userId, isPremium are ignored" in str(view_ignored(("userId", "isPremium"))["ignoredBecause"])


def test_a_filter_gives_contents_and_never_more_than_its_budget() -> None:
    files = {
        f"{name}.py": f"def {name}():\n    return {number}\n" for number, name in enumerate(("water", "dig", "sow"))
    }
    selection = select_files(files, "Who can water?", budget=120)
    body = view_filter(selection, ("userId",))
    chosen = body["data"]
    assert isinstance(chosen, list)
    assert chosen[0]["path"] == "water.py"
    assert "def water" in chosen[0]["content"]
    assert body["tokensUsed"] == selection.tokens <= 120
    assert body["ignored"] == ["userId"]


def test_a_state_is_told_with_its_conversation() -> None:
    assert view_state("key", SOLUTION.state) == {"lamella": 1, "conversation": "key", "chatState": FLAGS}
