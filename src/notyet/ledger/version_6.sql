-- Version 6: gates that are asked only when it matters, and stops by place.
CREATE TABLE passes (                         -- on which files a question was answered well
  definition TEXT    NOT NULL,                -- a digest of what was asked
  tree       TEXT    NOT NULL,                -- a fingerprint of the files
  at         REAL    NOT NULL,
  stop       INTEGER NOT NULL DEFAULT 0,      -- where that was found out, 0 for outside of a stop
  PRIMARY KEY (definition, tree)
) WITHOUT ROWID;
CREATE INDEX passes_by_time ON passes (at);

CREATE TABLE starts (                         -- with which files an agent began
  host       TEXT NOT NULL,
  session_id TEXT NOT NULL,
  agent_id   TEXT NOT NULL,                   -- '' for the main agent
  scope      TEXT NOT NULL,                   -- which files these are
  tree       TEXT NOT NULL,                   -- their fingerprint, '' for unknown
  at         REAL NOT NULL,
  PRIMARY KEY (host, session_id, agent_id, scope)
) WITHOUT ROWID;
CREATE INDEX starts_by_time ON starts (at);

ALTER TABLE reports ADD COLUMN definition TEXT NOT NULL DEFAULT ''; -- a digest of what the gate asks
ALTER TABLE reports ADD COLUMN asked_when TEXT NOT NULL DEFAULT ''; -- 'always', or 'changed': only if files did
ALTER TABLE stops ADD COLUMN place TEXT NOT NULL DEFAULT '';        -- the folder of the agent
-- For looking back. Every index of stops ends with their number, by which `log` is ordered.
CREATE INDEX stops_by_place ON stops (place, outcome);
CREATE INDEX stops_by_outcome ON stops (outcome);
CREATE INDEX reports_by_gate ON reports (gate, stop);
CREATE INDEX agents_by_time ON agents (seen_at);
CREATE INDEX agents_by_session ON agents (session_id)
