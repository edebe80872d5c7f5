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
