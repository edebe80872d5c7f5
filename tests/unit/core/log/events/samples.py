"""Samples of every value that a conversation may contain, with one time for all."""

from decimal import Decimal

from lamella.core.artifacts.kinds import (
    make_artifact,
    make_image_artifact,
    make_image_data,
    make_tool_definition,
    make_tool_result,
)
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, AttachmentPolicy
from lamella.core.log.call import (
    CacheOutcome,
    CacheUsage,
    CacheVerdict,
    CallTiming,
    ModelCall,
    PrefixChange,
    PrefixChangeCause,
    TurnInputCost,
)
from lamella.core.log.receipts import CompactionReceipt, CompactionStep, CompactionStepName, SkippedStep
from lamella.core.log.turn import (
    CarryForwardMode,
    HistoryChangeReason,
    HistoryMode,
    ImageNoteMode,
    LayoutMode,
    SystemParts,
    Turn,
    TurnSettings,
)
from lamella.core.messages import CacheDiagnosis, Usage
from lamella.core.values import replace

AT = "2026-03-01T12:00:00Z"
_PIXELS = b"\x89PNG\r\n\x1a\nnot really"
PICTURE = make_image_data(_PIXELS, media_type="image/png", width=2, height=3)


def note(name: str, text: str, kind: ArtifactKind = ArtifactKind.NOTE) -> Artifact:
    return make_artifact(kind, text=text, source=ArtifactSource(path=name))


SELECTED = make_artifact(
    ArtifactKind.SELECTED_TEXT,
    text="a \u2013 b",
    source=ArtifactSource(path="dir/a.md", lines=(3, 9), via="folder:dir"),
    policy=AttachmentPolicy.PIN,
)
PICTURED = make_artifact(
    ArtifactKind.ACTIVE_NOTE, text="![[p.png]]", source=ArtifactSource(path="p.md"), images=[PICTURE]
)
PAGE = make_artifact(
    ArtifactKind.URL, text="Ünïcode 🦉\u0000\u2028", source=ArtifactSource(url="https://example.org/?q=1&r=2")
)
CONDENSED = replace(note("long.md", "long " * 50), condensed="It is long.")
FOUND = make_tool_result("search", arguments={"q": "zebra", "n": 3}, output="two zebras")

PLAIN = Turn(text="hi", typed="hi")
FULL = Turn(
    text='Say "hi"\n\tto A — and to\x7f🦉',
    typed="Say {hi}",
    attached=(SELECTED, PICTURED, PAGE, CONDENSED, make_image_artifact(PICTURE)),
    tool_results=(FOUND,),
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
    turn_settings=TurnSettings(
        layout=LayoutMode.IN_PLACE,
        carry_forward=CarryForwardMode.PREVIEW,
        history=HistoryMode.STRIP,
        history_turns=4,
        image_notes=ImageNoteMode.TEXT,
    ),
    history_summary="They spoke before.",
    history_rewrite=HistoryChangeReason.BRANCH,
    warnings=("one", "two"),
)
TURNS = {
    "plain": PLAIN,
    "full": FULL,
    "no tools": Turn(text="", typed="", tools=()),
    "empty system": Turn(text="x", typed="x", system=SystemParts()),
    "drawn": Turn(text="x", typed="x", system=SystemParts(base="B.", memory="M.")),
}
CALL = ModelCall(
    model="openai:gpt-5",
    verdict=CacheVerdict(
        outcome=CacheOutcome.PREFIX_CHANGED,
        prefix_change=PrefixChange(cause=PrefixChangeCause.ARTIFACT_UPDATED, segment="a.md"),
    ),
    predicted=CacheUsage(read=0, write=5, uncached=10**7),
    usage=Usage(plain=1, read=0, write=3, write_long=4, output=5, reasoning=2, fault="odd"),
    by_layer={"L1_SYSTEM": 3, "L5_USER": 0},
    cost=TurnInputCost(amount=Decimal("0.00010"), naive=Decimal("1E-7"), limit=Decimal(0)),
    billed=Decimal("12.50"),
    timing=CallTiming(build=0.25, first=1e-7, total=12.0),
    stop="end",
    id="resp_1",
    diagnosis=CacheDiagnosis(verdict="miss"),
    retries=2,
)
BARE_CALL = ModelCall(
    model=None,
    verdict=CacheVerdict(outcome=CacheOutcome.FIRST, prefix_change=PrefixChange(cause=PrefixChangeCause.NONE)),
    usage=Usage(),
)
RECEIPT = CompactionReceipt(
    id="r1",
    parent="m9",
    steps=(
        CompactionStep(name=CompactionStepName.HANDLE, removed=("a.md",), tokens_before=90, tokens_after=60),
        CompactionStep(
            name=CompactionStepName.SUMMARY,
            removed=("m1", "m2"),
            text="<conversation_summary>\n…",
            content="They talked.",
            tokens_before=60,
            tokens_after=40,
        ),
    ),
    skipped=(SkippedStep(name=CompactionStepName.EXPENDABLE, why="nothing \u2013 left"),),
    tokens_before=100,
    tokens_after=40,
    target=50,
    automatic=False,
)
SETTINGS = {"layout": "library", "window": 9, "trigger": 0.85, "model": None, "steps": ["handle", "summary"]}
