"""The requests of every runner, scene by scene and in every layout, as whole message arrays.

A runner that is added to the registry is played here without a word, and ``python -m tests.golden.regenerate`` writes
its files. Scenes are the same for all: where two files differ, the runners do.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.runner_provider import NO_PLAN, Speaker
from tests.unit.conversation.backends import Ticking, make_backend
from tests.unit.pictures import png

from lamella.attach import ActiveNote, Attachment, Image, Note, Selection, Tool
from lamella.conversation.conversation import Conversation
from lamella.conversation.runner_context import RunnerContext, RunRequest, start_run
from lamella.conversation.tool_executor import LocalToolset
from lamella.conversation.turn import TurnRequest
from lamella.conversation.turn_runner import SendContext
from lamella.ports import ProjectFolder
from lamella.providers import Message, ModelRequest, ToolCall
from lamella.runners.registry import RUNNERS
from lamella.stores.memory import InMemoryStore
from lamella.testing import ScriptedReply
from lamella.wiring import open_note_index

HERE = Path(__file__).parent / "expected"
LAYOUTS = ("library", "in_place", "auto")
MODEL = "anthropic:claude-opus-5-5"
NOTES = {
    "beans.md": "# Beans\n\nThe beans were sown in May, beside the wall.\n",
    "frost.md": "# Frost\n\nThe last frost was on the 3rd of May.\n",
}
PROJECT = ProjectFolder(
    name="garden",
    source_mtimes=dict.fromkeys(NOTES, 0.0),
    folders={".": 0.0},
    instructions="Give lengths in metres.",
    memory="The wall faces south.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Questions, each with what is attached to it, and what the model says to all of them, one line after the other.

    ``aside`` is what it says to whatever is asked beside the conversation. ``stages`` are what is written down in the
    stages of a workflow, one after each answer, which is approved then; an empty one goes back to the first.
    """

    questions: tuple[tuple[str, tuple[Attachment, ...]], ...]
    lines: tuple[ScriptedReply | str, ...]
    equipped: bool = False
    aside: str = NO_PLAN
    stages: tuple[Mapping[str, str], ...] = ()


def _call(number: int, name: str, arguments: str) -> ToolCall:
    return ToolCall(id=f"c{number}", name=name, arguments=arguments)


def _chapter(number: int) -> Note:
    return Note(path=f"book/{number}.md", text=f"# Chapter {number}\n\n" + f"Of the year {number} much is told. " * 40)


_ROUNDS = (
    ScriptedReply(
        text="Let me look.", calls=(_call(1, "search_notes", '{"query": "beans"}'), _call(2, "weather", "{}"))
    ),
    ScriptedReply(calls=(_call(3, "search_notes", '{"query": "Beans"}'), _call(4, "tides", "{}"))),
)
_BEANS = Note(path="beans.md", text=NOTES["beans.md"])
_PICTURE = Image(data=png(4, 3), title="The bed")
SCENES = {
    "plain": Scene(questions=(("When are beans sown?", ()), ("And peas?", ())), lines=("In May.", "In March.")),
    "heavy": Scene(
        questions=(
            ("What is in these?", tuple(_chapter(number) for number in range(3))),
            ("And in these?", (_chapter(1), _chapter(3), Selection(path="plan.md", lines=(1, 2), text="Dig first."))),
            ("So?", ()),
        ),
        lines=("Years.", "More years.", "Years it is."),
    ),
    "tools": Scene(
        questions=(("When are beans sown?", (_BEANS,)), ("Thanks. And peas?", ())),
        lines=(*_ROUNDS, "In May.", "In March."),
        equipped=True,
        aside='[{"tool": "search_notes", "arguments": {"query": "beans"}}]',
    ),
    "images": Scene(
        questions=(("What is this?", (_PICTURE,)), ("And there?", (ActiveNote(path="beans.md", text="# Beans\n"),))),
        lines=("A bed.", "Beans."),
    ),
    "composer": Scene(
        questions=(("@composer Write beans.md anew, shorter.", (_BEANS,)), ("@vault what about frost?", ())),
        lines=("Shorter it is.", "On the 3rd of May."),
    ),
    "mixed": Scene(
        questions=tuple((f"Question {number}?", (_BEANS,) if number % 2 else ()) for number in range(2 * len(RUNNERS))),
        lines=tuple(f"Answer {number}." for number in range(2 * len(RUNNERS))),
    ),
    "stages": Scene(
        questions=(
            ("What is the problem?", (_BEANS,)),
            ("And how is it today?", (Note(path="frost.md", text=NOTES["frost.md"]),)),
            ("Which ways are there?", ()),
            ("Was that the problem?", (_BEANS,)),
        ),
        lines=("Frost.", *_ROUNDS, "By hand.", "Two.", "It was."),
        stages=({"problem": "Frost takes the beans.", "goals": "Beans in July."}, {"state": "By hand."}, {}),
    ),
}
MIXED, STAGES, STAGED = "mixed", "stages", "staged"
WORKFLOW, FIRST_STAGE = "rfc", "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A scene as runners play it, in turn, in a layout."""

    scene: str
    layout: str
    runners: tuple[str, ...]

    def __str__(self) -> str:
        who = () if self.scene == MIXED else self.runners
        return ".".join((self.scene, *who, self.layout))

    @property
    def expected(self) -> Path:
        return HERE / f"{self}.txt"


def every_play() -> Iterator[Play]:
    for layout in LAYOUTS:
        for scene in SCENES:
            for runner in _list_runners(scene):
                yield Play(scene=scene, layout=layout, runners=(runner,))
        yield Play(scene=MIXED, layout=layout, runners=(*RUNNERS, *reversed(tuple(RUNNERS))))


def _list_runners(scene: str) -> Iterable[str]:
    """Who plays a scene alone: everybody, or whoever works in stages."""
    return {MIXED: (), STAGES: (STAGED,)}.get(scene, RUNNERS)


def perform(play: Play) -> str:
    """Every request of a play, in the order in which they were sent."""
    with TemporaryDirectory() as folder:
        for name, text in NOTES.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        with open_note_index(Path(folder)) as notes:
            place = RunnerContext(
                make_tools=lambda _chat: _TOOLS, note_index=notes, read_project=lambda: PROJECT, supports_tools=bool
            )
            return asyncio.run(_perform(play, place))


async def _perform(play: Play, place: RunnerContext) -> str:
    scene = SCENES[play.scene]
    speaker = Speaker(*scene.lines, aside=scene.aside)
    chat = Conversation.open(
        make_backend(InMemoryStore()), "golden", {"model": MODEL, "layout": play.layout, **_SYSTEM}
    )
    send_context = SendContext(
        provider=speaker,  # type: ignore[arg-type]
        clock=Ticking(),
        sleep=asyncio.sleep,
        jitter=lambda: 0.0,
        model=MODEL,
    )
    toolbox = LocalToolset([_WEATHER]) if scene.equipped else None
    if scene.stages:
        chat.start_workflow(WORKFLOW)
    for number, (text, attach) in enumerate(scene.questions):
        turn_request = TurnRequest(
            text=text,
            attach=tuple(one.to_artifact() for one in attach),
            tools=toolbox.definitions if toolbox is not None and number == 0 else None,
            runner=play.runners[number % len(play.runners)],
        )
        run_request = RunRequest(
            conversation=chat,
            turn_request=turn_request,
            send_context=send_context,
            toolset=toolbox,
            runner_context=place,
            runners=RUNNERS,
        )
        async with aclosing(start_run(run_request, default="chat")) as events:
            async for _ in events:
                pass
        if number < len(scene.stages):
            _finish_stage(chat, scene.stages[number])
    return "".join(_show(number, request) for number, request in enumerate(speaker.heard, start=1))


def _finish_stage(chat: Conversation, fields: Mapping[str, str]) -> None:
    if not fields:
        chat.rewind_to_stage(FIRST_STAGE)
        return
    chat.write_stage(fields)
    chat.submit_stage()
    chat.approve_stage("So be it.")


_SYSTEM = {"system": "You are terse."}


def _show(number: int, request: ModelRequest) -> str:
    beside = " (beside the conversation)" if request.conversation is None else ""
    tools = f"\n[tools: {', '.join(tool.name for tool in request.tools)}]" if request.tools else ""
    return f"===== request {number}{beside}{tools}\n" + "".join(_show_message(message) for message in request.messages)


def _show_message(message: Message) -> str:
    call = f" for {message.call_id}{', failed' if message.failed else ''}" if message.call_id else ""
    pictures = f" [{len(message.images)} picture]" if message.images else ""
    calls = "".join(f"\n> {call.id} {call.name}({call.arguments})" for call in message.calls)
    return f"--- {message.role}{call}{pictures}\n{message.text}{calls}\n"


def _give(text: str) -> Callable[..., str]:
    return lambda **_: text


def _tool(name: str, description: str, *, takes: Sequence[str] = (), gives: str) -> Tool:
    properties = {one: {"type": "string"} for one in takes}
    parameters = {"type": "object", "properties": properties, "required": list(takes)}
    return Tool(name=name, description=description, parameters=parameters, run=_give(gives))


_WEATHER = _tool("weather", "The weather.", gives="12 degrees, dry")
_TOOLS = (
    _tool("read_note", "Reads a note.", takes=("path",), gives=NOTES["beans.md"]),
    _tool("search_notes", "Searches the notes.", takes=("query",), gives="beans.md: sown in May, beside the wall."),
)
