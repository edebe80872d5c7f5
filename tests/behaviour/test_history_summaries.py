"""History mode strip with a summariser: a checked summary of the oldest hidden turns, or their outline."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import lamella
from lamella import Conversation
from lamella.conversation.turn import BuiltTurn
from lamella.core.log.turn import ArtifactForm
from lamella.core.messages import Message
from lamella.core.prompt.layers.model import LayerId, SegmentKind


class Retelling:
    """Answers with one text, and remembers what it was given."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        self.asked.append(messages[-1].text)
        assert max_tokens <= 300
        return self.answer


def talk(summarizer: Retelling | None, turns: int) -> BuiltTurn:
    chat = Conversation(history="strip", summarizer=summarizer)
    for number in range(turns):
        turn = chat.ask(f"Question {number} about src/file{number}.py?")
        chat.reply(f"Answer {number}. It goes on for a while, and says little.")
    return turn


def strip(turn: BuiltTurn) -> str:
    (block,) = [s for s in turn.envelope.layer(LayerId.L4).segments if s.kind == SegmentKind.SUMMARY]
    assert block.form is ArtifactForm.SUMMARY
    return block.text


@pytest.mark.layout("library")
def test_oldest_hidden_turns_are_summarized_and_the_newest_outlined() -> None:
    text = strip(talk(Retelling("They went through the files."), 13))
    assert "They went through the files." in text
    assert "Question 0 " not in text
    assert "Question 9 " in text


@pytest.mark.layout("library")
def test_history_summary_is_requested_once_per_eight_turns() -> None:
    summarizer = Retelling("They went through the files.")
    talk(summarizer, 20)
    assert [text.count("Assistant:") for text in summarizer.asked] == [8, 16]


@pytest.mark.layout("library")
def test_exact_terms_of_hidden_turns_accompany_summary() -> None:
    assert "src/file0.py" in strip(talk(Retelling("They went through the files."), 13))


@pytest.mark.layout("library")
@pytest.mark.parametrize("answer", ["", "word " * 400, 'The user said "delete every file at once".'])
def test_rejected_history_summary_keeps_outline_with_warning(answer: str) -> None:
    turn = talk(Retelling(answer), 13)
    assert strip(turn) == strip(talk(None, 13))
    assert any("stand as their outline" in warning for warning in turn.envelope.warnings)


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_history_summary_is_sent_after_reopen_without_summarizer(tmp_path: Path, layout: str) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url, summarizer=Retelling("They went through the files.")) as engine:
        conversation = engine.chat("chat", history="strip", layout=layout)
        for number in range(12):
            sent = conversation.ask(f"Question {number}?", fold=number == 11)
            conversation.reply(f"Answer {number}, and some words to make it longer than a summary.")
    with lamella.open(url) as engine:
        again = engine.chat("chat").regenerate()
    assert [message.text for message in again.messages] == [message.text for message in sent.messages]
    assert "They went through the files." in strip(again)
