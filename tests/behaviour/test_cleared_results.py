"""Unused tool results are cleared in layout ``auto`` when reading them has cost as much as clearing them."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import lamella
from lamella import Conversation, Tool, ToolOutput, Turn
from lamella.conversation.turn import ModelAnswer
from lamella.core.messages import ModelReply, ProviderReply, StopReason, ToolCall
from lamella.errors import ArtifactError

START = datetime(2026, 11, 1, tzinfo=UTC)
READ_FILE = Tool(name="read_file", description="Read a file.", parameters={"type": "object", "properties": {}})


class Agent:
    """A conversation in memory with an agent that reads files."""

    def __init__(self, *, layout: str = "auto", recall: bool = True, **settings: object) -> None:
        self.engine = lamella.open("memory:")
        model = str(settings.pop("model", "anthropic:claude-opus-5-5"))
        self.chat: Conversation = self.engine.chat(
            "agent", model=model, layout=layout, system="You are an agent. " * 80, window=10**6, **settings
        )
        self.tools: list[Tool] | None = [READ_FILE, *([self.chat.recall_tool] if recall else [])]
        self.at = START
        self.turns: list[Turn] = []

    def ask(self, *, pause: int = 10) -> Turn:
        self.at += timedelta(seconds=pause)
        self.turns.append(self.chat.ask("Do it.", tools=self.tools, at=self.at))
        return self.turns[-1]

    def read(
        self, path: str, *, words: int = 1_000, line: int | None = None, signed: ProviderReply | None = None
    ) -> Turn:
        arguments: dict[str, object] = {"path": path} | ({} if line is None else {"line": line})
        return self.call("read_file", arguments, f"{path} " * words, signed=signed)

    def call(
        self, name: str, arguments: dict[str, object], output: str, *, signed: ProviderReply | None = None
    ) -> Turn:
        call = ToolCall(id=f"c{len(self.turns)}", name=name, arguments=json.dumps(arguments))
        reply = ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(call,), provider_reply=signed)
        self.chat.reply(ModelAnswer(reply=reply), at=self.at)
        self.at += timedelta(seconds=5)
        self.turns.append(self.chat.submit_tool_outputs([ToolOutput(call=call.id, output=output)], at=self.at))
        return self.turns[-1]

    def task(self, *paths: str, pause: int = 10) -> None:
        self.ask(pause=pause)
        for path in paths:
            self.read(path)
        self.chat.reply("Done.", at=self.at)

    @property
    def cleared(self) -> list[str]:
        """The compactions that cleared results, as sentences."""
        return [receipt.why for receipt in self.chat.receipts() if receipt.clears_in_place]


def test_results_of_earlier_tasks_are_cleared_once_reading_them_cost_as_much_as_a_cut() -> None:
    agent = Agent()
    agent.task(*(f"a{number}.py" for number in range(6)))
    agent.ask()
    assert not agent.cleared
    while not agent.cleared:
        agent.read(f"b{len(agent.turns)}.py", words=50)
    turn = agent.turns[-1]
    assert turn.prefix_change.cause == "compacted"
    assert turn.compaction is not None
    assert turn.compaction.tokens_after == turn.tokens.total
    assert "6 tool results cleared" in agent.cleared[0]
    # The calls stay, and each still has a result.
    assert sum(len(message.calls) for message in turn.messages) == sum(one.call_id is not None for one in turn.messages)


def test_results_of_the_task_under_way_stay() -> None:
    agent = Agent()
    agent.ask()
    for number in range(15):
        agent.read(f"{number}.py")
    assert not agent.cleared


def test_file_of_a_long_turn_is_unused_once_forty_results_follow_the_last_call_that_names_it() -> None:
    agent = Agent()
    agent.ask()
    agent.read("left.py", words=6_000)
    agent.read("named.py", words=1_000)
    for number in range(40):
        agent.read(f"{number}.py", words=5)
        if number == 20:
            agent.call("edit_file", {"path": "named.py", "text": "new"}, "The file was changed.")
    assert not agent.cleared
    while not agent.cleared:
        agent.read(f"more{len(agent.turns)}.py", words=5)
    shown = [message.text for message in agent.turns[-1].messages]
    assert not any(text.startswith("left.py left.py") for text in shown)
    assert any(text.startswith("named.py named.py") for text in shown)


def test_result_that_names_no_file_is_unused_sooner_in_a_long_turn() -> None:
    agent = Agent()
    agent.ask()
    agent.call("search", {"query": "tide"}, "tide " * 6_000)
    for number in range(18):
        agent.read(f"{number}.py", words=5)
    assert not agent.cleared
    while not agent.cleared:
        agent.read(f"more{len(agent.turns)}.py", words=5)
    assert len(agent.turns) < 60


def test_cut_among_tool_rounds_gets_a_breakpoint_and_later_ones_are_priced_by_what_is_cached() -> None:
    agent = Agent()
    agent.ask()
    for number in range(6):
        agent.read(f"{number}.py", words=400)
    for cut in (1, 2):
        agent.call("search", {"query": f"tide {cut}"}, "tide " * 6_000)
        while len(agent.cleared) < cut:
            agent.read(f"more{len(agent.turns)}.py", words=5)
        turn = agent.turns[-1]
        sent = turn.messages
        first = next(at for at, one in enumerate(sent) if one.call_id and one.text != agent.turns[-2].messages[at].text)
        assert first - 1 in turn.envelope.prompt.breakpoints
        # All but the last few blocks before the cut are served, and the overhead of each message.
        assert turn.cache is not None
        assert turn.cache.read > 0.9 * sum(message.tokens for message in sent[:first])


def test_a_repeated_read_makes_the_earlier_one_unused() -> None:
    assert play_two_reads(None, None)
    assert play_two_reads(1, 1)
    # The whole file has what the lines had, but lines do not have what the whole file had.
    assert play_two_reads(1, None)
    assert not play_two_reads(None, 1)


def play_two_reads(first: int | None, again: int | None) -> bool:
    """Read a file twice, and return whether the first result is cleared while the second is used."""
    agent = Agent(model="anthropic:claude-sonnet-5")
    agent.ask()
    agent.read("big.py", words=4_000, line=first)
    agent.read("big.py", words=2_000, line=again)
    for number in range(18):
        agent.read(f"{number}.py", words=5)
    return bool(agent.cleared)


def test_an_expired_cache_makes_clearing_free() -> None:
    agent = Agent()
    agent.task("a.py", "b.py", "c.py", "d.py", "e.py")
    agent.ask(pause=4_000)
    assert agent.cleared[0].startswith("4 tool results cleared: unused, and clearing costs nothing now")


def test_few_tokens_are_not_cleared() -> None:
    agent = Agent()
    agent.task("a.py")
    agent.task("c.py", pause=4_000)
    assert not agent.cleared


@pytest.mark.parametrize(
    "agent",
    [
        Agent(recall=False),
        Agent(layout="in_place"),
        Agent(history="window"),
    ],
    ids=["without the recall tool", "in_place", "window"],
)
def test_nothing_is_cleared_without_recall_or_in_another_layout(agent: Agent) -> None:
    for _ in range(3):
        agent.task("a.py", "b.py", "c.py", "d.py", "e.py", pause=4_000)
    assert not agent.cleared


def test_undone_clearing_is_not_repeated() -> None:
    agent = Agent()
    agent.task("a.py", "b.py", "c.py", "d.py", "e.py")
    agent.task("f.py", pause=4_000)
    assert agent.cleared
    agent.chat.undo(at=agent.at)
    agent.task("g.py", pause=4_000)
    agent.ask(pause=4_000)
    assert any("a.py a.py" in message.text for message in agent.turns[-1].messages)


def test_a_fork_knows_which_clearings_were_undone() -> None:
    agent = Agent()
    agent.task("a.py", "b.py", "c.py", "d.py", "e.py")
    agent.task("f.py", pause=4_000)
    assert agent.cleared
    agent.chat.undo(at=agent.at)
    agent.chat = agent.engine.fork(agent.chat, agent.chat.head, "copy")
    assert not agent.cleared
    agent.task("g.py", pause=4_000)
    agent.ask(pause=4_000)
    assert any("a.py a.py" in message.text for message in agent.turns[-1].messages)
    # A branch of the copy knows it as well.
    agent.chat.fork(agent.chat.turns()[1].message.parent)
    agent.task("g.py", pause=4_000)
    agent.ask(pause=4_000)
    assert any("a.py a.py" in message.text for message in agent.turns[-1].messages)


def test_a_fork_clears_the_same_results_in_the_same_place() -> None:
    agent = Agent()
    agent.task("a.py", "b.py", "c.py", "d.py", "e.py")
    agent.task("f.py", pause=4_000)
    copy = agent.engine.fork(agent.chat, agent.chat.head, "copy")
    assert [(one.why, one.clears_in_place) for one in copy.receipts()] == [(why, True) for why in agent.cleared]
    sent = [turn.messages for turn in agent.chat.replay()]
    assert [turn.messages for turn in copy.replay()] == sent
    now = [chat.ask("Go on.", at=agent.at + timedelta(seconds=10)).messages for chat in (agent.chat, copy)]
    assert now[0] == now[1]


def test_a_pinned_turn_keeps_its_results() -> None:
    agent = Agent()
    agent.task("a.py", "b.py", "c.py", "d.py", "e.py")
    agent.chat.pin("turn:1")
    agent.task("f.py", pause=4_000)
    assert not agent.cleared


def test_results_of_a_tool_that_keeps_them_stay() -> None:
    agent = Agent()
    agent.tools = [replace(READ_FILE, policy="keep"), agent.chat.recall_tool]
    agent.task("a.py", "b.py", "c.py", "d.py", "e.py")
    # The policy applies as long as the program knows the tool.
    agent.tools = None
    agent.task("f.py", pause=4_000)
    assert not agent.cleared
    agent.tools = [READ_FILE, agent.chat.recall_tool]
    agent.task("g.py", pause=4_000)
    assert agent.cleared


def test_unknown_policy_of_a_tool_is_refused() -> None:
    with pytest.raises(ArtifactError, match="has the policy 'stay'") as caught:
        Agent().chat.ask("Do it.", tools=[Tool(name="read_file", policy="stay")])
    assert caught.value.hint == "Give it 'keep', or none."


def test_nothing_is_cleared_in_front_of_signed_reasoning_of_the_same_turn() -> None:
    agent = Agent()
    agent.task("a.py", "b.py", "c.py", "d.py", "e.py")
    agent.ask()
    signed = ProviderReply(format="anthropic", json='[{"type": "thinking", "thinking": "", "signature": "abc"}]')
    for number in range(30):
        agent.read(f"{number}.py", words=10, signed=signed)
    assert not agent.cleared
    agent.chat.reply("Done.", at=agent.at)
    agent.ask(pause=4_000)
    assert agent.cleared
