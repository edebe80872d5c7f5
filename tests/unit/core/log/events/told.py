"""What a conversation may hold, value by value, with the moment that all of it happened at."""

from decimal import Decimal

from lamella.core.artifacts.make import (
    make_artifact,
    make_image,
    make_image_value,
    make_tool_definition,
    make_tool_result,
)
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source
from lamella.core.log.call import CacheUse, Call, Cause, Cost, Movement, Outcome, Timing, Verdict
from lamella.core.log.receipt import Receipt, Skip, Step, StepName
from lamella.core.log.terms import CarryForward, History, ImageNotes, Layout, Rewrite, Terms
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.messages.delta import Diagnosis
from lamella.core.messages.usage import Usage
from lamella.core.values import replace

AT = "2026-03-01T12:00:00Z"
_PIXELS = b"\x89PNG\r\n\x1a\nnot really"
PICTURE = make_image_value(_PIXELS, media_type="image/png", width=2, height=3)


def note(name: str, text: str, kind: Kind = Kind.NOTE) -> Artifact:
    return make_artifact(kind, text=text, source=Source(path=name))


SELECTED = make_artifact(
    Kind.SELECTED_TEXT,
    text="a \u2013 b",
    source=Source(path="dir/a.md", lines=(3, 9), via="folder:dir"),
    policy=Policy.PIN,
)
PICTURED = make_artifact(Kind.ACTIVE_NOTE, text="![[p.png]]", source=Source(path="p.md"), images=[PICTURE])
PAGE = make_artifact(Kind.URL, text="Ünïcode 🦉\u0000\u2028", source=Source(url="https://example.org/?q=1&r=2"))
CONDENSED = replace(note("long.md", "long " * 50), condensed="It is long.")
FOUND = make_tool_result("search", arguments={"q": "zebra", "n": 3}, output="two zebras")

PLAIN = Turn(text="hi", typed="hi")
FULL = Turn(
    text='Say "hi"\n\tto A — and to\x7f🦉',
    typed="Say {hi}",
    attached=(SELECTED, PICTURED, PAGE, CONDENSED, make_image(PICTURE)),
    results=(FOUND,),
    system=SystemParts(
        base="B.",
        guidelines="G.",
        instructions="Use A.",
        project="P.",
        workflow="W.",
        memory="M.",
        inlined=(note("drawn.md", "A"),),
        typed_instructions="Use {[[drawn]]}.",
    ),
    tools=(make_tool_definition("search", description="Finds.", parameters={"type": "object", "a": [1, 2.5]}),),
    model="anthropic:claude",
    drop=("old.md", "older.md"),
    fold=True,
    terms=Terms(
        layout=Layout.IN_PLACE,
        carry_forward=CarryForward.PREVIEW,
        history=History.STRIP,
        history_turns=4,
        image_notes=ImageNotes.TEXT,
    ),
    strip="They spoke before.",
    rewritten=Rewrite.BRANCH,
    warnings=("one", "two"),
)
TURNS = {
    "plain": PLAIN,
    "full": FULL,
    "no tools": Turn(text="", typed="", tools=()),
    "empty system": Turn(text="x", typed="x", system=SystemParts()),
    "drawn": Turn(text="x", typed="x", system=SystemParts(base="B.", memory="M.")),
}
CALL = Call(
    model="openai:gpt-5",
    verdict=Verdict(outcome=Outcome.MOVED, movement=Movement(cause=Cause.ARTIFACT_UPDATED, segment="a.md")),
    predicted=CacheUse(read=0, write=5, uncached=10**7),
    usage=Usage(plain=1, read=0, write=3, write_long=4, output=5, reasoning=2, fault="odd"),
    by_layer={"L1_SYSTEM": 3, "L5_USER": 0},
    cost=Cost(amount=Decimal("0.00010"), naive=Decimal("1E-7"), limit=Decimal(0)),
    billed=Decimal("12.50"),
    timing=Timing(build=0.25, first=1e-7, total=12.0),
    stop="end",
    id="resp_1",
    diagnosis=Diagnosis(verdict="miss"),
    retries=2,
)
BARE_CALL = Call(model=None, verdict=Verdict(outcome=Outcome.FIRST, movement=Movement(cause=Cause.NONE)), usage=Usage())
RECEIPT = Receipt(
    id="r1",
    parent="m9",
    steps=(
        Step(name=StepName.HANDLE, removed=("a.md",), tokens_before=90, tokens_after=60),
        Step(
            name=StepName.SUMMARY,
            removed=("m1", "m2"),
            text="<conversation_summary>\n…",
            content="They talked.",
            tokens_before=60,
            tokens_after=40,
        ),
    ),
    skipped=(Skip(name=StepName.EXPENDABLE, why="nothing \u2013 left"),),
    tokens_before=100,
    tokens_after=40,
    target=50,
    automatic=False,
)
SETTINGS = {"layout": "library", "window": 9, "trigger": 0.85, "model": None, "steps": ["handle", "summary"]}
