"""Answers by name: found as they were noted, by their question where nothing is, and in no other conversation."""

import lamella
from lamella.adapters.clocks.settable import SettableClock
from lamella.adapters.stores.sharing.shelf import MemoryShelf
from lamella.engine.hosts.answers import HostAnswers, name_answer

_DAY = 86_400


def test_an_answer_is_found_as_it_was_noted_and_by_its_question_once_that_is_forgotten() -> None:
    clock = SettableClock()
    answers = HostAnswers(MemoryShelf(), clock=clock)
    with lamella.open("memory:") as engine:
        chat = engine.chat("tides")
        question = chat.ask("When?").envelope.message_id
        assert answers.find(f"{question}.{name_answer()}", chat) == question
        chat.reply("At noon.")
        first, name = chat.head, name_answer()
        answers.note(name, chat)
        chat.regenerate(question)
        chat.reply("At six.")
        assert answers.find(f"{question}.{name}", chat) == first
        clock.wait(31 * _DAY)
        assert answers.find(f"{question}.{name}", chat) == chat.head != first
        assert [answers.find(one, chat) for one in (first, f"{'0' * 16}.{name}", "")] == [first, None, None]
