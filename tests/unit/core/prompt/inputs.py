"""Any turn that could be asked: every kind of attachment, results, system prompts with notes drawn in, tools."""

from hypothesis import strategies as st
from tests.unit.pictures import png

from lamella.core.artifacts.make import (
    make_artifact,
    make_image,
    make_image_value,
    make_tool_definition,
    make_tool_result,
)
from lamella.core.artifacts.model import Artifact, Image, Kind, Policy, Source
from lamella.core.log.events.imprint import Imprint
from lamella.core.log.events.reply import CitedSource
from lamella.core.log.terms import CarryForward, History, ImageNotes, Layout, Rewrite, Terms
from lamella.core.log.turn import SystemParts, Turn

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
policies = st.sampled_from((None, *Policy))
_FILES = (Kind.NOTE, Kind.ACTIVE_NOTE, Kind.PDF, Kind.OFFICE, Kind.CANVAS, Kind.CODE)
_PAGES = (Kind.URL, Kind.WEB_TAB, Kind.YOUTUBE)
_PARTS = (Kind.DATAVIEW, Kind.SELECTED_TEXT, Kind.WEB_SELECTION, Kind.PASSAGE, Kind.INSTRUCTION)
_ATTACHED = (*_FILES, *_PAGES, *_PARTS, Kind.UNKNOWN, Kind.IMAGE)
_LINES = st.none() | st.tuples(st.integers(1, 9), st.integers(9, 99))


@st.composite
def images(draw: st.DrawFn) -> Image:
    width, height = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    return make_image_value(png(width, height), media_type="image/png", width=width, height=height)


@st.composite
def sources(draw: st.DrawFn, kind: Kind) -> Source:
    if kind in _PAGES or kind is Kind.WEB_SELECTION:
        return Source(url=draw(names), via=draw(st.none() | names))
    if kind is Kind.DATAVIEW:
        return Source(path=draw(names), query=draw(names))
    if kind is Kind.PASSAGE:
        return Source(path=draw(names), place=draw(st.none() | names))
    if kind is Kind.SELECTED_TEXT:
        return Source(path=draw(names), lines=draw(_LINES))
    if kind is Kind.INSTRUCTION:
        return Source(path=draw(names.filter(str.strip)))
    return Source() if kind is Kind.UNKNOWN else Source(path=draw(names), via=draw(st.none() | names))


@st.composite
def artifacts(draw: st.DrawFn) -> Artifact:
    """What can be attached, of every kind."""
    kind = draw(st.sampled_from(_ATTACHED))
    if kind is Kind.IMAGE:
        return make_image(draw(images()), title=draw(texts), path=draw(st.none() | names))
    return make_artifact(
        kind,
        text=draw(texts),
        source=draw(sources(kind)),
        title=draw(texts),
        policy=draw(policies),
        images=draw(st.lists(images(), max_size=2)) if kind is Kind.ACTIVE_NOTE else (),
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
    Terms,
    layout=st.sampled_from(Layout),
    carry_forward=st.sampled_from(CarryForward),
    history=st.sampled_from(History),
    history_turns=st.none() | st.integers(1, 9),
    image_notes=st.sampled_from(ImageNotes),
)
imprints = st.builds(
    Imprint,
    renderer=st.integers(0, 9),
    system=texts,
    library=texts,
    prefix=texts,
    whole=texts,
    segments=st.lists(st.integers(0, 9), max_size=5).map(tuple),
    referred=st.integers(0, 9),
    unparsed=st.integers(0, 9),
)
sources_cited = st.builds(CitedSource, id=names, place=texts, span=st.none() | st.tuples(st.just(0), st.integers(0, 9)))
turns = st.builds(
    Turn,
    text=texts,
    typed=texts,
    attached=st.lists(artifacts(), max_size=3).map(tuple),
    results=st.lists(results, max_size=2).map(tuple),
    system=st.none() | prompts,
    tools=st.none() | st.lists(definitions, max_size=2).map(tuple),
    model=st.none() | texts,
    drop=st.lists(texts, max_size=2).map(tuple),
    fold=st.booleans(),
    pinned=st.none() | st.lists(texts, max_size=2).map(tuple),
    imprint=st.none() | imprints,
    terms=terms,
    rewritten=st.sampled_from((None, *Rewrite)),
    warnings=st.lists(texts, max_size=2).map(tuple),
    sources=st.lists(sources_cited, max_size=2).map(tuple),
)
