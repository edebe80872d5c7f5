-- What of a checkpoint is read only where somebody asks for it.
ALTER TABLE checkpoints ADD COLUMN apart bytea NOT NULL DEFAULT '';
