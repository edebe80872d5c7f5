-- What the first events of a conversation come to: derived, never believed over them, gone with any erasure.
CREATE TABLE checkpoints (
    conversation TEXT NOT NULL REFERENCES conversations (id),
    version INTEGER NOT NULL,
    head TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (conversation, version)
);
