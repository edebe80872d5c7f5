"""Any turn that could be asked: every kind of attachment, results, system prompts with notes drawn in, tools."""

from hypothesis import strategies as st
from tests.unit.pictures import png

from lamella.core.artifacts.kinds import (
    make_artifact,
    make_image_artifact,
    make_image_data,
    make_tool_definition,
    make_tool_result,
)
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, AttachmentPolicy, ImageData
from lamella.core.log.turn import (
    CarryForwardMode,
    HistoryChangeReason,
    HistoryMode,
    ImageNoteMode,
    LayoutMode,
    RequestFingerprint,
    StoredCitation,
    SystemParts,
    Turn,
    TurnSettings,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
policies = st.sampled_from((None, *AttachmentPolicy))
_FILES = (
    ArtifactKind.NOTE,
    ArtifactKind.ACTIVE_NOTE,
    ArtifactKind.PDF,
    ArtifactKind.OFFICE,
    ArtifactKind.CANVAS,
    ArtifactKind.CODE,
)
_PAGES = (ArtifactKind.URL, ArtifactKind.WEB_TAB, ArtifactKind.YOUTUBE)
_PARTS = (
    ArtifactKind.DATAVIEW,
    ArtifactKind.SELECTED_TEXT,
    ArtifactKind.WEB_SELECTION,
    ArtifactKind.PASSAGE,
    ArtifactKind.INSTRUCTION,
)
_ATTACHED = (*_FILES, *_PAGES, *_PARTS, ArtifactKind.UNKNOWN, ArtifactKind.IMAGE)
_LINES = st.none() | st.tuples(st.integers(1, 9), st.integers(9, 99))


@st.composite
def images(draw: st.DrawFn) -> ImageData:
    width, height = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    return make_image_data(png(width, height), media_type="image/png", width=width, height=height)


@st.composite
def sources(draw: st.DrawFn, kind: ArtifactKind) -> ArtifactSource:
    if kind in _PAGES or kind is ArtifactKind.WEB_SELECTION:
        return ArtifactSource(url=draw(names), via=draw(st.none() | names))
    if kind is ArtifactKind.DATAVIEW:
        return ArtifactSource(path=draw(names), query=draw(names))
    if kind is ArtifactKind.PASSAGE:
        return ArtifactSource(path=draw(names), place=draw(st.none() | names))
    if kind is ArtifactKind.SELECTED_TEXT:
        return ArtifactSource(path=draw(names), lines=draw(_LINES))
    if kind is ArtifactKind.INSTRUCTION:
        return ArtifactSource(path=draw(names.filter(str.strip)))
    return (
        ArtifactSource()
        if kind is ArtifactKind.UNKNOWN
        else ArtifactSource(path=draw(names), via=draw(st.none() | names))
    )


@st.composite
def artifacts(draw: st.DrawFn) -> Artifact:
    """What can be attached, of every kind."""
    kind = draw(st.sampled_from(_ATTACHED))
    if kind is ArtifactKind.IMAGE:
        return make_image_artifact(draw(images()), title=draw(texts), path=draw(st.none() | names))
    return make_artifact(
        kind,
        text=draw(texts),
        source=draw(sources(kind)),
        title=draw(texts),
        policy=draw(policies),
        images=draw(st.lists(images(), max_size=2)) if kind is ArtifactKind.ACTIVE_NOTE else (),
    )


# A tool is called by its name, so that says something.
tool_names = names.filter(str.strip)
results = st.builds(
    lambda name, output, value: make_tool_result(name, arguments={"q": value}, output=output), tool_names, texts, texts
)
definitions = st.builds(
    lambda name, description: make_tool_definition(name, description=description, parameters={"type": "object"}),
    tool_names,
    texts,
)
prompts = st.builds(
    SystemParts,
    base=texts,
    instructions=texts,
    project=texts,
    memory=texts,
    inlined=st.lists(artifacts(), max_size=2).map(tuple),
    typed_instructions=texts,
)
terms = st.builds(
    TurnSettings,
    layout=st.sampled_from(LayoutMode),
    carry_forward=st.sampled_from(CarryForwardMode),
    history=st.sampled_from(HistoryMode),
    history_turns=st.none() | st.integers(1, 9),
    image_notes=st.sampled_from(ImageNoteMode),
)
imprints = st.builds(
    RequestFingerprint,
    renderer=st.integers(0, 9),
    system=texts,
    library=texts,
    prefix=texts,
    whole=texts,
    segments=st.lists(st.integers(0, 9), max_size=5).map(tuple),
    referred=st.integers(0, 9),
    unparsed=st.integers(0, 9),
)
sources_cited = st.builds(
    StoredCitation, id=names, place=texts, span=st.none() | st.tuples(st.just(0), st.integers(0, 9))
)
turns = st.builds(
    Turn,
    text=texts,
    typed=texts,
    attached=st.lists(artifacts(), max_size=3).map(tuple),
    tool_results=st.lists(results, max_size=2).map(tuple),
    system=st.none() | prompts,
    tools=st.none() | st.lists(definitions, max_size=2).map(tuple),
    model=st.none() | texts,
    drop=st.lists(texts, max_size=2).map(tuple),
    fold=st.booleans(),
    pinned=st.none() | st.lists(texts, max_size=2).map(tuple),
    fingerprint=st.none() | imprints,
    turn_settings=terms,
    history_rewrite=st.sampled_from((None, *HistoryChangeReason)),
    warnings=st.lists(texts, max_size=2).map(tuple),
    sources=st.lists(sources_cited, max_size=2).map(tuple),
)
