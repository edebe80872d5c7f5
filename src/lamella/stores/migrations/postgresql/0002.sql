-- Token counts of the texts that an event brought: derived, covered by no hash, none where nobody counted.
ALTER TABLE events ADD COLUMN counts bytea;
