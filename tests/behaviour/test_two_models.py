"""A question that two models answered: each branch goes on with the model that it was answered by."""

from typing import Any

import pytest
from tests.unit.engine.backends import make_backend

from lamella import Chat
from lamella.adapters.stores.memory import MemoryStore
from lamella.core.values import replace
from lamella.engine.keeping.conversations import Conversations

TWO = ("openai:gpt-5", "anthropic:claude-opus-5-5")


@pytest.mark.parametrize("layout", ["library", "in_place"])
@pytest.mark.parametrize("every", [1, 1_000])
def test_a_question_that_two_models_answered_goes_on_with_the_model_of_its_branch(layout: str, every: int) -> None:
    backend = replace(make_backend(MemoryStore()), checkpoint_every=every)
    chat = Chat(backend, "chat", {"layout": layout, "model": TWO[0]})
    chat.ask("one")
    chat.reply("yes")
    sent = [chat.ask("two").messages]
    chat.reply("from the first")
    heads = [chat.head]
    sent.append(chat.regenerate(model=TWO[1]).messages)
    chat.reply("from the second")
    heads.append(chat.head)
    for head, model, messages in zip(heads, TWO, sent, strict=True):
        chat.switch(head)
        opened = Chat(backend, "chat", {})
        assert opened.preview("three").envelope.model == model
        *_, last = opened.replay()
        assert (last.envelope.model, [one.text for one in last.messages]) == (model, [one.text for one in messages])
        turns: Any = opened.transcript()["turns"]
        assert turns[-1].get("model", TWO[0]) == model
        assert opened.regenerate().envelope.model == model
        opened.switch(head)
        question = opened.turns()[-1].message.id
        assert opened.edit(question, "two, then").envelope.model == model
        chat.reload()
    assert list(Conversations(backend.store, backend.clock).verify()) == []
