-- Which turns go on from a turn: asked for when two turns look alike (`continued.sql`).
CREATE INDEX events_continued ON events (parent) WHERE type = 'turn_started' AND parent <> '';
