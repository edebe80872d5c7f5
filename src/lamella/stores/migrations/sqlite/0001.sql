-- Conversations as logs of events, and contents stored once by hash.
CREATE TABLE schema_version (version INTEGER NOT NULL PRIMARY KEY);
CREATE TABLE conversations (
    id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    head TEXT NOT NULL,
    title TEXT NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL,
    erased TEXT
) WITHOUT ROWID;
CREATE TABLE events (
    conversation TEXT NOT NULL REFERENCES conversations (id),
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at TEXT NOT NULL,
    body TEXT NOT NULL,
    contents TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (conversation, seq)
) WITHOUT ROWID;
CREATE TABLE contents (
    hash TEXT NOT NULL PRIMARY KEY,
    data BLOB NOT NULL
);
CREATE TABLE holdings (
    conversation TEXT NOT NULL REFERENCES conversations (id),
    hash TEXT NOT NULL REFERENCES contents (hash) DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (conversation, hash)
) WITHOUT ROWID;
CREATE INDEX holdings_by_hash ON holdings (hash);
