"""Tool results cleared in layout ``auto``: the same after reopening, fork, undo and copy, and all can be recalled."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

import lamella
from lamella import Conversation, Note, Tool, ToolOutput, Turn
from lamella.conversation.turn import ModelAnswer, RequestStatus
from lamella.core.messages import ModelReply, StopReason, ToolCall

TRIED = settings.get_profile("invariants")
NAME = "agent"
_RESULT_ID = re.compile("tool:read_file:[0-9a-f]+")
START = datetime(2026, 11, 1, tzinfo=UTC)
READ_FILE = Tool(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


@dataclass(frozen=True)
class Task:
    """A question with the files that the model reads for it: their numbers and sizes in words."""

    files: tuple[tuple[int, int], ...]
    pause: int = 20
    note: int | None = None
    undo: bool = False
    fork: bool = False


tasks = st.builds(
    Task,
    files=st.lists(st.tuples(st.integers(0, 5), st.sampled_from((30, 900, 2_500))), max_size=4).map(tuple),
    pause=st.sampled_from((5, 20, 200, 900, 5_000)),
    note=st.one_of(st.none(), st.integers(0, 2)),
    undo=st.sampled_from((False, False, False, True)),
    fork=st.sampled_from((False, False, False, True)),
)


def file_text(number: int, words: int) -> str:
    return " ".join(f"word{number}x{at}" for at in range(words))


@dataclass
class Agent:
    """Plays tasks in a store, and opens the conversation again before each step if ``reopens``."""

    url: str
    reopens: bool
    at: datetime = START
    requests: list[str] = field(default_factory=list)
    reads: list[int | None] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open()

    def _open(self) -> None:
        self.engine = lamella.open(self.url)
        self.chat: Conversation = self.engine.chat(
            NAME, model="anthropic:claude-opus-5-5", layout="auto", system="You are an agent. " * 80, window=10**6
        )

    def close(self) -> None:
        self.engine.close()

    def _reopen(self) -> None:
        if self.reopens:
            self.close()
            self._open()

    def play(self, task: Task) -> None:
        self._reopen()
        if task.undo and self.chat.receipts():
            self.chat.undo(at=self.at)
        turns = self.chat.turns()
        if task.fork and len(turns) > 1:
            answered = turns[-2].reply
            assert answered is not None
            self.chat.fork(answered.id, at=self.at)
        self.at += timedelta(seconds=task.pause)
        notes = [] if task.note is None else [Note(path=f"{task.note}.md", text=file_text(task.note, 300))]
        turn = self.chat.ask("Do it.", attach=notes, tools=[READ_FILE, self.chat.recall_tool], at=self.at)
        self._record(turn)
        for number, (file, words) in enumerate(task.files):
            self._reopen()
            call = ToolCall(
                id=f"c{len(self.requests)}-{number}", name="read_file", arguments=json.dumps({"path": f"{file}.py"})
            )
            reply = ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(call,))
            self.chat.reply(ModelAnswer(reply=reply), at=self.at)
            self.at += timedelta(seconds=5)
            output = f"{file_text(file, words)} {len(self.requests)}"
            self.outputs.append(output)
            turn = self.chat.submit_tool_outputs([ToolOutput(call=call.id, output=output)], at=self.at)
            self._record(turn)
        self._reopen()
        self.chat.reply("Done.", at=self.at)

    def _record(self, turn: Turn) -> None:
        # Ids of results differ between conversations.
        self.requests.append(_RESULT_ID.sub("tool:read_file:id", json.dumps([one.to_dict() for one in turn.messages])))
        self.reads.append(turn.cache.read if turn.cache is not None else None)

    def cleared_ids(self) -> list[str]:
        return [
            name for receipt in self.chat.receipts() if receipt.clears_in_place for name in receipt.steps[0].removed
        ]


@TRIED
@given(st.lists(tasks, min_size=3, max_size=7))
def test_cleared_results_are_the_same_after_reopening(played: Sequence[Task]) -> None:
    with TemporaryDirectory() as folder:
        whole = Agent(f"sqlite:///{Path(folder) / 'whole.db'}", reopens=False)
        pieces = Agent(f"sqlite:///{Path(folder) / 'pieces.db'}", reopens=True)
        for task in played:
            whole.play(task)
            pieces.play(task)
        assert pieces.requests == whole.requests
        assert len(pieces.cleared_ids()) == len(whole.cleared_ids())
        for turn in pieces.chat.replay():
            assert turn.check is not None
            assert turn.check.status is not RequestStatus.DIFFERS, turn.check
        pieces.close()
        whole.close()


@TRIED
@given(st.lists(tasks, min_size=3, max_size=6))
def test_cleared_results_are_recalled_word_for_word_in_every_copy(played: Sequence[Task]) -> None:
    with TemporaryDirectory() as folder:
        agent = Agent(f"sqlite:///{Path(folder) / 'agent.db'}", reopens=False)
        for task in played:
            agent.play(task)
        url = f"sqlite:///{Path(folder) / 'copy.db'}"
        agent.engine.copy_to(url)
        with lamella.open(url) as other:
            copy = other.chat(NAME)
            for name in agent.cleared_ids():
                for chat in (agent.chat, copy):
                    found = chat.recall(name, 1)
                    assert found[0].passage.id.partition("@")[0] == name
                    assert found[0].passage.text in agent.outputs
            again = [
                json.dumps([one.to_dict() for one in chat.preview("And now?").messages]) for chat in (agent.chat, copy)
            ]
            assert again[0] == again[1]
        agent.close()
