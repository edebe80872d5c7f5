"""The comment at the end of an archive: every event of the log, and the contents that ride along, as JSON.

One event and one content per line, so that a diff of two versions of a file shows what was added.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lamella.adapters.archive.markdown.cargo import ASKING, Cargo, FileRef
from lamella.core.artifacts.model import Kind
from lamella.core.log.events.codec import read_event
from lamella.core.log.events.hashes import named_hashes
from lamella.core.log.records import EventKind, Record
from lamella.core.text.content import canonical_json, encode_text, hash_bytes
from lamella.errors import BadInputError
from lamella.holdings import Chronicle

_NAMING = (*ASKING, EventKind.ATTACHMENT, EventKind.CALLS, EventKind.RESULTS)
_START = "<!-- lamella-context: "
_STARTS = re.compile(r"^<!-- lamella-context:[ \t]*", re.MULTILINE)
_END = "-->"
_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)
_HINT = "Take the file from a backup or export the conversation again; docs/archive.md shows the format."


class EventIn(BaseModel):
    """One event. A body that is not canonical JSON stands as the text it is."""

    model_config = _STRICT

    kind: EventKind = Field(strict=False)
    at: str
    body: dict[str, object] | str
    contents: list[str] = Field(default_factory=list)


class NamedFileIn(BaseModel):
    """A content that is named as the text of a file in the vault."""

    model_config = _STRICT

    hash: str
    kind: Kind = Field(strict=False)
    path: str


class BytesIn(BaseModel):
    """A content that is no text."""

    model_config = _STRICT

    base64: str


class CommentIn(BaseModel):
    """What the comment holds."""

    model_config = _STRICT

    lamella: int
    conversation: str
    title: str
    created: str
    events: list[EventIn]
    files: list[NamedFileIn] = Field(default_factory=list)
    contents: dict[str, str | BytesIn] = Field(default_factory=dict)


def render_comment(chronicle: Chronicle, cargo: Cargo) -> str:
    """The comment. It cannot be closed from inside: an arrow in it is written as an escape."""
    head = {"conversation": chronicle.conversation, "created": chronicle.created, "title": chronicle.title}
    events = [canonical_json(_write_event(record)) for record in chronicle.records]
    files = [canonical_json({"hash": f.hash, "kind": f.kind.value, "path": f.path}) for f in cargo.files]
    contents = [f"{json.dumps(name)}:{_write_content(data)}" for name, data in sorted(cargo.contents.items())]
    inside = (
        f'{canonical_json({**head, "lamella": 1})[:-1]},"events":[\n{_rows(events)}],'
        f'"files":[\n{_rows(files)}],"contents":{{\n{_rows(contents)}}}}}'
    )
    return _START + inside.replace("-->", "--\\u003e").replace("--!>", "--!\\u003e") + f" {_END}\n"


def split_comment(body: str) -> tuple[str, str]:
    """A file's visible text, and the JSON of its comment."""
    starts = list(_STARTS.finditer(body))
    if len(starts) != 1:
        raise BadInputError(
            f"The archive has {len(starts)} lamella-context comments; it needs exactly one.",
            hint=_HINT if starts else f"{_HINT} Without the line `lamella:` in front it is read as plain messages.",
        )
    end = body.find(_END, starts[0].end())
    if end < 0:
        raise BadInputError("The archive's lamella-context comment is not closed.", hint=_HINT)
    after = body[end + len(_END) :]
    return body[: starts[0].start()] + after.lstrip("\n"), body[starts[0].end() : end]


def parse_comment(text: str) -> tuple[Chronicle, tuple[FileRef, ...]]:
    """The conversation a comment holds, with the contents that ride in it, and the files that have the others."""
    try:
        comment = CommentIn.model_validate(json.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise _damaged(f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(f"it is not JSON: {error}") from error
    if comment.lamella != 1:
        raise BadInputError(
            f"The archive's comment is in format {comment.lamella}; this version reads format 1.",
            hint="Use a newer version of Lamella.",
        )
    chronicle = Chronicle(
        conversation=comment.conversation,
        title=comment.title,
        created=comment.created,
        records=tuple(_read_event(event, number) for number, event in enumerate(comment.events, start=1)),
        contents={name: _read_content(name, written) for name, written in comment.contents.items()},
    )
    files = tuple(FileRef(hash=f.hash, kind=f.kind, path=f.path) for f in comment.files)
    _check_named(chronicle, files)
    return chronicle, files


def _rows(rows: Iterable[str]) -> str:
    joined = ",\n".join(rows)
    return f"{joined}\n" if joined else ""


def _write_event(record: Record) -> Mapping[str, object]:
    body = json.loads(record.body)
    written = body if isinstance(body, dict) and _is_canonical(body, record.body) else record.body
    event: dict[str, object] = {"kind": record.kind.value, "at": record.at, "body": written}
    if record.contents:
        event["contents"] = list(record.contents)
    return event


def _is_canonical(body: object, written: str) -> bool:
    try:
        return canonical_json(body) == written
    except BadInputError:
        return False


def _read_event(event: EventIn, number: int) -> Record:
    try:
        body = event.body if isinstance(event.body, str) else canonical_json(event.body)
        record = Record(kind=event.kind, at=event.at, body=body, contents=tuple(event.contents))
        encode_text(body + event.at)
        if event.kind in _NAMING:
            read_event(record)
    except (ValueError, BadInputError) as error:
        raise _damaged(f"event {number}: {error}") from error
    return record


def _check_named(chronicle: Chronicle, files: Sequence[FileRef]) -> None:
    """Refuse events that name contents which are not there, neither as such nor as files, and were not erased."""
    erased = {name for record in chronicle.records if record.kind is EventKind.ERASURE for name in record.contents}
    there = {*chronicle.contents, *(file.hash for file in files), *erased}
    for number, record in enumerate(chronicle.records, start=1):
        named = named_hashes(read_event(record)) if record.kind in _NAMING else ()
        if unlisted := set(named).difference(record.contents):
            raise _damaged(f"event {number} does not list the content {min(unlisted)}, which it names")
        if missing := set(record.contents).difference(there):
            raise _damaged(f"the content {min(missing)} of event {number} is not there")


def _write_content(data: bytes) -> str:
    try:
        return json.dumps(data.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        return canonical_json({"base64": b64encode(data).decode()})


def _read_content(name: str, written: str | BytesIn) -> bytes:
    try:
        data = encode_text(written) if isinstance(written, str) else b64decode(written.base64, validate=True)
    except (ValueError, BadInputError) as error:
        raise _damaged(f"the content {name} cannot be read: {error}") from error
    if hash_bytes(data) != name:
        raise _damaged(f"the content {name} has the hash {hash_bytes(data)}")
    return data


def _damaged(what: str) -> BadInputError:
    return BadInputError(f"The archive's comment is damaged: {what}.", hint=_HINT)
