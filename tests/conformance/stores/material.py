"""Events and contents for tests, and a way into a database behind its store's back."""

import json
import sqlite3
from contextlib import closing
from urllib.parse import parse_qs, urlsplit

import psycopg

from lamella.core.log.events.kinds import EventBatch, EventKind, EventRecord
from lamella.core.text.content import hash_bytes
from lamella.core.values import replace
from lamella.ports import Store

AT = "2026-01-01T00:00:00Z"
LATER = "2026-01-02T00:00:00Z"


def say(*texts: str, at: str = AT) -> EventBatch:
    """Messages without contents."""
    return EventBatch(records=tuple(message(text, at=at) for text in texts))


def message(text: str, *, at: str = AT, contents: tuple[str, ...] = ()) -> EventRecord:
    return EventRecord(kind=EventKind.MESSAGE, at=at, body=json.dumps({"text": text}), contents=contents)


def attach(*contents: bytes, text: str = "see", at: str = AT) -> EventBatch:
    """One message that brings contents."""
    brought = {hash_bytes(data): data for data in contents}
    return EventBatch(records=(message(text, at=at, contents=tuple(brought)),), contents=brought)


def counted(written: EventBatch, counts: bytes) -> EventBatch:
    """The same events, the last with counts."""
    return replace(written, records=(*written.records[:-1], replace(written.records[-1], counts=counts)))


def erasure(*hashes: str, at: str = LATER) -> EventBatch:
    return EventBatch(records=(EventRecord(kind=EventKind.ERASURE, at=at, body="{}", contents=hashes),))


def texts(store: Store, conversation: str) -> list[str]:
    """What the messages of a conversation say."""
    return [json.loads(record.body)["text"] for record in store.load(conversation)]


def tamper(url: str, sql: str, *values: object) -> list[tuple[object, ...]]:
    """Run a statement on a database as a careless operator could, past every check."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=5)) as connection, connection:
            return list(connection.execute(sql, values))
    address, schema = split_schema(url)
    with psycopg.connect(address, autocommit=True) as postgres:
        postgres.execute(f"SET search_path TO {schema}".encode())
        postgres.execute("SET session_replication_role TO replica")
        cursor = postgres.execute(sql.replace("?", "%s").encode(), values)
        return list(cursor) if cursor.description else []


def split_schema(url: str) -> tuple[str, str]:
    """An address as the driver takes it, and the schema it names."""
    schema = parse_qs(urlsplit(url).query)["schema"][0]
    return url.replace(f"&schema={schema}", ""), schema
