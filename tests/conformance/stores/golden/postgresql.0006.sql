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
-- Token counts of the texts that an event brought: derived, covered by no hash, none where nobody counted.
ALTER TABLE events ADD COLUMN counts bytea;
-- What the first events of a conversation come to: derived, never believed over them, gone with any erasure.
CREATE TABLE checkpoints (
    conversation text COLLATE "C" NOT NULL REFERENCES conversations (id),
    version bigint NOT NULL,
    head text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (conversation, version)
);
-- Read at every opening: uncompressed it takes more room and less time.
ALTER TABLE checkpoints ALTER COLUMN data SET STORAGE EXTERNAL;
-- What people call a conversation, beside its key (id), which nobody chooses. Those of before are called by their key.
ALTER TABLE conversations ADD COLUMN name text COLLATE "C";
UPDATE conversations SET name = id;
-- A name is free again once its conversation is erased.
CREATE UNIQUE INDEX conversations_by_name ON conversations (name) WHERE erased IS NULL;
-- What processes tell one another for a while. A line about a conversation is gone with any erasure in it.
CREATE TABLE shelf (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    conversation text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    ends text COLLATE "C" NOT NULL
);
CREATE INDEX shelf_by_conversation ON shelf (conversation);
CREATE INDEX shelf_by_end ON shelf (ends);
-- What of a checkpoint is read only where somebody asks for it.
ALTER TABLE checkpoints ADD COLUMN apart bytea NOT NULL DEFAULT '';
INSERT INTO schema_version (version) VALUES ('1');
INSERT INTO schema_version (version) VALUES ('2');
INSERT INTO schema_version (version) VALUES ('3');
INSERT INTO schema_version (version) VALUES ('4');
INSERT INTO schema_version (version) VALUES ('5');
INSERT INTO schema_version (version) VALUES ('6');
INSERT INTO conversations (id, version, head, title, created, updated, erased, name) VALUES ('boat', '1', 'sha256:54bbb7cabc75f03891aed20ef3f774460b379d6d586ccf81601ac09c46ba1d50', '', '2026-01-07T00:00:00Z', '2026-01-07T00:00:00Z', NULL, 'the boat');
INSERT INTO conversations (id, version, head, title, created, updated, erased, name) VALUES ('every kind of event', '14', 'sha256:d8b4c68d9cf789f4d2d268a90478fb837db2638109c6352e2b97638f0fa6a38f', 'Ünïcode', '2026-01-06T00:00:00Z', '2026-01-06T00:00:13Z', NULL, 'every kind of event');
INSERT INTO conversations (id, version, head, title, created, updated, erased, name) VALUES ('gone', '0', '', '', '2026-01-08T00:00:00Z', '2026-01-09T00:00:00Z', '2026-01-09T00:00:00Z', 'gone');
INSERT INTO conversations (id, version, head, title, created, updated, erased, name) VALUES ('house', '4', 'sha256:d9c0ce1468b3f754ea540b0da86b0cf86a24db8cfde33c42016fd017c613fb66', 'The house', '2026-01-05T08:00:00Z', '2026-01-05T08:02:00Z', NULL, 'house');
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('boat', '1', 'message', '2026-01-07T00:00:00Z', '{"text": "Same note"}', '["sha256:6527cb258f4fc761af5e60595f09d4b638577e4cb8e35788e009f97fb3c09939"]', 'sha256:54bbb7cabc75f03891aed20ef3f774460b379d6d586ccf81601ac09c46ba1d50', E'\\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b');
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '1', 'message', '2026-01-06T00:00:00Z', '{"number": 0}', '[]', 'sha256:4ce0bd7c616411868cd19180345a582d6ed7fd55adc3690ae79df0d46e7b97c0', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '2', 'reply', '2026-01-06T00:00:01Z', '{"number": 1}', '[]', 'sha256:22d3985d1683e935c7a8568c775796b12ef4cae5854b5c8548b8a0ed74c93c48', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '3', 'attachment', '2026-01-06T00:00:02Z', '{"number": 2}', '[]', 'sha256:2c079becee72e341a2f3a60ea445b35e6d1f24f66b87152c2d5e564583b9afcd', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '4', 'settings', '2026-01-06T00:00:03Z', '{"number": 3}', '[]', 'sha256:51d5b1acb61a5576cdf904b428a7a2fa8c6ea05987caa4b2ff2a3c278911efd7', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '5', 'edit', '2026-01-06T00:00:04Z', '{"number": 4}', '[]', 'sha256:27419471d6c792054eec799f2b8917a38ce39dfcebf0e31656ae29d9b6a12fba', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '6', 'delete', '2026-01-06T00:00:05Z', '{"number": 5}', '[]', 'sha256:fe236d07a03991fb52a793a6f44cf266d16357843fd03f3ac3220918cfbe3415', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '7', 'fork', '2026-01-06T00:00:06Z', '{"number": 6}', '[]', 'sha256:052c538ee819bda8a5692bdbd030dee8359ca8f02f13fb3402d002d019c6e667', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '8', 'switch', '2026-01-06T00:00:07Z', '{"number": 7}', '[]', 'sha256:c52ab1723f69da5bd62dc80d4481ea1b00ff78f9ff1b495dd00451bd5c5ad1f4', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '9', 'rename', '2026-01-06T00:00:08Z', '{"number": 8}', '[]', 'sha256:48f78155307f79090dedfdef7401617aed50726b41dd2d8de867e0ffd95c1e21', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '10', 'fold', '2026-01-06T00:00:09Z', '{"number": 9}', '[]', 'sha256:558ccd87bd3154c59f6ef45b075666d7cc3714cf58d4ac73daeb2f64c867940c', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '11', 'compaction', '2026-01-06T00:00:10Z', '{"number": 10}', '[]', 'sha256:73ce7fb4c1a6ee74dd77167fcdd489def2849852a167cd38858d69b2036c0035', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '12', 'undo', '2026-01-06T00:00:11Z', '{"number": 11}', '[]', 'sha256:7c017384831bb26c9b1722b11090e228065957ab1d149a8e7db4b9070a322c34', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '13', 'stage', '2026-01-06T00:00:12Z', '{"number": 12}', '[]', 'sha256:bab132823233fda33ce7ebf1aa685eb69b5c892cf2ebc852456dab47643464b3', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', '14', 'erasure', '2026-01-06T00:00:13Z', '{"number": 13}', '[]', 'sha256:d8b4c68d9cf789f4d2d268a90478fb837db2638109c6352e2b97638f0fa6a38f', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('house', '1', 'message', '2026-01-05T08:00:00Z', '{"text": "What is missing?"}', '["sha256:6527cb258f4fc761af5e60595f09d4b638577e4cb8e35788e009f97fb3c09939", "sha256:40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880"]', 'sha256:7795438f535af70f1a2862d0cc802e9a3b446e8e27d386a9c3385ab0571c6990', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('house', '2', 'message', '2026-01-05T08:00:01Z', E'{"text": "\\u0000 ''--'' %s ? \\ud83e\\udd89"}', '[]', 'sha256:9033cf6838f7ce578c99605a7fab9c23f37321c441e583c34ca80df202b8301e', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('house', '3', 'message', '2026-01-05T08:01:00Z', '{"text": "see"}', '["sha256:b531decc99d5a540a3e8bb6d5e1331a1463dfd49f73bc4f94e672de27db12818"]', 'sha256:45f6a7d55b0ecb90ee4be2521917eb233bbe5992375335c1d4cc649afdf74019', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('house', '4', 'erasure', '2026-01-05T08:02:00Z', '{}', '["sha256:b531decc99d5a540a3e8bb6d5e1331a1463dfd49f73bc4f94e672de27db12818"]', 'sha256:d9c0ce1468b3f754ea540b0da86b0cf86a24db8cfde33c42016fd017c613fb66', NULL);
INSERT INTO contents (hash, data) VALUES ('sha256:40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880', E'\\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff');
INSERT INTO contents (hash, data) VALUES ('sha256:6527cb258f4fc761af5e60595f09d4b638577e4cb8e35788e009f97fb3c09939', E'\\x23204275646765740a0a526f6f663a20342c32303020e282ac0a');
INSERT INTO holdings (conversation, hash) VALUES ('boat', 'sha256:6527cb258f4fc761af5e60595f09d4b638577e4cb8e35788e009f97fb3c09939');
INSERT INTO holdings (conversation, hash) VALUES ('house', 'sha256:40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880');
INSERT INTO holdings (conversation, hash) VALUES ('house', 'sha256:6527cb258f4fc761af5e60595f09d4b638577e4cb8e35788e009f97fb3c09939');
INSERT INTO checkpoints (conversation, version, head, data, apart) VALUES ('boat', '1', 'sha256:54bbb7cabc75f03891aed20ef3f774460b379d6d586ccf81601ac09c46ba1d50', E'\\x77686174206f6e65206576656e7420636f6d657320746f2000ff', E'\\x616e6420776861742069732061706172742000ff');
INSERT INTO shelf (name, conversation, text, ends) VALUES ('the tide', 'boat', 'at noon', '2126-01-07T00:00:00.000000Z');
