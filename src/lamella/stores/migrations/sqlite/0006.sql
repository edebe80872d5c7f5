-- What of a checkpoint is read only where somebody asks for it.
ALTER TABLE checkpoints ADD COLUMN apart BLOB NOT NULL DEFAULT x'';
