-- What people call a conversation, beside its key (id), which nobody chooses. Those of before are called by their key.
ALTER TABLE conversations ADD COLUMN name TEXT;
UPDATE conversations SET name = id;
-- A name is free again once its conversation is erased.
CREATE UNIQUE INDEX conversations_by_name ON conversations (name) WHERE erased IS NULL;
