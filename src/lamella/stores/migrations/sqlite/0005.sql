-- What processes tell one another for a while. A line about a conversation is gone with any erasure in it.
CREATE TABLE shelf (
    name TEXT NOT NULL PRIMARY KEY,
    conversation TEXT NOT NULL,
    text TEXT NOT NULL,
    ends TEXT NOT NULL
);
CREATE INDEX shelf_by_conversation ON shelf (conversation);
CREATE INDEX shelf_by_end ON shelf (ends);
