"""No dead ends: a short question can always be asked, after any messages and attachments."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lamella import ContextBudgetExceededError, Conversation, Note, ToolResult
from lamella.providers import ModelReply, StopReason, ToolCall, ToolOutput

QUICK = settings(deadline=None)
WINDOW = 1_500
SHORT = "And why is that so?"
# In characters: what fits by far, what hardly does, and what is larger than the window by itself.
SIZES = st.sampled_from((20, 600, 5_000, 40_000))
LAYOUTS = st.sampled_from(("library", "in_place", "auto"))
TURNS = st.lists(st.tuples(SIZES, SIZES, st.sampled_from(("none", "note", "result")), SIZES), min_size=1, max_size=6)


def write(size: int, number: int) -> str:
    return f"{number} is a number. " + "Some more words, as ever. " * (size // 26)


@QUICK
@given(
    sizes=st.lists(SIZES, min_size=1, max_size=4),
    layout=LAYOUTS,
    history=st.sampled_from(("full", "window", "strip")),
    notes=st.integers(0, 40),
)
def test_tool_rounds_notes_and_rules_never_block_conversation(
    sizes: list[int], layout: str, history: str, notes: int
) -> None:
    chat = Conversation(layout=layout, window=WINDOW, reserve=0, attachments="sticky", history=history)
    for number in range(notes):
        chat.ask(f"Always read {number}.", attach=[Note(path=f"{number}.md", text="Short.")])
        chat.reply("Read.")
    chat.ask(SHORT)
    for number, size in enumerate(sizes):
        call = ToolCall(id=f"c{number}", name="look", arguments="{}")
        chat.reply(ModelReply(text="", calls=(call,), stop=StopReason.TOOL_CALLS))
        assert (
            chat.submit_tool_outputs([ToolOutput(call=call.id, output=write(size, number))]).tokens.total
            <= 0.95 * WINDOW
        )
    chat.reply("Because.")
    assert chat.ask(SHORT).tokens.total <= 0.95 * WINDOW


@QUICK
@given(
    rounds=st.integers(1, 24),
    called=st.sampled_from((2, 300)),
    size=st.sampled_from((20, 5_000)),
    attached=st.sampled_from((0, 20, 1_500, 2_400, 40_000)),
    layout=LAYOUTS,
)
def test_turn_continues_after_any_number_of_tool_calls(
    rounds: int, called: int, size: int, attached: int, layout: str
) -> None:
    window = 700
    chat = Conversation(layout=layout, window=window, reserve=0)
    chat.ask(SHORT, attach=[Note(path="a.md", text=write(attached, 0))] if attached else [])
    for number in range(rounds):
        call = ToolCall(id=f"c{number}", name="look", arguments=f'{{"for": "{"a word " * (called // 7)}"}}')
        chat.reply(ModelReply(text="", calls=(call,), stop=StopReason.TOOL_CALLS))
        turn = chat.submit_tool_outputs([ToolOutput(call=call.id, output=write(size, number))])
        assert turn.tokens.total <= 0.95 * window
        # The last call is always there, and so is what it gave, or the way to it.
        assert [one.id for one in turn.messages[-2].calls] == [call.id]
    chat.reply("Because.")
    assert chat.ask(SHORT).tokens.total <= 0.95 * window


# Each turn brings notes of some sizes; those of the same number are the same note, perhaps with another text.
BROUGHT = st.lists(st.tuples(st.integers(0, 60), SIZES, st.booleans()), min_size=1, max_size=3)


@QUICK
@given(
    turns=BROUGHT,
    layout=LAYOUTS,
    window=st.sampled_from((700, WINDOW, 6_000)),
    sticky=st.booleans(),
    deep=st.sampled_from((1, 12)),
)
def test_any_number_of_attachments_fits_one_question(
    turns: list[tuple[int, int, bool]], layout: str, window: int, *, sticky: bool, deep: int
) -> None:
    chat = Conversation(layout=layout, window=window, reserve=0, attachments="sticky" if sticky else "turn")
    for asked, (many, size, as_results) in enumerate(turns):
        folder = "a folder in a folder/" * deep
        notes = [Note(path=f"{folder}{number}.md", text=write(size, number * asked)) for number in range(many)]
        results = [ToolResult(name="look", arguments={"at": one.path}, output=one.text or "") for one in notes]
        turn = chat.ask(SHORT, attach=[] if as_results else notes, results=results if as_results else [])
        assert turn.tokens.total <= 0.95 * window
        told = " ".join(turn.envelope.warnings)
        # Whatever is not sent in full is told, and so is what cannot be named.
        less = [
            one for one in turn.envelope.prompt.rendered_attachments[0] if one.form in ("summary", "handle", "preview")
        ]
        assert not less or "do not fit" in told or "no room" in told
        chat.reply("Because.")
        assert chat.ask(SHORT).tokens.total <= 0.95 * window
        chat.reply("Because.")


@QUICK
@given(turns=TURNS, layout=LAYOUTS, sticky=st.booleans())
def test_short_question_is_never_refused_for_earlier_text(
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
        except ContextBudgetExceededError as error:
            refused = error.protected[0]
            turn = chat.ask(SHORT)
        else:
            refused = ""
        # Only what is typed now may be too large, and the error says so.
        assert not refused or (asked >= 5_000 and refused.startswith("what was typed now"))
        assert turn.tokens.total <= 0.95 * WINDOW
        chat.reply(write(answered, number))
    assert chat.ask(SHORT).tokens.total <= 0.95 * WINDOW
