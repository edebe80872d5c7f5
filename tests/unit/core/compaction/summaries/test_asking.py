"""Requests for summaries: their messages, word for word, and the key of the result."""

from tests.unit.core.compaction.stories import QUARTERS, Story, chat

from lamella.core.artifacts.kinds import make_tool_definition
from lamella.core.budget import count_tools_tokens
from lamella.core.compaction.rules import SummaryConfig
from lamella.core.compaction.summaries import (
    SummaryRequest,
    SummaryResult,
    original_message_texts,
    prepend_summary_author,
    standalone_summary_messages,
    strip_summary_author,
    summary_key,
    summary_messages_after_last_request,
)
from lamella.core.log.turn import Turn
from lamella.core.messages import Message, Role
from lamella.core.prompt.state import PromptState

WISH = (
    "Write 3 to 5 short bullets, at most 60 words, in the language of the conversation. Quote the user's wishes word "
    "for word in double quotes, or do not quote. Keep decisions, reasons and open questions. Invent nothing. Answer "
    "with the summary only."
)
NUMBERED_WISH = (
    'Write 3 to 5 short bullets, at most 60 words, in the language of the conversation. Begin each line with "- " and '
)
RULES = SummaryConfig(max_output_tokens=100)


def ask(story: Story, turns: int, *, window: int = 1_000_000) -> tuple[Message, ...]:
    oldest = story.state.history.turns[:turns]
    return summary_messages_after_last_request(
        oldest, state=story.state, tokenizer=QUARTERS, config=RULES, window=window
    )


def test_request_asks_about_turns_up_to_named_one() -> None:
    *_, answered, task = ask(chat(3), 2)
    assert answered.text.startswith("Answer 2. because")
    assert (task.role, task.tokens) == (Role.USER, QUARTERS.count(task.text))
    instruction = task.text.rpartition("\n\n")[2]
    assert task.text == (
        "Summarise this conversation from its very beginning, with what a summary there tells, up to and including "
        'the answer to "Question 1: why?". Messages begin and are numbered like this; an answer has the next number:\n'
        f"[1] User: Question 0: why?\n[3] User: Question 1: why?\n\n{instruction}"
    )
    assert instruction.startswith(NUMBERED_WISH)


def test_long_question_is_named_by_first_80_characters() -> None:
    story = Story().say("x" * 80, "yes").say("y" * 50 + "\n\n" + "y" * 50, "yes").say("last", "yes")
    assert f'the answer to "{"x" * 80}". ' in ask(story, 1)[-1].text
    assert f'the answer to "{"y" * 50} {"y" * 29} …". ' in ask(story, 2)[-1].text


def test_tools_of_last_request_count_toward_window() -> None:
    tool = make_tool_definition("search", description="finds " * 40, parameters={})
    story = Story().say("one", "yes", Turn(text="", tools=(tool,))).say("two", "yes")
    needed = sum(message.tokens for message in ask(story, 1)) + count_tools_tokens([tool], QUARTERS.count) + 100
    assert ask(story, 1, window=needed)
    assert ask(story, 1, window=needed - 1) == ()


def test_without_last_request_nothing_is_extended() -> None:
    oldest = chat(1).state.history.turns
    assert (
        summary_messages_after_last_request(
            oldest, state=PromptState(conversation="new"), tokenizer=QUARTERS, config=RULES, window=10**6
        )
        == ()
    )


def test_standalone_request_has_previous_summary_then_turns() -> None:
    story = Story().say("one", "yes").say("two", "no")
    (message,) = standalone_summary_messages(
        story.state.history.turns, tokenizer=QUARTERS, config=RULES, max_tokens=100, earlier_summaries=["Before."]
    )
    assert message.text == (
        f"Before.\n\nUser: one\n\nAssistant: yes\n\nUser: two\n\nAssistant: no\n\nSummarise this conversation. {WISH}"
    )
    assert message.tokens == QUARTERS.count(message.text)


def test_summary_key_covers_all_its_texts() -> None:
    one, other = (Story().say("one", reply).state.history.turns for reply in ("yes", "no"))
    assert original_message_texts(one) == ["one", "yes"]
    assert summary_key(one) == summary_key(one, []) != summary_key(other)
    assert len({summary_key(one), summary_key(other), summary_key(one, ["told"]), summary_key(other, ["told"])}) == 4


def test_repr_of_request_omits_text() -> None:
    request = SummaryRequest(key="k", messages=(Message(role=Role.USER, pieces=("secret",)),), max_tokens=5)
    assert repr(request) == "SummaryRequest(key='k', max_tokens=5, purpose='summary')"


def test_language_form_and_length_are_in_task() -> None:
    rules = SummaryConfig(language="Indonesian", form="one paragraph")
    (message,) = standalone_summary_messages(
        chat(2).state.history.turns, tokenizer=QUARTERS, config=rules, max_tokens=10
    )
    assert "Write one paragraph, at most 6 words, in Indonesian. Quote" in message.text


def test_standalone_summary_names_author() -> None:
    assert (
        prepend_summary_author(SummaryResult(text="They talked.\n", model="gpt-5"))
        == "[Summarised by gpt-5.]\nThey talked."
    )
    assert prepend_summary_author(SummaryResult(text="They talked.\n")) == "They talked.\n"


def test_signature_is_removed_and_nothing_else() -> None:
    assert (
        strip_summary_author(prepend_summary_author(SummaryResult(text="They talked.\nLong.", model="gpt-5")))
        == "They talked.\nLong."
    )
    assert strip_summary_author("They talked.\nLong.") == "They talked.\nLong."
