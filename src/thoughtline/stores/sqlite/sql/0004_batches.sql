-- The id of a batch is at its first event: the same batch written twice is one.
ALTER TABLE events ADD COLUMN batch TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX events_batches ON events (session, batch) WHERE batch <> '';
