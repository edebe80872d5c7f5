"""Events as JSON: how a turn, a reply and what happens to them are written down, and read back exactly.

An event's body names contents by hash and never holds them; ``Written`` carries the bytes beside the records.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.json import Decoder
from msgspec.structs import fields

from lamella.core.artifacts.kinds import KINDS
from lamella.core.artifacts.make import canonical_json
from lamella.core.artifacts.model import (
    Artifact,
    ArtifactId,
    Image,
    Kind,
    Policy,
    Source,
    ToolDefinition,
)
from lamella.core.log.fields import as_int, as_list, as_mapping, as_text
from lamella.core.log.records import EventKind, Record, Written
from lamella.core.log.terms import CarryForward, History, Layout, Rewrite, Terms
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.text.content import encode_text, hash_text

Body = Mapping[str, object]
Contents = Mapping[str, bytes]

_DECODER = Decoder(dict[str, object])
LAYOUTS: Mapping[object, Layout | None] = {None: None, **{layout.value: layout for layout in Layout}}
CARRIES: Mapping[object, CarryForward | None] = {None: None, **{carry.value: carry for carry in CarryForward}}
_HISTORIES: Mapping[object, History | None] = {None: None, **{mode.value: mode for mode in History}}
_SOURCE_FIELDS = ("path", "url", "query", "lines", "tool", "arguments", "via")
# Read in one look each: a conversation may have thousands of attachments, and finding a member takes its time.
_SPECS = {kind.value: (kind, spec) for kind, spec in KINDS.items()}
_IMAGE = Kind.IMAGE


def write_message(turn: Turn, *, message_id: str, parent: str, at: str, edits: str | None = None) -> Written:
    """The event of a message asked, or of one that replaces another."""
    body: dict[str, object] = {"id": message_id, "parent": parent, **write_turn(turn)}
    if edits is not None:
        body["target"] = edits
    contents = gather_contents((*turn.results, *turn.attached))
    if turn.strip is not None:
        contents[hash_text(turn.strip)] = encode_text(turn.strip)
    if turn.system is not None and turn.system.inlined:
        contents.update(gather_contents(turn.system.inlined))
        contents[hash_text(turn.system.instructions)] = encode_text(turn.system.instructions)
    kind = EventKind.MESSAGE if edits is None else EventKind.EDIT
    record = Record(kind=kind, at=at, body=canonical_json(body), contents=tuple(contents))
    return Written(records=(record,), contents=contents)


def write_event(kind: EventKind, at: str, **body: object) -> Written:
    """An event that brings no contents."""
    return Written(records=(Record(kind=kind, at=at, body=canonical_json(body)),))


def write_erasure(artifact: str, hashes: Sequence[str], *, at: str) -> Written:
    """The event that says an artifact was erased, and which contents went with it."""
    body = canonical_json({"artifact": artifact})
    return Written(records=(Record(kind=EventKind.ERASURE, at=at, body=body, contents=tuple(hashes)),))


def gather_contents(artifacts: Iterable[Artifact]) -> dict[str, bytes]:
    """The bytes behind artifacts, by hash: their texts and pictures."""
    contents: dict[str, bytes] = {}
    for artifact in artifacts:
        if artifact.kind is not Kind.IMAGE:
            contents[artifact.hash] = encode_text(artifact.text)
        if artifact.condensed is not None:
            contents[hash_text(artifact.condensed)] = encode_text(artifact.condensed)
        contents.update((image.hash, image.data) for image in artifact.images)
    return contents


_OPEN_TERMS: Mapping[str, object] = {"image_notes": None, "history": None}


def write_open_turn(turn: Turn) -> dict[str, object]:
    """A turn of another program as a body: its terms are left to the settings under which it goes on."""
    named = {field.name for field in fields(Terms)}
    return {**{name: value for name, value in write_turn(turn).items() if name not in named}, **_OPEN_TERMS}


def write_turn(turn: Turn) -> dict[str, object]:
    """A turn as a body; what is as it was is left out."""
    body: dict[str, object] = {"text": turn.text}
    optional: dict[str, object] = {
        "typed": turn.typed if turn.typed != turn.text else None,
        "attached": [write_artifact(artifact) for artifact in turn.attached],
        "results": [write_artifact(artifact) for artifact in turn.results],
        "system": None if turn.system is None else _write_system(turn.system),
        "tools": None if turn.tools is None else [[t.name, t.description, t.parameters] for t in turn.tools],
        "model": turn.model,
        "drop": list(turn.drop),
        "fold": turn.fold,
        "layout": turn.terms.layout,
        "carry_forward": turn.terms.carry_forward,
        "history": None if turn.terms.history is History.FULL else turn.terms.history,
        "history_turns": turn.terms.history_turns,
        "strip": None if turn.strip is None else hash_text(turn.strip),
        "image_notes": turn.terms.image_notes,
        "rewritten": turn.rewritten,
        "warnings": list(turn.warnings),
    }
    body.update((name, value) for name, value in optional.items() if value not in (None, False, []))
    if turn.tools == ():
        body["tools"] = []
    return body


def read_terms(body: Body, usual: Terms) -> Terms:
    """The terms that a body names; what it leaves open, as older ones do, is as usual."""
    history = _HISTORIES[body.get("history", History.FULL.value)]
    turns = None if body.get("history_turns") is None else as_int(body["history_turns"])
    image_notes = body.get("image_notes", False)
    return Terms(
        layout=LAYOUTS[body.get("layout")] or usual.layout,
        carry_forward=CARRIES[body.get("carry_forward")] or usual.carry_forward,
        history=history or usual.history,
        history_turns=turns if history else usual.history_turns,
        image_notes=usual.image_notes if image_notes is None else bool(image_notes),
    )


def read_turn(body: Body, contents: Contents, *, usual: Terms, message_id: str | None = None) -> Turn:
    """The turn a body describes; artifacts whose contents were erased are left out, and said."""
    attached, results, erased = read_attached(body, contents)
    tools = body.get("tools")
    return Turn(
        text=as_text(body["text"]),
        typed=as_text(body.get("typed", body["text"])),
        id=message_id,
        attached=attached,
        results=results,
        system=_read_system(body["system"], contents) if "system" in body else None,
        tools=None if tools is None else tuple(_read_tool(tool) for tool in as_list(tools)),
        model=None if body.get("model") is None else as_text(body["model"]),
        drop=tuple(as_text(name) for name in as_list(body.get("drop"))),
        fold=bool(body.get("fold")),
        terms=read_terms(body, usual),
        strip=_read_kept(body, "strip", contents),
        rewritten=None if body.get("rewritten") is None else Rewrite(as_text(body["rewritten"])),
        warnings=(*(as_text(warning) for warning in as_list(body.get("warnings"))), *erased),
    )


def read_attached(body: Body, contents: Contents) -> tuple[tuple[Artifact, ...], tuple[Artifact, ...], tuple[str, ...]]:
    """What a body attaches, its tool results, and words on what of both was erased."""
    attached, gone = _read_artifacts(body.get("attached"), contents)
    results, results_gone = _read_artifacts(body.get("results"), contents)
    return attached, results, tuple(f"{name} was erased and is left out." for name in (*results_gone, *gone))


def write_artifact(artifact: Artifact) -> dict[str, object]:
    """An artifact without its content, which its hash names."""
    source = {name: getattr(artifact.source, name) for name in _SOURCE_FIELDS}
    written: dict[str, object] = {
        "id": artifact.id,
        "kind": artifact.kind.value,
        "title": artifact.title,
        "hash": artifact.hash,
        "source": {name: value for name, value in source.items() if value is not None},
    }
    if artifact.policy is not None:
        written["policy"] = artifact.policy.value
    if artifact.has_images:
        written["has_images"] = True
    if artifact.condensed is not None:
        written["condensed"] = hash_text(artifact.condensed)
    if artifact.images:
        written["images"] = [[i.hash, i.media_type, i.width, i.height] for i in artifact.images]
    return written


def read_artifact(written: Body, contents: Contents) -> Artifact | None:
    """The artifact without its erased pictures, or none if its own content was erased.

    Hashes are taken as written; ``verify`` derives them again.
    """
    kind, spec = _SPECS[as_text(written["kind"])]
    content_hash = as_text(written["hash"])
    images = [_read_image(image, contents) for image in as_list(written.get("images"))]
    if None in images if kind is _IMAGE else content_hash not in contents:
        return None
    source = as_mapping(written["source"])
    lines = source.get("lines")
    return Artifact(
        id=ArtifactId(as_text(written["id"])),
        kind=kind,
        title=as_text(written["title"]),
        text="" if kind is _IMAGE else contents[content_hash].decode(),
        hash=content_hash,
        source=Source(
            **{name: as_text(value) for name, value in source.items() if name != "lines" and name in _SOURCE_FIELDS},
            lines=None if lines is None else (as_int(as_list(lines)[0]), as_int(as_list(lines)[1])),
        ),
        recoverable=spec.recoverable,
        trust=spec.trust,
        policy=None if written.get("policy") is None else Policy(as_text(written["policy"])),
        images=tuple(image for image in images if image is not None),
        has_images=bool(written.get("has_images")),
        condensed=_read_kept(written, "condensed", contents),
    )


def _read_kept(written: Body, field_name: str, contents: Contents) -> str | None:
    """A text that is kept as a content, if it was and still is."""
    data = contents.get(as_text(written[field_name])) if field_name in written else None
    return None if data is None else data.decode()


def named_hashes(body: Body) -> tuple[str, ...]:
    """Every content hash a message's body names."""
    hashes: dict[str, None] = {}
    for ref in _refs(body):
        if ref["kind"] != _IMAGE:
            hashes.setdefault(as_text(ref["hash"]))
        if "condensed" in ref:
            hashes.setdefault(as_text(ref["condensed"]))
        for image in as_list(ref.get("images")):
            hashes.setdefault(as_text(as_list(image)[0]))
    hashes.update((as_text(name), None) for name in (*_drawn(body), *_retold(body)))
    return tuple(hashes)


def referenced_artifacts(body: Body, artifact: str) -> tuple[str, ...]:
    """The hashes of everything a body holds of one artifact: its text, its pictures, instructions that draw it in.

    A picture is also found inside the notes that embed it.
    """
    hashes: dict[str, None] = {}
    for ref in _refs(body):
        images = [as_text(as_list(image)[0]) for image in as_list(ref.get("images"))]
        if ref["id"] == artifact:
            condensed = [as_text(ref["condensed"])] if "condensed" in ref else []
            hashes.update(dict.fromkeys((as_text(ref["hash"]), *condensed, *images)))
        elif artifact in images:
            hashes.setdefault(artifact)
    if any(ref["id"] == artifact for ref in map(as_mapping, as_list(_system(body).get("inlined")))):
        hashes.update((as_text(name), None) for name in _drawn(body))
    return tuple(hashes)


def retold_hashes(body: Body) -> tuple[str, ...]:
    """The hashes of summaries of earlier talk that a body holds: they may tell of anything attached before."""
    return tuple(map(as_text, _retold(body)))


def _refs(body: Body) -> list[Body]:
    """What a body says of artifacts, wherever it does."""
    refs = [*as_list(body.get("attached")), *as_list(body.get("results")), *as_list(_system(body).get("inlined"))]
    return [as_mapping(ref) for ref in refs]


def _system(body: Body) -> Body:
    return as_mapping(body["system"]) if "system" in body else {}


def _retold(body: Body) -> list[object]:
    """Of a turn the summary in its strip, of a compaction what stands in for the messages it took out."""
    steps = [as_mapping(step) for step in as_list(body.get("steps"))]
    told = (step[name] for step in steps for name in ("text", "content") if name in step)
    return [*([body["strip"]] if "strip" in body else []), *told]


def _drawn(body: Body) -> list[object]:
    system = _system(body)
    return [system["drawn"]] if "drawn" in system else []


def parse_body(record: Record) -> Body:
    """A record's body as data."""
    return _DECODER.decode(record.body)


def _write_system(parts: SystemParts) -> dict[str, object]:
    """The system prompt; instructions that draw notes in are a content of their own, which can be erased with them."""
    written: dict[str, object] = dict(parts.named())
    written["typed_instructions"] = parts.typed_instructions
    written["inlined"] = [write_artifact(artifact) for artifact in parts.inlined]
    if parts.inlined:
        written.pop("instructions", None)
        written["drawn"] = hash_text(parts.instructions)
    return {name: value for name, value in written.items() if value not in ("", [])}


def _read_system(written: object, contents: Contents) -> SystemParts:
    """The system prompt; instructions whose text was erased stand as they were typed."""
    fields = as_mapping(written)
    parts = {name: as_text(value) for name, value in fields.items() if name not in ("inlined", "drawn")}
    if "drawn" not in fields:
        return SystemParts(**parts, inlined=())
    drawn = contents.get(as_text(fields["drawn"]))
    if drawn is None:
        return SystemParts(**{**parts, "instructions": parts.get("typed_instructions", "")}, inlined=())
    inlined, _ = _read_artifacts(fields.get("inlined"), contents)
    return SystemParts(**{**parts, "instructions": drawn.decode()}, inlined=inlined)


def _read_artifacts(written: object, contents: Contents) -> tuple[tuple[Artifact, ...], list[str]]:
    found: list[Artifact] = []
    gone: list[str] = []
    for ref in map(as_mapping, as_list(written)):
        artifact = read_artifact(ref, contents)
        if artifact is None:
            gone.append(as_text(ref["id"]))
        else:
            found.append(artifact)
            lost = len(as_list(ref.get("images"))) - len(artifact.images)
            gone += [f"A picture of {artifact.id}"] * lost
    return tuple(found), gone


def _read_image(written: object, contents: Contents) -> Image | None:
    content_hash, media_type, width, height = as_list(written)
    data = contents.get(as_text(content_hash))
    if data is None:
        return None
    return Image(
        media_type=as_text(media_type),
        data=data,
        width=as_int(width),
        height=as_int(height),
        hash=as_text(content_hash),
    )


def _read_tool(written: object) -> ToolDefinition:
    name, description, parameters = (as_text(part) for part in as_list(written))
    return ToolDefinition(name=name, description=description, parameters=parameters)
