"""Settings that were changed and saved apply to the next question, also if the conversation is opened again before."""

from collections.abc import Callable, Mapping, Sequence

import pytest

import lamella
from lamella import Conversation, Turn

_OLD, _NEW = "anthropic:claude-opus-5-5", "openai:gpt-5"
_NAME = "sums"

Step = Callable[[Conversation, Sequence[str]], Turn | None]


def _add_turns(conversation: Conversation, _: Sequence[str]) -> None:
    conversation.add_turns([("What is 3 + 3?", "6"), ("What is 4 + 4?", "8")])


_STEPS: Mapping[str, Step] = {
    "ask": lambda conversation, _: conversation.ask("What is next?"),
    "add_turns": _add_turns,
    "edit_first": lambda conversation, questions: conversation.edit(questions[0], "What is 0 + 1?"),
    "edit_last": lambda conversation, questions: conversation.edit(questions[1], "What is 0 + 2?"),
    "regenerate_first": lambda conversation, questions: conversation.regenerate(questions[0]),
    "regenerate_last": lambda conversation, _: conversation.regenerate(),
    "fork": lambda conversation, questions: conversation.fork(questions[2]),
    "switch": lambda conversation, questions: conversation.switch(questions[3]),
    "delete": lambda conversation, questions: conversation.delete(questions[1]),
}
_PLANS = (
    ("ask",),
    ("edit_first",),
    ("edit_last",),
    ("regenerate_first",),
    ("regenerate_last",),
    ("add_turns", "ask"),
    ("add_turns", "add_turns", "ask"),
    ("add_turns", "edit_last"),
    ("add_turns", "regenerate_last"),
    ("fork", "ask"),
    ("fork", "edit_last"),
    ("fork", "regenerate_last"),
    ("fork", "add_turns", "ask"),
    ("switch", "ask"),
    ("switch", "edit_first"),
    ("delete", "ask"),
    ("delete", "edit_first"),
)
_CHANGES: Mapping[str, Mapping[str, str]] = {
    "both": {"system": "You are kind.", "instructions": "Count slowly."},
    # The last question already has these, the first one has others.
    "instructions_of_the_last_question": {"instructions": "Be brief."},
    "none": {},
}


def _play(
    plan: Sequence[str], changed: Mapping[str, str], model: str | None, *, reopened: bool, saved: bool = True
) -> Turn:
    """Take two turns, change settings, take the steps of the plan, and return the last turn."""
    with lamella.open("memory:") as engine:
        conversation = engine.chat(_NAME, model=_OLD, system="You are exact.", instructions="Show each step.")
        first = conversation.ask("What is 1 + 1?").envelope.prompt.question.segment.id
        conversation.reply("2")
        one = conversation.head
        conversation.set(instructions="Be brief.")
        second = conversation.ask("What is 2 + 2?").envelope.prompt.question.segment.id
        conversation.reply("5")
        conversation.regenerate()
        conversation.reply("4")
        other = next(head for head in conversation.branches() if head != conversation.head)
        questions = (first, second, one, other)
        conversation.set(**changed, **({} if model is None else {"model": model}))
        if saved:
            conversation.save_settings()
        turn: Turn | None = None
        for step in plan:
            conversation = engine.chat(_NAME) if reopened else conversation
            turn = _STEPS[step](conversation, questions)
        assert turn is not None
        return turn


@pytest.mark.parametrize("model", [None, _NEW])
@pytest.mark.parametrize("changed", _CHANGES)
@pytest.mark.parametrize("plan", _PLANS, ids="-".join)
def test_step_after_setting_change_sends_the_same_after_reopen(
    plan: Sequence[str], changed: str, model: str | None
) -> None:
    live = _play(plan, _CHANGES[changed], model, reopened=False)
    again = _play(plan, _CHANGES[changed], model, reopened=True)
    assert again.envelope.model == live.envelope.model == (model or _OLD)
    assert again.messages == live.messages
    assert again.tokens == live.tokens
    for text in _CHANGES[changed].values():
        assert text in live.messages[0].text


@pytest.mark.parametrize("plan", _PLANS, ids="-".join)
def test_change_need_not_be_saved_to_apply_after_the_next_step(plan: Sequence[str]) -> None:
    changed = _CHANGES["both"]
    turn = _play(plan, changed, _NEW, reopened=False, saved=False)
    assert turn.envelope.model == _NEW
    assert turn.messages[0].text == "\n\n".join(changed.values())


@pytest.mark.parametrize("reopened", [False, True])
def test_unsaved_changes_are_written_with_added_turns(*, reopened: bool) -> None:
    with lamella.open("memory:") as engine:
        conversation = engine.chat(_NAME, model=_OLD, system="You are exact.")
        conversation.ask("What is 1 + 1?")
        conversation.reply("2")
        conversation.set(system="You are kind.", model=_NEW)
        _add_turns(conversation, ())
        turn = (engine.chat(_NAME) if reopened else conversation).ask("What is next?")
        assert (turn.envelope.model, turn.messages[0].text) == (_NEW, "You are kind.")


@pytest.mark.parametrize("reopened", [False, True])
def test_first_added_turn_has_the_settings_that_were_saved(*, reopened: bool) -> None:
    with lamella.open("memory:") as engine:
        conversation = engine.chat(_NAME, model=_OLD)
        conversation.set(system="You are kind.", instructions="Count slowly.", model=_NEW)
        conversation.save_settings()
        conversation = engine.chat(_NAME) if reopened else conversation
        _add_turns(conversation, ())
        conversation = engine.chat(_NAME) if reopened else conversation
        turn = conversation.regenerate()
        assert (turn.envelope.model, turn.messages[0].text) == (_NEW, "You are kind.\n\nCount slowly.")
        assert conversation.turns()[0].message.event.system is not None  # type: ignore[union-attr]


def test_setting_change_applies_to_one_question_and_its_branch() -> None:
    with lamella.open("memory:") as engine:
        conversation = engine.chat(_NAME, model=_OLD, system="You are exact.")
        first = conversation.ask("What is 1 + 1?").envelope.prompt.question.segment.id
        conversation.reply("2")
        conversation.set(system="You are kind.")
        conversation.save_settings()
        conversation = engine.chat(_NAME)
        conversation.ask("What is 2 + 2?")
        conversation.reply("4")
        assert engine.chat(_NAME).edit(first, "What is 0 + 1?").messages[0].text == "You are exact."
