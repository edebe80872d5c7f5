-- What processes tell one another for a while. A line about a conversation is gone with any erasure in it.
CREATE TABLE shelf (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    conversation text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    ends text COLLATE "C" NOT NULL
);
CREATE INDEX shelf_by_conversation ON shelf (conversation);
CREATE INDEX shelf_by_end ON shelf (ends);
