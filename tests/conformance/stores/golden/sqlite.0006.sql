CREATE TABLE schema_version (version INTEGER NOT NULL PRIMARY KEY);
CREATE TABLE conversations (
    id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    head TEXT NOT NULL,
    title TEXT NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL,
    erased TEXT
, name TEXT) WITHOUT ROWID;
CREATE TABLE events (
    conversation TEXT NOT NULL REFERENCES conversations (id),
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at TEXT NOT NULL,
    body TEXT NOT NULL,
    contents TEXT NOT NULL,
    hash TEXT NOT NULL, counts BLOB,
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
CREATE TABLE checkpoints (
    conversation TEXT NOT NULL REFERENCES conversations (id),
    version INTEGER NOT NULL,
    head TEXT NOT NULL,
    data BLOB NOT NULL, apart BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (conversation, version)
);
CREATE TABLE shelf (
    name TEXT NOT NULL PRIMARY KEY,
    conversation TEXT NOT NULL,
    text TEXT NOT NULL,
    ends TEXT NOT NULL
);
CREATE INDEX holdings_by_hash ON holdings (hash);
CREATE UNIQUE INDEX conversations_by_name ON conversations (name) WHERE erased IS NULL;
CREATE INDEX shelf_by_conversation ON shelf (conversation);
CREATE INDEX shelf_by_end ON shelf (ends);
INSERT INTO schema_version (version) VALUES (1);
INSERT INTO schema_version (version) VALUES (2);
INSERT INTO schema_version (version) VALUES (3);
INSERT INTO schema_version (version) VALUES (4);
INSERT INTO schema_version (version) VALUES (5);
INSERT INTO schema_version (version) VALUES (6);
INSERT INTO conversations (id, version, head, title, created, updated, erased, name) VALUES ('boat', 1, 'sha256:54bbb7cabc75f03891aed20ef3f774460b379d6d586ccf81601ac09c46ba1d50', '', '2026-01-07T00:00:00Z', '2026-01-07T00:00:00Z', NULL, 'the boat');
INSERT INTO conversations (id, version, head, title, created, updated, erased, name) VALUES ('every kind of event', 14, 'sha256:d8b4c68d9cf789f4d2d268a90478fb837db2638109c6352e2b97638f0fa6a38f', 'Ünïcode', '2026-01-06T00:00:00Z', '2026-01-06T00:00:13Z', NULL, 'every kind of event');
INSERT INTO conversations (id, version, head, title, created, updated, erased, name) VALUES ('gone', 0, '', '', '2026-01-08T00:00:00Z', '2026-01-09T00:00:00Z', '2026-01-09T00:00:00Z', 'gone');
INSERT INTO conversations (id, version, head, title, created, updated, erased, name) VALUES ('house', 4, 'sha256:d9c0ce1468b3f754ea540b0da86b0cf86a24db8cfde33c42016fd017c613fb66', 'The house', '2026-01-05T08:00:00Z', '2026-01-05T08:02:00Z', NULL, 'house');
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('boat', 1, 'message', '2026-01-07T00:00:00Z', '{"text": "Same note"}', '["sha256:6527cb258f4fc761af5e60595f09d4b638577e4cb8e35788e009f97fb3c09939"]', 'sha256:54bbb7cabc75f03891aed20ef3f774460b379d6d586ccf81601ac09c46ba1d50', X'000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B');
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 1, 'message', '2026-01-06T00:00:00Z', '{"number": 0}', '[]', 'sha256:4ce0bd7c616411868cd19180345a582d6ed7fd55adc3690ae79df0d46e7b97c0', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 2, 'reply', '2026-01-06T00:00:01Z', '{"number": 1}', '[]', 'sha256:22d3985d1683e935c7a8568c775796b12ef4cae5854b5c8548b8a0ed74c93c48', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 3, 'attachment', '2026-01-06T00:00:02Z', '{"number": 2}', '[]', 'sha256:2c079becee72e341a2f3a60ea445b35e6d1f24f66b87152c2d5e564583b9afcd', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 4, 'settings', '2026-01-06T00:00:03Z', '{"number": 3}', '[]', 'sha256:51d5b1acb61a5576cdf904b428a7a2fa8c6ea05987caa4b2ff2a3c278911efd7', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 5, 'edit', '2026-01-06T00:00:04Z', '{"number": 4}', '[]', 'sha256:27419471d6c792054eec799f2b8917a38ce39dfcebf0e31656ae29d9b6a12fba', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 6, 'delete', '2026-01-06T00:00:05Z', '{"number": 5}', '[]', 'sha256:fe236d07a03991fb52a793a6f44cf266d16357843fd03f3ac3220918cfbe3415', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 7, 'fork', '2026-01-06T00:00:06Z', '{"number": 6}', '[]', 'sha256:052c538ee819bda8a5692bdbd030dee8359ca8f02f13fb3402d002d019c6e667', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 8, 'switch', '2026-01-06T00:00:07Z', '{"number": 7}', '[]', 'sha256:c52ab1723f69da5bd62dc80d4481ea1b00ff78f9ff1b495dd00451bd5c5ad1f4', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 9, 'rename', '2026-01-06T00:00:08Z', '{"number": 8}', '[]', 'sha256:48f78155307f79090dedfdef7401617aed50726b41dd2d8de867e0ffd95c1e21', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 10, 'fold', '2026-01-06T00:00:09Z', '{"number": 9}', '[]', 'sha256:558ccd87bd3154c59f6ef45b075666d7cc3714cf58d4ac73daeb2f64c867940c', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 11, 'compaction', '2026-01-06T00:00:10Z', '{"number": 10}', '[]', 'sha256:73ce7fb4c1a6ee74dd77167fcdd489def2849852a167cd38858d69b2036c0035', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 12, 'undo', '2026-01-06T00:00:11Z', '{"number": 11}', '[]', 'sha256:7c017384831bb26c9b1722b11090e228065957ab1d149a8e7db4b9070a322c34', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 13, 'stage', '2026-01-06T00:00:12Z', '{"number": 12}', '[]', 'sha256:bab132823233fda33ce7ebf1aa685eb69b5c892cf2ebc852456dab47643464b3', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('every kind of event', 14, 'erasure', '2026-01-06T00:00:13Z', '{"number": 13}', '[]', 'sha256:d8b4c68d9cf789f4d2d268a90478fb837db2638109c6352e2b97638f0fa6a38f', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('house', 1, 'message', '2026-01-05T08:00:00Z', '{"text": "What is missing?"}', '["sha256:6527cb258f4fc761af5e60595f09d4b638577e4cb8e35788e009f97fb3c09939", "sha256:40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880"]', 'sha256:7795438f535af70f1a2862d0cc802e9a3b446e8e27d386a9c3385ab0571c6990', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('house', 2, 'message', '2026-01-05T08:00:01Z', '{"text": "\u0000 ''--'' %s ? \ud83e\udd89"}', '[]', 'sha256:9033cf6838f7ce578c99605a7fab9c23f37321c441e583c34ca80df202b8301e', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('house', 3, 'message', '2026-01-05T08:01:00Z', '{"text": "see"}', '["sha256:b531decc99d5a540a3e8bb6d5e1331a1463dfd49f73bc4f94e672de27db12818"]', 'sha256:45f6a7d55b0ecb90ee4be2521917eb233bbe5992375335c1d4cc649afdf74019', NULL);
INSERT INTO events (conversation, seq, kind, at, body, contents, hash, counts) VALUES ('house', 4, 'erasure', '2026-01-05T08:02:00Z', '{}', '["sha256:b531decc99d5a540a3e8bb6d5e1331a1463dfd49f73bc4f94e672de27db12818"]', 'sha256:d9c0ce1468b3f754ea540b0da86b0cf86a24db8cfde33c42016fd017c613fb66', NULL);
INSERT INTO contents (hash, data) VALUES ('sha256:40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880', X'000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9FA0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDFE0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF');
INSERT INTO contents (hash, data) VALUES ('sha256:6527cb258f4fc761af5e60595f09d4b638577e4cb8e35788e009f97fb3c09939', X'23204275646765740A0A526F6F663A20342C32303020E282AC0A');
INSERT INTO holdings (conversation, hash) VALUES ('boat', 'sha256:6527cb258f4fc761af5e60595f09d4b638577e4cb8e35788e009f97fb3c09939');
INSERT INTO holdings (conversation, hash) VALUES ('house', 'sha256:40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880');
INSERT INTO holdings (conversation, hash) VALUES ('house', 'sha256:6527cb258f4fc761af5e60595f09d4b638577e4cb8e35788e009f97fb3c09939');
INSERT INTO checkpoints (conversation, version, head, data, apart) VALUES ('boat', 1, 'sha256:54bbb7cabc75f03891aed20ef3f774460b379d6d586ccf81601ac09c46ba1d50', X'77686174206F6E65206576656E7420636F6D657320746F2000FF', X'616E6420776861742069732061706172742000FF');
INSERT INTO shelf (name, conversation, text, ends) VALUES ('the tide', 'boat', 'at noon', '2126-01-07T00:00:00.000000Z');
