"""Plans: committed once, on what they were planned on."""

from collections.abc import Sequence

import pytest
from tests.faithful_summaries import faithful_summary

from lamella import Conversation, Note
from lamella.core.log.turn import ArtifactForm
from lamella.core.messages import Message
from lamella.core.prompt.layers.model import LayerId
from lamella.errors import InvalidOperationError

LONG = "\n".join(f"Line {number} of a long list." for number in range(4_000))


class Telling:
    """Answers with what it was asked last, shortened, and remembers all of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        self.asked.append(messages[-1].text)
        return faithful_summary(messages, statements=len(self.asked))


def talked(turns: int = 20, *, window: int = 4_000, **given: object) -> Conversation:
    chat = Conversation(window=window, reserve=0, layout="in_place", **given)  # type: ignore[arg-type]
    for number in range(turns):
        chat.ask(f"Question {number} " * 10)
        chat.reply(f"Answer {number} " * 20)
    return chat


def test_plan_is_committed_once() -> None:
    chat = talked()
    planned = chat.plan(0.2)
    chat.commit(planned)
    with pytest.raises(InvalidOperationError, match="went on"):
        chat.commit(planned)


def test_plan_is_void_after_undo_or_other_compaction() -> None:
    chat = talked()
    chat.compact(0.4)
    planned = chat.plan(0.1)
    chat.undo()
    with pytest.raises(InvalidOperationError, match="went on"):
        chat.commit(planned)


def test_plan_estimates_cost_without_ledger() -> None:
    plans = [talked(keep_ledger=ledger, model="anthropic:claude-opus-5-5").plan(0.2) for ledger in (True, False)]
    assert plans[0].cost_estimate == plans[1].cost_estimate
    assert plans[0].cost_estimate is not None
    assert plans[0].cost_estimate.changed_tokens > 0


def test_new_summary_includes_earlier_ones() -> None:
    telling = Telling()
    chat = talked(120, summarizer=telling)
    turn = chat.ask("And now?")
    summaries = [s for s in turn.envelope.layer(LayerId.L4).segments if s.form is ArtifactForm.SUMMARY]
    assert len(telling.asked) > 2
    assert len(summaries) == 1
    assert summaries[0].text.count("The user wrote:") > 1
    assert "of what was told of those before" in summaries[0].text


def test_summary_request_names_its_turns() -> None:
    telling = Telling()
    talked(400, window=24_000, summarizer=telling)
    assert telling.asked
    assert all('the answer to "Question' in asked for asked in telling.asked)


@pytest.mark.layout("library")
def test_reattached_note_that_fits_is_full_in_library() -> None:
    chat = Conversation(window=60_000, reserve=0, summarizer=Telling())
    for policy in ("follow", "snapshot"):
        note = Note(path=f"{policy}.md", text=LONG, policy=policy)
        chat.ask("All of it?", attach=[note, Note(path=f"other-{policy}.md", text=LONG + "!")])
        chat.reply("Yes.")
        turn = chat.ask("Alone?", attach=[note], drop=[f"other-{policy}.md"])
        assert {s.id: s.form for s in turn.envelope.layer(LayerId.L3).segments} == {f"{policy}.md": ArtifactForm.FULL}
        chat.reply("Yes.")
        later = chat.ask("And?", drop=[])
        (entry,) = [s for s in later.envelope.layer(LayerId.L2).segments if s.id == f"{policy}.md"]
        assert entry.form in (ArtifactForm.FULL, ArtifactForm.PREVIEW)
        chat.reply("Yes.")
        chat.ask("Away.", drop=[f"{policy}.md"])
        chat.reply("Gone.")


class Guest:
    """Does with a call whatever it is given to do."""

    def __init__(self, act: object) -> None:
        self._act = act

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        if isinstance(self._act, BaseException):
            raise self._act
        return self._act  # type: ignore[return-value]


@pytest.mark.parametrize(
    "act", [SystemExit(1), KeyboardInterrupt(), RuntimeError("https://x?key=sk-secret"), "a \ud800 b", b"bytes", None]
)
def test_failing_summarizer_skips_step_without_trace(act: object) -> None:
    receipt = talked(summarizer=Guest(act)).compact(0.3)
    assert receipt is not None
    whys = [skipped.why for skipped in receipt.skipped]
    assert len(whys) == 1
    assert "secret" not in whys[0]


def test_object_that_is_not_a_plan_is_refused() -> None:
    with pytest.raises(InvalidOperationError, match="is no plan"):
        talked(2).commit(None)  # type: ignore[arg-type]
