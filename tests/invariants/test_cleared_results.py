"""Tool results that leave the prompt: the same after reopening, and recalled word for word from every copy."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import lamella
from lamella import Conversation, Note, Tool, ToolOutput, Turn
from lamella.conversation.turn import ModelAnswer, RequestStatus
from lamella.core.messages import ModelReply, StopReason, ToolCall

TRIED = settings.get_profile("invariants")
# Each example is a whole conversation in five copies; shrinking one takes minutes.
FEW = settings(TRIED, max_examples=max(1, TRIED.max_examples // 4), phases=[Phase.generate])
NAME = "agent"
_RESULT_ID = re.compile("tool:read_file:[0-9a-f]+")
START = datetime(2026, 11, 1, tzinfo=UTC)
READ_FILE = Tool(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
# What the files end with: everything that a store, an archive or a block might change.
ODD_BYTES = ("", "\r\n", "\n\n \t", "</tool_result>\n<!-- lamella -->", "\ufeff\x00\x85\u2028", "e\u0301 \\ &amp; 😀")


@dataclass(frozen=True)
class Task:
    """A question with the files that the model reads for it: their numbers and sizes in words."""

    files: tuple[tuple[int, int], ...]
    pause: int = 20
    note: int | None = None
    undo: bool = False
    fork: bool = False
    compact: bool = False


tasks = st.builds(
    Task,
    files=st.lists(st.tuples(st.integers(0, 5), st.sampled_from((30, 900, 2_500))), max_size=4).map(tuple),
    pause=st.sampled_from((5, 20, 200, 900, 5_000)),
    note=st.one_of(st.none(), st.integers(0, 2)),
    undo=st.sampled_from((False, False, False, True)),
    fork=st.sampled_from((False, False, False, True)),
    compact=st.booleans(),
)


def file_text(number: int, words: int) -> str:
    return " ".join(f"word{number}x{at}" for at in range(words))


@dataclass
class Agent:
    """Plays tasks in a store, and opens the conversation again before each step if ``reopens``."""

    url: str
    reopens: bool
    layout: str = "auto"
    at: datetime = START
    requests: list[str] = field(default_factory=list)
    reads: list[int | None] = field(default_factory=list)
    # The outputs of each turn of the active branch.
    expected: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open()

    def _open(self) -> None:
        self.engine = lamella.open(self.url)
        self.chat: Conversation = self.engine.chat(
            NAME, model="anthropic:claude-opus-5-5", layout=self.layout, system="You are an agent. " * 80, window=10**6
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
            self.expected.pop()
        self.expected.append([])
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
            output = f"{file_text(file, words)} {len(self.requests)}{ODD_BYTES[file]}"
            self.expected[-1].append(output)
            turn = self.chat.submit_tool_outputs([ToolOutput(call=call.id, output=output)], at=self.at)
            self._record(turn)
        self._reopen()
        self.chat.reply(f"Done {len(self.requests)}.", at=self.at)
        if task.compact:
            self.chat.compact(to=0.002, at=self.at)

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


@pytest.mark.parametrize("layout", ["auto", "library", "in_place"])
@FEW
@given(st.lists(tasks, min_size=3, max_size=6))
def test_results_that_left_the_prompt_are_recalled_word_for_word_in_every_copy(
    layout: str, played: Sequence[Task]
) -> None:
    with TemporaryDirectory() as folder, lamella.open("memory:") as imported:
        agent = Agent(f"sqlite:///{Path(folder) / 'agent.db'}", reopens=False, layout=layout)
        for task in played:
            agent.play(task)
        copied = f"sqlite:///{Path(folder) / 'copy.db'}"
        agent.engine.copy_to(copied)
        archived = agent.engine.export_archive(agent.chat, Path(folder) / "archive")
        fork = agent.engine.fork(agent.chat, agent.chat.head, "fork")
        request = ask_and_recall(agent.chat, agent)
        assert ask_and_recall(imported.import_archive(archived)[0], agent) == request
        # A fork has no record of undone cuts and may make them again, so its request can differ.
        ask_and_recall(fork, agent)
        with lamella.open(copied) as other:
            chat = other.chat(NAME)
            assert ask_and_recall(chat, agent) == request
            while chat.receipts():
                chat.undo(at=agent.at)
                ask_and_recall(chat, agent)
        with lamella.open(agent.url) as again:
            chat = again.chat(NAME)
            turns = chat.turns()
            for number in reversed(range(len(played) // 2)):
                reply = turns[number].reply
                assert reply is not None
                chat.fork(reply.id, at=agent.at)
                del agent.expected[number + 1 :]
                ask_and_recall(chat, agent)
        agent.close()


def ask_and_recall(chat: Conversation, agent: Agent) -> list[str]:
    """Ask, check that every result of the branch is in the request or recalled by its id, and return the request."""
    turn = chat.ask("And now?", at=agent.at + timedelta(seconds=5_000))
    prompt = [message.text for message in turn.messages]
    results = [passage for passage in chat.all_passages() if passage.id.startswith("tool:")]
    assert [passage.text for passage in results] == [output for turn in agent.expected for output in turn]
    for passage in results:
        if not any(passage.text in text for text in prompt):
            found = chat.recall(passage.id.partition("@")[0], 1)
            assert [hit.passage for hit in found] == [passage]
    chat.reply("Nothing.", at=agent.at + timedelta(seconds=5_000))
    return [_RESULT_ID.sub("tool:read_file:id", json.dumps(message.to_dict())) for message in turn.messages]
