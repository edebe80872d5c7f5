-- Conversations as logs of events, and contents stored once by hash. Text is compared by its bytes, as in SQLite.
CREATE TABLE schema_version (version integer NOT NULL PRIMARY KEY);
CREATE TABLE conversations (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    version bigint NOT NULL,
    head text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    created text COLLATE "C" NOT NULL,
    updated text COLLATE "C" NOT NULL,
    erased text COLLATE "C"
);
CREATE TABLE events (
    conversation text COLLATE "C" NOT NULL REFERENCES conversations (id),
    seq bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    at text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    contents text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    PRIMARY KEY (conversation, seq)
);
CREATE TABLE contents (
    hash text COLLATE "C" NOT NULL PRIMARY KEY,
    data bytea NOT NULL
);
CREATE TABLE holdings (
    conversation text COLLATE "C" NOT NULL REFERENCES conversations (id),
    hash text COLLATE "C" NOT NULL REFERENCES contents (hash) DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (conversation, hash)
);
CREATE INDEX holdings_by_hash ON holdings (hash);
