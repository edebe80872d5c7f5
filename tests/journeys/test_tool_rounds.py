"""Tool rounds: a turn that calls tools is interrupted in the middle and continues in another process."""

import asyncio
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
from tests import preloaded
from tests.journeys.running import SECONDS, spawn
from tests.journeys.running import run as run_command

import lamella
from lamella import Conversation, Message, Tool
from lamella.conversation.turn_runner import TurnEvent
from lamella.errors import InvalidOperationError
from lamella.providers import ToolCall, ToolOutput
from lamella.testing import ScriptedProvider, ScriptedReply

ROUNDS = [
    ("Let me look.", [("c1", "weather", {"city": "Graz"}), ("c2", "clock", {})]),
    ("", [("c3", "weather", {"city": "Linz"})]),
    ("Once more.", [("c4", "clock", {})]),
]
ANSWER = "Sun in both, and it is noon."

# A program that asks, or goes on where another was cut off. It dies at the call or the request that it is told to.
PROGRAM = """
import asyncio, json, os, sys
import lamella
from lamella.providers import ToolCall
from lamella.testing import ScriptedReply, ScriptedProvider

url, layout, begins, dies_at_call, dies_at_request, spoken = json.loads(sys.argv[1])
lines = [
    ScriptedReply(text=text, calls=tuple(ToolCall(id=i, name=n, arguments=json.dumps(a)) for i, n, a in calls))
    for text, calls in spoken
]

class Dying(ScriptedProvider):
    asked = 0
    async def stream(self, request):
        type(self).asked += 1
        if type(self).asked == dies_at_request:
            os._exit(9)
        async for delta in super().stream(request):
            yield delta

done = 0
def tick():
    global done
    done += 1
    if done == dies_at_call:
        os._exit(9)

def weather(city: str) -> str:
    "The weather in a city."
    tick()
    return f"{city}: sun"

def clock() -> str:
    "What time it is."
    tick()
    return "noon"

async def main():
    with lamella.open(url, model="scripted:x", provider=Dying(*lines)) as engine:
        chat = engine.chat("tools", layout=layout)
        tools = [weather, clock]
        question = "Weather in Graz and Linz, and the time?"
        events = chat.send(question, tools=tools) if begins else chat.resume(tools=tools)
        async for event in events:
            pass
        turn = chat.ask("And now?")
        print(json.dumps([message.to_dict() for message in turn.messages]))

asyncio.run(main())
"""


def run(url: str, layout: str, *, begins: bool, at_call: int = 0, at_request: int = 0, after: int = 0) -> str:
    """What the program sends next; nothing where it died."""
    spoken = [*ROUNDS, (ANSWER, [])][after:]
    given = json.dumps([url, layout, begins, at_call, at_request, spoken])
    order = preloaded.Order(program=PROGRAM, words=[given], environment=dict(os.environ), folder=str(preloaded.ROOT))
    done = preloaded.run(order, seconds=SECONDS)
    assert done.exit in (0, 9), done.err
    return done.out.decode()


def mask_results(sent: str) -> str:
    return re.sub(r"\b(tool:\w+):[0-9a-f]{12}", r"\1", sent)


@pytest.mark.parametrize("layout", ["library", "in_place"])
@pytest.mark.parametrize(
    ("at_call", "at_request", "after"),
    [(3, 0, 2), (0, 2, 1), (0, 3, 2), (4, 0, 3), (0, 4, 3), (1, 0, 1)],
    ids=["second call of tools", "second request", "third request", "last call", "last request", "first call"],
)
def test_turn_interrupted_between_rounds_continues_the_same(
    tmp_path: Path, layout: str, at_call: int, at_request: int, after: int
) -> None:
    whole = run(f"sqlite:///{tmp_path}/whole.db", layout, begins=True)
    assert whole
    cut = f"sqlite:///{tmp_path}/cut.db"
    assert run(cut, layout, begins=True, at_call=at_call, at_request=at_request) == ""
    # Each of the two conversations has a key of its own, and ids of results follow from it.
    assert mask_results(run(cut, layout, begins=False, after=after)) == mask_results(whole)


def collect(chat: lamella.Conversation, *arguments: object, **given: object) -> list[TurnEvent]:
    async def main() -> list[TurnEvent]:
        return [event async for event in chat.send(*arguments, **given)]  # type: ignore[arg-type]

    return asyncio.run(main())


def line(*calls: tuple[str, str, dict[str, object]], text: str = "") -> ScriptedReply:
    return ScriptedReply(text=text, calls=tuple(ToolCall(id=i, name=n, arguments=json.dumps(a)) for i, n, a in calls))


def weather(city: str) -> str:
    """The weather in a city."""
    if city == "Nowhere":
        raise LookupError("no such city")
    return f"{city}: sun"


def answer_of(
    *lines: ScriptedReply, tools: list[Tool | Callable[..., object]], **given: object
) -> tuple[lamella.Conversation, list[str]]:
    conversation = lamella.open("memory:", model="scripted:x", provider=ScriptedProvider(*lines)).chat("tools")
    events = collect(conversation, "Weather?", tools=tools, **given)
    # Results come in the order in which tools finish.
    outputs = sorted((event.output for event in events if event.output is not None), key=lambda output: output.call)
    return conversation, [f"{output.failed}: {output.output}" for output in outputs]


def test_failed_tool_bad_argument_and_unknown_name_are_failed_results() -> None:
    calls = line(("a", "weather", {"city": "Nowhere"}), ("b", "weather", {"town": 1}), ("c", "tides", {}))
    conversation, outputs = answer_of(calls, ScriptedReply(text="Sorry."), tools=[weather])
    assert outputs[0] == "True: LookupError: no such city"
    assert outputs[1].startswith("True: TypeError: city: Field required")
    assert outputs[2] == "True: There is no tool tides. Tools: weather."
    assert [record.reply.text for record in conversation.turns() if record.reply] == ["Sorry."]


def test_model_is_asked_to_answer_after_round_limit() -> None:
    again = line(("a", "weather", {"city": "Graz"}))
    conversation, outputs = answer_of(again, again, again, ScriptedReply(text="Sun."), tools=[weather], steps=2)
    assert outputs == [
        "False: Graz: sun",
        "False: Graz: sun",
        "True: Not run: a turn has at most 2 tool rounds. Answer with what you have.",
    ]
    assert [record.reply.text for record in conversation.turns() if record.reply] == ["Sun."]


def test_slow_tool_is_failed_result() -> None:
    async def slow() -> str:
        """Takes its time."""
        await asyncio.sleep(30)
        return "late"

    _, outputs = answer_of(line(("a", "slow", {})), ScriptedReply(text="Well."), tools=[slow], seconds=0.05)
    assert outputs == ["True: No result within 0.05 seconds."]


def test_calls_without_function_leave_turn_open_for_caller() -> None:
    look_up = Tool(name="look_up", description="Looks up a word.")
    conversation = lamella.open(
        "memory:",
        model="scripted:x",
        provider=ScriptedProvider(line(("a", "look_up", {"word": "tide"})), ScriptedReply(text="It is water.")),
    ).chat("tools", layout="in_place")
    collect(conversation, "What is a tide?", tools=[look_up])
    assert [call.name for call in conversation.pending_tool_calls] == ["look_up"]
    turn = conversation.submit_tool_outputs([ToolOutput(call="a", output="a rise of water")])
    collect(conversation, turn)
    assert conversation.pending_tool_calls == ()
    roles = [message.role for message in conversation.ask("Thanks").messages]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


def reply_with_calls() -> dict[str, object]:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Graz"}'}}
    message = {"role": "assistant", "content": "Let me look.", "tool_calls": [call]}
    return {
        "object": "chat.completion",
        "id": "x",
        "model": "gpt-5",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    }


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_own_agent_submits_results_without_loss(layout: str) -> None:
    chat = Conversation(layout=layout)
    chat.ask("Weather in Graz?", tools=[weather])
    reply = chat.reply(reply_with_calls())
    assert [(call.name, call.arguments) for call in reply.calls] == [("weather", '{"city": "Graz"}')]
    turn = chat.submit_tool_outputs([ToolOutput(call=call.id, output="12 degrees") for call in reply.calls])
    assert [message.role for message in turn.messages] == ["user", "assistant", "tool"]
    assert turn.prefix_change.cause == "none"
    chat.reply("It is mild.")
    later = chat.ask("Thanks. And tomorrow?")
    told = "\n".join(message.text for message in later.messages)
    assert "Let me look." in told
    assert ("12 degrees" in told) == (layout == "in_place")
    assert later.prefix_change.cause == ("none" if layout == "in_place" else "epoch_folded")
    if layout == "library":
        assert [found.passage.text for found in chat.recall("degrees")] == ["12 degrees"]


def test_unanswered_calls_are_reported_on_continue() -> None:
    chat = Conversation(layout="in_place")
    chat.ask("Weather in Graz?", tools=[weather])
    chat.reply(reply_with_calls())
    turn = chat.ask("Never mind.")
    assert [message.role for message in turn.messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert turn.messages[2].failed
    assert "not made" in turn.messages[2].text
    assert chat.pending_tool_calls == ()


@pytest.mark.parametrize(
    "outputs",
    [[], [ToolOutput(call="c2", output="x")], [ToolOutput(call="c1", output="x"), ToolOutput(call="c1", output="y")]],
)
def test_each_call_accepts_one_output(outputs: list[ToolOutput]) -> None:
    chat = Conversation()
    chat.ask("Weather in Graz?", tools=[weather])
    chat.reply(reply_with_calls())
    with pytest.raises(lamella.BadInputError, match=r"nothing for weather \(c1\)|c1 more than once"):
        chat.submit_tool_outputs(outputs)
    assert len(chat.pending_tool_calls) == 1
    assert chat.submit_tool_outputs([ToolOutput(call="c1", output="sun")]).messages[-1].text == "sun"


@pytest.mark.parametrize("heard", [1, 2])
def test_reported_tool_outputs_are_kept_after_iterator_is_closed(heard: int) -> None:
    ran: list[str] = []

    def note(word: str) -> str:
        """Notes a word."""
        ran.append(word)
        return f"noted {word}"

    calls = line(("a", "note", {"word": "one"}), ("b", "note", {"word": "two"}))
    provider = ScriptedProvider(calls, ScriptedReply(text="Both noted."))
    conversation = lamella.open("memory:", model="scripted:x", provider=provider).chat("tools", layout="in_place")

    async def stop_early() -> None:
        outputs = 0
        async with aclosing(conversation.send("Note them.", tools=[note])) as events:
            async for event in events:
                outputs += event.output is not None
                if outputs == heard:
                    return

    async def resume() -> None:
        async for _ in conversation.resume(tools=[note]):
            pass

    asyncio.run(stop_early())
    assert conversation.pending_tool_calls == ()
    asyncio.run(resume())
    assert sorted(ran) == ["one", "two"]
    texts = [message.text for message in conversation.ask("Thanks").messages]
    assert texts == ["Note them.", "", "noted one", "noted two", "Both noted.", "Thanks"]


def test_oversized_tool_output_is_reported_and_turn_continues() -> None:
    def read() -> str:
        """Reads much."""
        return "word " * 9_000

    provider = ScriptedProvider(line(("a", "read", {})), ScriptedReply(text="Long."))
    conversation = lamella.open("memory:", model="scripted:x", provider=provider).chat(
        "tools", window=6_000, reserve=500
    )
    told: list[TurnEvent] = []

    async def main() -> None:
        async for event in conversation.send("Read.", tools=[read]):
            told.append(event)

    asyncio.run(main())
    assert [len(event.output.output) for event in told if event.output] == [45_000]
    assert "".join(event.text for event in told) == "Long."


def test_rounds_continue_after_summary_frees_space() -> None:
    class Summary:
        asked = 0

        def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
            del messages, max_tokens
            self.asked += 1
            return "- They talked."

    def read(page: int) -> str:
        """Reads a page."""
        return f"word{page} " * 700

    summary = Summary()
    calls = [line((f"c{page}", "read", {"page": page})) for page in range(4)]
    provider = ScriptedProvider(*[ScriptedReply(text="Fine. " * 20)] * 12, *calls, ScriptedReply(text="Read."))
    engine = lamella.open("memory:", model="scripted:x", provider=provider, summarizer=summary)
    steps = {"steps": ["summary", "expendable"], "summary": {"whole_turns": True}}
    conversation = engine.chat("tools", layout="in_place", window=9_000, reserve=500, compaction=steps)
    for number in range(12):
        collect(conversation, f"Question {number}: " + "long text " * 120)
    before = summary.asked
    collect(conversation, "Read four pages.", tools=[read])
    assert summary.asked > before
    assert [len(record.completed_rounds) for record in conversation.turns()][-1] == 4
    last = conversation.turns()[-1].reply
    assert last is not None
    assert last.text == "Read."


def chat_of(*lines: ScriptedReply, tools: Sequence[Tool | Callable[..., object]] | None = None) -> lamella.Conversation:
    """A chat that was asked once, and answered by the first of these lines."""
    conversation = lamella.open("memory:", model="scripted:x", provider=ScriptedProvider(*lines)).chat("tools")
    collect(conversation, "Good day.", tools=tools)
    return conversation


CALLS_WEATHER = line(("a", "weather", {"city": "Graz"}), text="Let me look.")


def test_functions_are_remembered_for_later_turns() -> None:
    conversation = chat_of(ScriptedReply(text="Hello."), CALLS_WEATHER, ScriptedReply(text="Sun."), tools=[weather])
    events = collect(conversation, "Weather?")
    assert [event.output.output for event in events if event.output] == ["Graz: sun"]
    assert [record.reply.text for record in conversation.turns() if record.reply] == ["Hello.", "Sun."]


def test_functions_are_kept_for_continued_turns() -> None:
    look_up = Tool(name="look_up", description="Looks up a word.")
    lines = (line(("a", "look_up", {})), CALLS_WEATHER, ScriptedReply(text="Sun."))
    conversation = chat_of(*lines, tools=[look_up, weather])
    collect(conversation, conversation.submit_tool_outputs([ToolOutput(call="a", output="a rise of water")]))
    assert [record.reply.text for record in conversation.turns() if record.reply] == ["Sun."]


def test_functions_given_in_ask_are_run_when_the_turn_is_sent() -> None:
    lines = (CALLS_WEATHER, ScriptedReply(text="Sun."))
    conversation = lamella.open("memory:", model="scripted:x", provider=ScriptedProvider(*lines)).chat("tools")
    collect(conversation, conversation.ask("Weather?", tools=[weather]))
    assert [record.reply.text for record in conversation.turns() if record.reply] == ["Sun."]


def test_of_two_functions_with_one_name_the_newer_is_run() -> None:
    def newer(city: str) -> str:
        """The weather in a city."""
        return f"{city}: rain"

    newer.__name__ = "weather"
    conversation = chat_of(ScriptedReply(text="Hello."), CALLS_WEATHER, ScriptedReply(text="Rain."), tools=[weather])
    events = collect(conversation, "Weather?", tools=[newer])
    assert [event.output.output for event in events if event.output] == ["Graz: rain"]


def test_withdrawn_tool_is_not_run_and_model_is_informed() -> None:
    conversation = chat_of(ScriptedReply(text="Hello."), CALLS_WEATHER, ScriptedReply(text="Well."), tools=[weather])
    events = collect(conversation, "Weather?", tools=[])
    assert [event.output.output for event in events if event.output] == ["There is no tool weather. Tools: none."]


def test_calls_without_known_function_are_error_and_turn_stays_pending(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url, model="scripted:x", provider=ScriptedProvider(ScriptedReply(text="Hello."))) as engine:
        collect(engine.chat("tools"), "Good day.", tools=[weather])
    with lamella.open(
        url, model="scripted:x", provider=ScriptedProvider(CALLS_WEATHER, ScriptedReply(text="Sun."))
    ) as engine:
        conversation = engine.chat("tools")
        with pytest.raises(
            InvalidOperationError, match="The model calls weather, for which no function was given here"
        ) as told:
            collect(conversation, "Weather?")
        assert "chat.resume(tools=[weather])" in told.value.hint
        assert [call.name for call in conversation.pending_tool_calls] == ["weather"]
        assert [one.text for one in conversation.turns()[-1].open_rounds] == ["Let me look."]
        with pytest.raises(InvalidOperationError, match="The model calls weather"):
            resume(conversation)
        resume(conversation, tools=[weather])
        assert [one.reply.text for one in conversation.turns() if one.reply] == ["Hello.", "Sun."]


def test_calls_for_caller_are_listed_in_last_event() -> None:
    look_up = Tool(name="look_up", description="Looks up a word.")
    calls = line(("a", "look_up", {"word": "tide"}), ("b", "weather", {"city": "Graz"}))
    conversation = lamella.open("memory:", model="scripted:x", provider=ScriptedProvider(calls)).chat("tools")
    events = collect(conversation, "What is a tide?", tools=[look_up, weather])
    last = events[-1]
    assert [event.output for event in events if event.output] == [], "a round is run as a whole, or not at all"
    assert (last.kind, [call.name for call in last.calls]) == ("done", ["look_up", "weather"])
    assert last.calls == tuple(conversation.pending_tool_calls)


def resume(chat: lamella.Conversation, **given: object) -> list[TurnEvent]:
    async def main() -> list[TurnEvent]:
        return [event async for event in chat.resume(**given)]  # type: ignore[arg-type]

    return asyncio.run(main())


def test_rounds_and_pending_calls_are_shown_in_terminal(tmp_path: Path, home: Mapping[str, str]) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    look_up = Tool(name="look_up", description="Looks up a word.")
    lines = (CALLS_WEATHER, line(("b", "weather", {"city": "Nowhere"})), line(("c", "look_up", {}), text="And then."))
    script = tmp_path / "replies.json"
    script.write_text('["Never mind."]')
    with lamella.open(url, model=f"scripted:{script}", provider=ScriptedProvider(*lines)) as engine:
        collect(engine.chat("tools"), "Weather?", tools=[weather, look_up])
    waits = ["… And then.", "> look_up({}) (result pending)"]
    shown = [shown.strip() for shown in run_command("chats", "show", "tools", "--store", url).out.splitlines()]
    assert shown[1:-1] == [
        "… Let me look.",
        '> weather({"city": "Graz"}) returned: Graz: sun',
        '> weather({"city": "Nowhere"}) failed: LookupError: no such city',
        *waits,
    ]
    resume = "`chat.resume(tools=[look_up])`"
    hint = f"look_up is a tool of a Python program: {resume} continues it; a new message abandons it."
    assert shown[-1] == hint
    words = ("chat", "tools", "--store", url, "--model", f"scripted:{script}")
    opened = spawn(*words, stdin=b"/resume\nSomething else.\n", environment=home)
    assert opened.err.splitlines()[2:4] == waits
    assert opened.err.splitlines()[4] == hint
    assert "The program that has these tools can continue." in opened.err
    later = run_command("chats", "show", "tools", "--store", url).out
    assert "… And then." in later
    assert "> look_up({}) failed: This call was not made: the conversation went on without it." in later
    assert "gives that up" not in later


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_model_recalls_removed_result_by_id(layout: str) -> None:
    recalls = line(
        ("r1", "recall", {"query": '"Graz: sun"'}), ("r2", "recall", {"query": "zebra"}), ("r3", "recall", {})
    )
    lines = (CALLS_WEATHER, ScriptedReply(text="Sun."), recalls, ScriptedReply(text="It said sun."))
    conversation = lamella.open("memory:", model="scripted:x", provider=ScriptedProvider(*lines)).chat(
        "tools", layout=layout
    )
    collect(conversation, "Weather?", tools=[weather, conversation.recall_tool])
    outputs = [event.output.output for event in collect(conversation, "What was it?") if event.output]
    assert ("Graz: sun" in outputs[0].splitlines()) == (layout == "library"), "in_place it still stands in the prompt"
    assert outputs[1].startswith("Nothing found: nothing that left the prompt fits 'zebra'.")
    assert outputs[2] == "recall takes a query, which is a text."
    assert [record.reply.text for record in conversation.turns() if record.reply] == ["Sun.", "It said sun."]


# One round of three tools; the process dies when the results of the first two are written and the third is running.
KILLED_IN_ROUND = """
import asyncio, json, os, sys
import lamella
from lamella.providers import ToolCall
from lamella.testing import ScriptedReply, ScriptedProvider

url, dies = json.loads(sys.argv[1])
calls = tuple(ToolCall(id=name, name=name, arguments="{}") for name in ("slow", "fast", "faster"))
ran = []

async def fast() -> str:
    "Answers at once."
    ran.append("fast")
    return "fast result"

async def faster() -> str:
    "Answers at once."
    ran.append("faster")
    return "faster result"

async def main():
    lines = [ScriptedReply(text="", calls=calls), ScriptedReply(text="Done.")]
    provider = ScriptedProvider(*lines[dies == "resumes":])
    with lamella.open(url, model="scripted:x", provider=provider) as engine:
        chat = engine.chat("tools")
        seen = asyncio.Event()

        async def slow() -> str:
            "Answers when the others have answered."
            ran.append("slow")
            if dies != "resumes":
                await seen.wait()
            if dies == "dies":
                os._exit(9)
            return "slow result"

        tools = [slow, fast, faster]
        open_calls = [call.id for call in chat.pending_tool_calls]
        came = []
        events = chat.resume(tools=tools) if dies == "resumes" else chat.send("Now?", tools=tools)
        async for event in events:
            if event.output is not None:
                came.append(event.output.call)
                if len(came) == 2:
                    seen.set()
        turn = chat.ask("And now?")
        print(json.dumps([open_calls, sorted(ran), came, [message.to_dict() for message in turn.messages]]))

asyncio.run(main())
"""


def run_killed(url: str, dies: str) -> list[object]:
    order = preloaded.Order(
        program=KILLED_IN_ROUND,
        words=[json.dumps([url, dies])],
        environment=dict(os.environ),
        folder=str(preloaded.ROOT),
    )
    done = preloaded.run(order, seconds=SECONDS)
    assert done.exit == (9 if dies == "dies" else 0), done.err
    return json.loads(done.out) if done.out else []


def test_crash_in_a_tool_round_loses_only_unfinished_results(tmp_path: Path) -> None:
    whole = run_killed(f"sqlite:///{tmp_path}/whole.db", "runs")
    assert whole[:3] == [[], ["fast", "faster", "slow"], ["fast", "faster", "slow"]]
    cut = f"sqlite:///{tmp_path}/cut.db"
    assert run_killed(cut, "dies") == []
    resumed = run_killed(cut, "resumes")
    assert resumed[:3] == [["slow"], ["slow"], ["slow"]]
    assert mask_results(json.dumps(resumed[3])) == mask_results(json.dumps(whole[3]))
