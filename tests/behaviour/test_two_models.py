"""A question that two models answered: each branch continues with the model of its answer."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.conversation.backends import make_backend

import lamella
from lamella import Conversation
from lamella.conversation.import_export import ConversationRepository
from lamella.core.values import replace
from lamella.stores.memory import InMemoryStore

TWO = ("openai:gpt-5", "anthropic:claude-opus-5-5")


@pytest.mark.parametrize("layout", ["library", "in_place"])
@pytest.mark.parametrize("every", [1, 1_000])
def test_question_answered_by_two_models_continues_with_branch_model(layout: str, every: int) -> None:
    backend = replace(make_backend(InMemoryStore()), checkpoint_every=every)
    conversation = Conversation.open(backend, "chat", {"layout": layout, "model": TWO[0]})
    conversation.ask("one")
    conversation.reply("yes")
    sent = [conversation.ask("two").messages]
    conversation.reply("from the first")
    heads = [conversation.head]
    sent.append(conversation.regenerate(model=TWO[1]).messages)
    conversation.reply("from the second")
    heads.append(conversation.head)
    for head, model, messages in zip(heads, TWO, sent, strict=True):
        conversation.switch(head)
        opened = Conversation.open(backend, "chat", {})
        assert opened.preview("three").envelope.model == model
        *_, last = opened.replay()
        assert (last.envelope.model, [one.text for one in last.messages]) == (model, [one.text for one in messages])
        turns: Any = opened.transcript()["turns"]
        assert turns[-1].get("model", TWO[0]) == model
        assert opened.regenerate().envelope.model == model
        opened.switch(head)
        question = opened.turns()[-1].message.id
        assert opened.edit(question, "two, then").envelope.model == model
        conversation.reload()
    assert list(ConversationRepository(backend.store, backend.clock).verify()) == []


@pytest.mark.parametrize("reopened", [False, True])
def test_regenerate_uses_model_set_since(tmp_path: Path, *, reopened: bool) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(url) as engine:
        conversation = engine.chat("sums", model="anthropic:claude-opus-5-5")
        conversation.ask("What is 1 + 1?")
        conversation.reply("2")
        conversation.set(model="openai:gpt-5")
        conversation.save_settings()
        turn = (engine.chat("sums") if reopened else conversation).regenerate()
        assert turn.envelope.model == "openai:gpt-5"
