"""No dead ends: whatever was said and attached before, a short question can be asked."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lamella import BudgetExceededError, Conversation, Note, ToolResult
from lamella.providers import Reply, StopReason, ToolCall, ToolOutput

QUICK = settings(deadline=None)
WINDOW = 1_500
SHORT = "And why is that so?"
# In characters: what fits by far, what hardly does, and what is larger than the window by itself.
SIZES = st.sampled_from((20, 600, 5_000, 40_000))
TURNS = st.lists(st.tuples(SIZES, SIZES, st.sampled_from(("none", "note", "result")), SIZES), min_size=1, max_size=6)


def write(size: int, number: int) -> str:
    return f"{number} is a number. " + "Some more words, as ever. " * (size // 26)


@QUICK
@given(
    sizes=st.lists(SIZES, min_size=1, max_size=4),
    layout=st.sampled_from(("library", "in_place", "auto")),
    history=st.sampled_from(("full", "window", "strip")),
    notes=st.integers(0, 40),
)
def test_neither_rounds_of_tools_nor_many_notes_and_rules_end_a_conversation(
    sizes: list[int], layout: str, history: str, notes: int
) -> None:
    chat = Conversation(layout=layout, window=WINDOW, reserve=0, attachments="sticky", history=history)
    for number in range(notes):
        chat.ask(f"Always read {number}.", attach=[Note(path=f"{number}.md", text="Short.")])
        chat.reply("Read.")
    chat.ask(SHORT)
    for number, size in enumerate(sizes):
        call = ToolCall(id=f"c{number}", name="look", arguments="{}")
        chat.reply(Reply(text="", calls=(call,), stop=StopReason.TOOLS))
        assert chat.give([ToolOutput(call=call.id, output=write(size, number))]).tokens.total <= 0.95 * WINDOW
    chat.reply("Because.")
    assert chat.ask(SHORT).tokens.total <= 0.95 * WINDOW


@QUICK
@given(turns=TURNS, layout=st.sampled_from(("library", "in_place", "auto")), sticky=st.booleans())
def test_a_short_question_is_never_refused_because_of_what_came_before(
    turns: list[tuple[int, int, str, int]], layout: str, *, sticky: bool
) -> None:
    chat = Conversation(layout=layout, window=WINDOW, reserve=0, attachments="sticky" if sticky else "turn")
    for number, (asked, answered, brings, size) in enumerate(turns):
        # Some come again with another text.
        note = Note(path=f"notes/{number % 3}.md", text=write(size, number))
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
