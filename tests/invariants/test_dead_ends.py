"""No dead ends: whatever was said and attached before, a short question can be asked."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lamella import BudgetExceededError, Conversation, Note, ToolResult

QUICK = settings(deadline=None)
WINDOW = 1_500
SHORT = "And why is that so?"
# In characters: what fits by far, what hardly does, and what is larger than the window by itself.
SIZES = st.sampled_from((20, 600, 5_000, 40_000))
TURNS = st.lists(st.tuples(SIZES, SIZES, st.sampled_from(("none", "note", "result")), SIZES), min_size=1, max_size=6)


def write(size: int, number: int) -> str:
    return f"{number} is a number. " + "Some more words, as ever. " * (size // 26)


@QUICK
@given(turns=TURNS, layout=st.sampled_from(("library", "in_place")), sticky=st.booleans())
def test_a_short_question_is_never_refused_because_of_what_came_before(
    turns: list[tuple[int, int, str, int]], layout: str, *, sticky: bool
) -> None:
    chat = Conversation(layout=layout, window=WINDOW, reserve=0, attachments="sticky" if sticky else "turn")
    for number, (asked, answered, brings, size) in enumerate(turns):
        note = Note(path=f"notes/{number}.md", text=write(size, number))
        result = ToolResult(name="look", arguments={"at": number}, output=write(size, number))
        typed = write(asked, number)
        try:
            turn = chat.ask(
                typed,
                attach=[note] if brings == "note" else [],
                results=[result] if brings == "result" else [],
            )
        except BudgetExceededError as error:
            refused = error.protected[0]
            turn = chat.ask(SHORT)
        else:
            refused = ""
        # Only what is typed now may be too large, and the error says so.
        assert not refused or (asked >= 5_000 and refused.startswith("what was typed now"))
        assert turn.tokens.total <= 0.95 * WINDOW
        chat.reply(write(answered, number))
    assert chat.ask(SHORT).tokens.total <= 0.95 * WINDOW
