"""Read log files as a stream of model calls. The content of a file decides its format, not its name."""

import gzip
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from lamella.doctor.calls import Json, LoggedCall, get_object, get_text
from lamella.doctor.log_records import build_call, decode_json, is_request_body, read_record
from lamella.doctor.sessions import (
    ClaudeCodeReader,
    CodexReader,
    is_aider_history,
    is_opencode_session,
    read_aider_history,
    read_opencode_session,
)
from lamella.errors import SourceNotFoundError, SourceUnreadableError
from lamella.files import open_regular_file

_GZIP, _SQLITE = b"\x1f\x8b", b"SQLite format 3\x00"
_PEEKED_BYTES = 65_536
# A longer line is not read: no request is that large.
_MAX_LINE_BYTES = 256_000_000
# Documents are parsed as a whole, unlike lines.
_MAX_DOCUMENT_BYTES = 2_000_000_000
# What reading a damaged compressed file raises.
_DAMAGES = (OSError, EOFError, ValueError, zlib.error)
# So often the records of a damaged document are looked for further inside.
_MAX_DESCENTS = 8
_MAX_EXAMPLES = 3
_EXAMPLE_CHARS = 120
# Lists of records within a document, by the names of their fields.
_RECORD_LISTS = (
    ("log", "entries"),
    ("lhar", "entries"),
    ("resourceSpans",),
    ("observations",),
    ("data",),
    ("entries",),
)
_LOG_ENDINGS = (".jsonl", ".json", ".ndjson", ".har", ".lhar", ".log", ".gz", ".db", "history.md")


class LogReader:
    """Reads files and folders. Afterwards ``unread`` has the number of records that no format fits, with examples."""

    def __init__(self, on_progress: Callable[[int], None] = lambda _bytes: None) -> None:
        self.unread = 0
        self.examples: list[str] = []
        self._on_progress = on_progress
        self._bytes = 0

    def read(self, paths: Sequence[Path]) -> Iterator[LoggedCall]:
        """Yield the calls of the files in order; a folder stands for the logs in it."""
        for path in list_log_files(paths):
            try:
                with open_regular_file(path) as file:
                    yield from self.read_stream(file, name=str(path), path=path)
            except OSError as error:
                raise SourceUnreadableError(
                    f"{path} cannot be read: {error.strerror or error}.", hint="Check the path and your permissions."
                ) from error

    def read_stream(self, stream: BinaryIO, *, name: str, path: Path | None = None) -> Iterator[LoggedCall]:
        """Yield the calls of an open file or a pipe."""
        source = BufferedReader(cast(Any, stream)) if not isinstance(stream, BufferedReader | BytesIO) else stream
        start = source.peek(_PEEKED_BYTES)[:_PEEKED_BYTES] if isinstance(source, BufferedReader) else source.getvalue()
        if start.startswith(_GZIP):
            source = BufferedReader(cast(Any, gzip.GzipFile(fileobj=source)))
            try:
                start = source.peek(_PEEKED_BYTES)[:_PEEKED_BYTES]
            except _DAMAGES:
                self._count_unread(f"{name}: not a complete gzip file, or a damaged one")
                return
        if start.startswith(_SQLITE):
            yield from self._read_database(path, name)
            return
        head = start.decode("utf-8", "replace").lstrip("\ufeff")
        if is_aider_history(head):
            lines = (line.decode("utf-8", "replace") for line in self._iter_lines(source))
            yield from read_aider_history(lines)
        elif _is_document(head):
            yield from self._read_document(source)
        else:
            yield from self._read_lines(source)

    # Lines.

    def _iter_lines(self, source: BinaryIO) -> Iterator[bytes]:
        """Yield the lines of a file; lines beyond the limit are counted as unread."""
        while True:
            line = self._read_line(source)
            if not line:
                return
            self._bytes += len(line)
            self._on_progress(self._bytes)
            if len(line) >= _MAX_LINE_BYTES and not line.endswith(b"\n"):
                self._count_unread(line[:_EXAMPLE_CHARS].decode("utf-8", "replace"))
                while line and not line.endswith(b"\n"):
                    line = self._read_line(source)
                continue
            yield line

    def _read_line(self, source: BinaryIO) -> bytes:
        """Return the next line, or none after the last or where a compressed file is damaged."""
        try:
            return source.readline(_MAX_LINE_BYTES)
        except _DAMAGES:
            self._count_unread("the compressed file is damaged")
            return b""

    def _read_lines(self, source: BinaryIO) -> Iterator[LoggedCall]:
        records = _RecordReader()
        for line in self._iter_lines(source):
            text = line.strip().removeprefix(b"\xef\xbb\xbf")
            if text:
                yield from self._read_value(_decode_line(text), text, records)
        yield from records.finish()

    def _read_value(self, value: object, source: bytes, records: "_RecordReader") -> Iterator[LoggedCall]:
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            for one in value:
                yield from self._read_value(one, source, records)
            return
        calls = records.read(value) if isinstance(value, dict) else None
        if calls is None:
            self._count_unread(source[: 4 * _EXAMPLE_CHARS].decode("utf-8", "replace"))
        else:
            yield from calls

    # Documents.

    def _read_document(self, source: BinaryIO) -> Iterator[LoggedCall]:
        records = _RecordReader()
        try:
            data = source.read(_MAX_DOCUMENT_BYTES)
        except _DAMAGES:
            self._count_unread("the compressed file is damaged")
            return
        self._on_progress(len(data))
        data = data.strip().removeprefix(b"\xef\xbb\xbf")
        for raw in _iter_document(data):
            value = _decode_line(raw)
            if isinstance(value, dict) and is_opencode_session(value):
                yield from read_opencode_session(value)
            else:
                yield from self._read_value(value, raw, records)
        yield from records.finish()

    def _read_database(self, path: Path | None, name: str) -> Iterator[LoggedCall]:
        """Yield the calls of opencode's database."""
        if path is None:
            self._count_unread(f"{name}: a database can only be read from a file")
            return
        try:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
                sessions = _read_opencode_tables(connection)
        except (sqlite3.Error, OSError):
            self._count_unread(f"{name}: a database of another program")
            return
        for session in sessions:
            yield from read_opencode_session(session)

    def _count_unread(self, example: str) -> None:
        self.unread += 1
        if len(self.examples) < _MAX_EXAMPLES:
            self.examples.append(" ".join(example.split())[:_EXAMPLE_CHARS])


class _RecordReader:
    """Reads the records of one file: each alone, or as part of a session, or a request and later its response."""

    def __init__(self) -> None:
        self._sessions = (ClaudeCodeReader(), CodexReader())
        self._requests: list[Json] = []
        self._named: dict[str, Json] = {}

    def read(self, record: Json) -> list[LoggedCall] | None:
        """Return the calls that are complete after a record; None if no format fits it."""
        for session in self._sessions:
            if session.recognises(record):
                return list(session.read(record))
        if is_request_body(record) and "response" not in record:
            # A request alone: the next line may be its response.
            waiting, self._requests = self._requests, [record]
            return [build_call(one, {}, record={}) for one in waiting]
        if self._requests and _is_response_body(record):
            return [build_call(self._requests.pop(), record, record={})]
        name = get_text(record.get("custom_id"))
        if name and name in self._named and "response" in record:
            request = self._named.pop(name)
            return read_record({**request, "response": record["response"]})
        if name and is_request_body(record.get("body")) and "response" not in record:
            self._named[name] = record
            return []
        return read_record(record)

    def finish(self) -> Iterator[LoggedCall]:
        for one in self._requests:
            yield build_call(one, {}, record={})
        for record in self._named.values():
            yield from read_record(record) or ()
        for session in self._sessions:
            yield from session.finish()


def list_log_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files that the paths name; a folder stands for the logs below it, in the order of their names."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = [one for one in sorted(path.rglob("*")) if one.is_file() and one.name.endswith(_LOG_ENDINGS)]
            if not inside:
                raise SourceNotFoundError(
                    f"The folder {path} has no log.",
                    hint=f"Logs end in {', '.join(_LOG_ENDINGS[:5])} …; or name the file.",
                )
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise SourceNotFoundError(f"There is no file {path}.", hint="Name a log file, or - to read from a pipe.")
    return found


def _is_response_body(record: Json) -> bool:
    return isinstance(record.get("usage"), dict) and any(name in record for name in ("choices", "content", "output"))


def _is_document(head: str) -> bool:
    """Return whether a file is one JSON document, not a line for each record."""
    text = head.lstrip()
    if text.startswith("["):
        return True
    if not text.startswith("{"):
        return False
    first, newline, rest = text.partition("\n")
    if not newline:
        # One line, longer than what was looked at, or the whole file.
        return any(f'"{names[0]}"' in first[:2_000] for names in _RECORD_LISTS) or '"parts"' in first
    return decode_json(first) is None and not rest.lstrip().startswith('{"')


def _iter_document(data: bytes) -> Iterator[bytes]:
    """Yield the records of a document as JSON; those before the cut if the document was cut off."""
    try:
        if data.startswith(b"["):
            yield from (bytes(one) for one in msgspec.json.decode(data, type=list[msgspec.Raw]))
            return
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        yield from _iter_values(data.decode("utf-8", "replace"))
        return
    for names in _RECORD_LISTS:
        raw: msgspec.Raw | None = fields.get(names[0])
        for name in names[1:]:
            inner = _decode_fields(raw)
            raw = inner.get(name)
        if raw is not None and bytes(memoryview(raw)[:1]) == b"[" and names[0] != "resourceSpans":
            if names == ("observations",) and b'"sessionId"' in data:
                break
            yield from (bytes(one) for one in msgspec.json.decode(raw, type=list[msgspec.Raw]))
            return
    yield data


def _decode_fields(raw: msgspec.Raw | None) -> dict[str, msgspec.Raw]:
    if raw is None:
        return {}
    try:
        return msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return {}


def _iter_values(text: str) -> Iterator[bytes]:
    """Yield the JSON values that follow each other in a text; if the text is cut off, those of its last list."""
    decoder = json.JSONDecoder()
    at = descents = 0
    while at < len(text):
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at >= len(text):
            return
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            descents += 1
            inside = _find_list(text, at) if descents <= _MAX_DESCENTS else None
            if inside is None:
                yield text[at : at + _EXAMPLE_CHARS].encode("utf-8", "replace")
                return
            at = inside
            continue
        yield text[at:end].encode("utf-8", "replace")
        at = end


def _find_list(text: str, at: int) -> int | None:
    """Return where the elements of the first list of records begin in a document that was cut off."""
    if text.startswith("[", at):
        return at + 1
    for names in _RECORD_LISTS:
        found = text.find(f'"{names[-1]}"', at)
        start = text.find("[", found) if found >= 0 else -1
        if 0 <= start < found + len(names[-1]) + 16:
            return start + 1
    return None


def _decode_line(text: bytes) -> object:
    """Return the JSON value of a line; a log may write a time or a level in front of it."""
    value = decode_json(text)
    if value is None and text.startswith(b"["):
        value = _decode_loosely(text)
    if value is None and (start := text.find(b"{")) >= 0:
        value = decode_json(text[start:]) if start else None
        if value is None:
            value = _decode_loosely(text[start:])
    return value


def _decode_loosely(text: bytes) -> object:
    """Return the value of JSON that may have NaN and lone surrogates, which are replaced; None if it is no JSON."""
    try:
        return _replace_surrogates(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _replace_surrogates(value: object) -> object:
    """Return a value without lone surrogates, which no encoding has."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _read_opencode_tables(connection: sqlite3.Connection) -> list[Json]:
    """Return the sessions of opencode's database as ``opencode export`` would print them."""
    parts: dict[str, list[object]] = {}
    for message, data in connection.execute("SELECT message_id, data FROM part ORDER BY time_created, id"):
        parts.setdefault(str(message), []).append(decode_json(str(data)))
    sessions: dict[str, list[Json]] = {}
    rows: Iterable[tuple[object, object, object]] = connection.execute(
        "SELECT id, session_id, data FROM message ORDER BY time_created, id"
    )
    for name, session, data in rows:
        entry = {"info": get_object(decode_json(str(data))), "parts": parts.get(str(name), [])}
        sessions.setdefault(str(session), []).append(entry)
    return [{"info": {"id": name}, "messages": messages} for name, messages in sessions.items()]
