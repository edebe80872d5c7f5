"""One attachment in three languages: as the truth knows it, as the library takes it, as a transcript writes it."""

from base64 import b64encode
from dataclasses import dataclass

from tests.invariants.expected_history import Fact, digest, id_of
from tests.invariants.strategies import PAGE_KINDS, SELECTION_KINDS, TAGGED, Attach, Thing
from tests.invariants.texts import Version, end_marker, normalised, start_marker, write_text
from tests.unit.pictures import claim_size

from lamella import (
    ActiveNote,
    Canvas,
    Code,
    Dataview,
    Image,
    Note,
    Office,
    Pdf,
    Selection,
    ToolResult,
    Unknown,
    Url,
    WebTab,
    YouTube,
)
from lamella.attach import Attachment

EMBEDDED = "dot.png"
Entry = dict[str, object]

_FILES = {"note": Note, "pdf": Pdf, "office": Office, "canvas": Canvas, "code": Code}
_PAGES = {"url": Url, "web_tab": WebTab, "youtube": YouTube}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A thing in one of its versions, as one turn attaches it."""

    thing: Thing
    version: Version
    attach: Attach

    @property
    def kind(self) -> str:
        return self.thing.kind

    @property
    def policy(self) -> str | None:
        """Tool results, pictures and unknown blocks take none in the library."""
        return None if self.kind in ("tool", "image", "unknown") else self.attach.policy

    @property
    def active(self) -> bool:
        return self.kind == "note" and self.attach.active

    @property
    def raw(self) -> str:
        return raw_text(self.thing, self.version)

    @property
    def picture(self) -> bytes:
        return png(self.thing.key, self.version.edit)


def raw_text(thing: Thing, version: Version) -> str:
    """A thing's text as its source has it."""
    first = f"![[{EMBEDDED}]]" if thing.pictured else "Filed under #red." if thing.name in TAGGED else ""
    return write_text(thing.words, key=thing.key, version=version, first=first)


def png(width: int, height: int) -> bytes:
    """A PNG that says that it has this size, plus one; other sizes give other bytes."""
    return claim_size(width + 1, height + 1)


def fact_of(item: Item) -> Fact:
    """What the truth knows of it."""
    thing, is_image = item.thing, item.kind == "image"
    text = "" if is_image else normalised(item.raw)
    return Fact(
        id=f"sha256:{digest(item.picture)}" if is_image else id_of(thing, text),
        kind=item.kind,
        name=thing.name,
        text=text,
        head=start_marker(thing.key, item.version),
        tail=end_marker(thing.key, item.version),
        policy=item.policy,
        active=item.active,
        pictured=thing.pictured,
        picture=item.picture if is_image else None,
    )


def attachment_of(item: Item) -> Attachment:
    """What the library takes."""
    thing, kind, policy = item.thing, item.kind, item.policy
    if kind in _FILES:
        made = ActiveNote if item.active else _FILES[kind]
        return made(path=thing.name, text=None if thing.in_vault else item.raw, policy=policy)
    if kind in _PAGES:
        return _PAGES[kind](url=thing.name, text=item.raw, policy=policy)
    match kind:
        case "dataview":
            return Dataview(path=thing.name, query=thing.query, text=item.raw, policy=policy)
        case "selected_text":
            return Selection(path=thing.name, lines=thing.lines, text=item.raw, policy=policy)
        case "web_selection":
            return Selection(url=thing.name, lines=thing.lines, text=item.raw, policy=policy)
        case "image":
            return Image(data=item.picture)
    return Unknown(text=item.raw)


def result_of(item: Item) -> ToolResult:
    """A tool's call and its result."""
    return ToolResult(name="search", arguments=call_arguments(item.thing), output=item.raw)


def entry_of(item: Item) -> Entry:
    """What a transcript writes."""
    thing, kind = item.thing, item.kind
    if kind == "tool":
        return {"name": "search", "arguments": call_arguments(thing), "output": item.raw}
    entry: Entry = {"kind": "active_note" if item.active else kind}
    if item.policy:
        entry["policy"] = item.policy
    if kind == "image":
        return entry | {"data": b64encode(item.picture).decode(), "media_type": "image/png"}
    if kind != "unknown":
        entry["url" if kind in PAGE_KINDS or kind == "web_selection" else "path"] = thing.name
    if kind in SELECTION_KINDS and thing.lines:
        entry["lines"] = list(thing.lines)
    if thing.query:
        entry["query"] = thing.query
    return entry if thing.in_vault else entry | {"text": item.raw}


def call_arguments(thing: Thing) -> dict[str, object]:
    return {"q": thing.name, "a": thing.key}
