"""A turn that is too long by itself: its longest attachments are sent as summaries, and nothing else is touched."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from time import sleep

import pytest

import lamella
from lamella import Conversation, Note, Selection
from lamella.conversation.turn import BuiltTurn
from lamella.core.log.turn import ArtifactForm
from lamella.core.messages import Message
from lamella.core.prompt.layers.model import LayerId
from lamella.errors import ContextBudgetExceededError

LONG = "\n".join(f"Line {number} of src/module{number}.py weighs {number}.5 MB." for number in range(2_000))


class Counting:
    """Summarises by saying how often it was asked, and remembers how many asked at once."""

    def __init__(self, answer: str = "A part of a long list of modules.") -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.most = 0
        self._now = 0
        self._lock = Lock()

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.asked.append(messages[-1].text)
        sleep(0.01)
        with self._lock:
            self._now -= 1
        return self.answer


def chat(summarizer: Counting | None, *, reads: int = 16_000) -> Conversation:
    compaction = {"summary": {"reads": reads}}
    return Conversation(window=12_000, reserve=0, summarizer=summarizer, compaction=compaction)


def forms(turn: BuiltTurn) -> dict[str, ArtifactForm]:
    return {segment.id: segment.form for segment in turn.envelope.layer(LayerId.L3).segments}


def test_long_note_is_sent_as_summary_under_own_id() -> None:
    summarizer = Counting()
    turn = chat(summarizer).ask("What is this?", attach=[Note(path="long.md", text=LONG)])
    assert forms(turn) == {"long.md": ArtifactForm.SUMMARY}
    assert turn.tokens.total < 0.7 * 12_000
    assert "A part of a long list" in turn.messages[-1].text
    assert "Attach long.md with less beside it" in turn.messages[-1].text
    assert any("long.md is sent as a summary" in warning for warning in turn.envelope.warnings)


def test_exact_terms_accompany_summary() -> None:
    turn = chat(Counting()).ask("What?", attach=[Note(path="long.md", text=LONG)])
    assert "src/module0.py" in turn.messages[-1].text


def test_at_most_three_parts_are_summarized_at_a_time() -> None:
    summarizer = Counting()
    chat(summarizer, reads=1_000).ask("What?", attach=[Note(path="long.md", text=LONG)])
    assert len(summarizer.asked) > 3
    assert 1 < summarizer.most <= 3


def test_summarized_parts_are_bounded_and_complete() -> None:
    summarizer = Counting()
    chat(summarizer, reads=1_000).ask("What?", attach=[Note(path="long.md", text=LONG)])
    assert max(map(len, summarizer.asked)) < 3_500
    assert all(f"Line {number} of" in "".join(summarizer.asked) for number in (0, 999, 1_999))


def test_selections_pins_and_short_notes_are_not_summarized() -> None:
    selection = Selection(path="a.md", lines=(1, 400), text="chosen " * 3_000)
    turn = chat(Counting()).ask(
        "What?",
        attach=[
            selection,
            Note(path="long.md", text=LONG),
            Note(path="pinned.md", text="kept " * 2_500, policy="pin"),
            Note(path="short.md", text="short " * 1_500),
        ],
    )
    assert [form for name, form in forms(turn).items() if name != "long.md"] == [ArtifactForm.FULL] * 3
    assert forms(turn)["long.md"] is ArtifactForm.SUMMARY


def test_same_text_is_summarized_once() -> None:
    summarizer = Counting()
    talk = chat(summarizer)
    talk.ask("What?", attach=[Note(path="long.md", text=LONG)])
    talk.reply("A list.")
    asked = len(summarizer.asked)
    turn = talk.ask("And now?", attach=[Note(path="long.md", text=LONG)])
    assert forms(turn) == {"long.md": ArtifactForm.SUMMARY}
    assert len(summarizer.asked) == asked


def test_library_keeps_summary_and_reattachment_restores_full_text() -> None:
    talk = chat(Counting())
    medium = "\n".join(f"Row {number}: {number * 7}" for number in range(700))
    talk.ask("What?", attach=[Note(path="medium.md", text=medium), Note(path="long.md", text=LONG)])
    talk.reply("Two lists.")
    turn = talk.ask("The first one again.", attach=[Note(path="medium.md", text=medium)])
    assert forms(turn) == {"medium.md": ArtifactForm.FULL}
    assert medium in turn.messages[-1].text
    (entry,) = [s for s in turn.envelope.layer(LayerId.L2).segments if s.id == "long.md"]
    assert entry.form is ArtifactForm.SUMMARY


@pytest.mark.parametrize("answer", ["", "word " * 2_000, 'It says "something that it never said at all".'])
def test_note_is_outlined_if_summary_is_rejected(answer: str) -> None:
    turn = chat(Counting(answer)).ask("What?", attach=[Note(path="long.md", text=LONG)])
    assert any(warning.startswith("long.md is sent as its outline") for warning in turn.envelope.warnings)
    assert "characters are left out.]" in turn.messages[-1].text


def test_note_is_outlined_without_summarizer_and_says_what_is_left_out() -> None:
    talk = chat(None)
    turn = talk.ask("What?", attach=[Note(path="long.md", text=LONG), Note(path="short.md", text="Short.")])
    assert forms(turn) == {"long.md": ArtifactForm.SUMMARY, "short.md": ArtifactForm.FULL}
    assert LONG[:200] in turn.messages[-1].text
    assert "[Made without a model: the beginning of each part. " in turn.messages[-1].text
    assert turn.tokens.total <= 0.95 * turn.tokens.limit


def test_oversized_pinned_note_is_refused_with_its_name() -> None:
    with pytest.raises(ContextBudgetExceededError) as caught:
        chat(None).ask("What?", attach=[Note(path="long.md", text=LONG, policy="pin")])
    assert "long.md, attached now" in caught.value.hint


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_reopened_conversation_sends_the_same_summary(tmp_path: Path, layout: str) -> None:
    sent = []
    for name in ("kept", "reopened"):
        with lamella.open(f"sqlite:///{tmp_path}/{name}.db", summarizer=Counting()) as engine:
            talk = engine.chat("chat", layout=layout, window=12_000, reserve=0)
            talk.ask("What?", attach=[Note(path="long.md", text=LONG)])
            talk.reply("A list.")
            if name == "kept":
                sent.append([message.text for message in talk.ask("And?").messages])
        if name == "reopened":
            with lamella.open(f"sqlite:///{tmp_path}/{name}.db") as engine:
                sent.append([message.text for message in engine.chat("chat").ask("And?").messages])
    assert sent[0] == sent[1]
