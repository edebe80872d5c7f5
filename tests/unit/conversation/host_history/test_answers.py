"""Answers by name: found as they were noted, by their question where nothing is, and in no other conversation."""

import lamella
from lamella.clocks import SettableClock
from lamella.conversation.host_history import AnswerIds, new_answer_id
from lamella.stores.sharing import InMemorySharedTable

_DAY = 86_400


def test_an_answer_is_found_as_it_was_noted_and_by_its_question_once_that_is_forgotten() -> None:
    clock = SettableClock()
    answers = AnswerIds(InMemorySharedTable(), clock=clock)
    with lamella.open("memory:") as engine:
        conversation = engine.chat("tides")
        question = conversation.ask("When?").envelope.message_id
        assert answers.find_message(f"{question}.{new_answer_id()}", conversation) == question
        conversation.reply("At noon.")
        first, name = conversation.head, new_answer_id()
        answers.remember_answer(name, conversation)
        conversation.regenerate(question)
        conversation.reply("At six.")
        assert answers.find_message(f"{question}.{name}", conversation) == first
        clock.advance(31 * _DAY)
        assert answers.find_message(f"{question}.{name}", conversation) == conversation.head != first
        assert [answers.find_message(one, conversation) for one in (first, f"{'0' * 16}.{name}", "")] == [
            first,
            None,
            None,
        ]
