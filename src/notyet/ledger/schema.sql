-- Version 1. Later versions add a numbered step in migrations.py and never edit this one.

-- One row for each agent of each session: its History, so that a stop costs the same
-- whether the ledger holds ten rows or ten million.
CREATE TABLE agents (
  id             INTEGER PRIMARY KEY,
  host           TEXT    NOT NULL,
  session_id     TEXT    NOT NULL,
  agent_id       TEXT    NOT NULL,            -- '' for the main agent
  turn           INTEGER NOT NULL,
  turn_ids       TEXT    NOT NULL,            -- JSON
  blocks         INTEGER NOT NULL,
  session_blocks INTEGER NOT NULL,
  extend         INTEGER NOT NULL,
  blocked        INTEGER NOT NULL,
  repeats        INTEGER NOT NULL,
  repeat_key     TEXT    NOT NULL,
  last_stop      INTEGER NOT NULL,            -- the newest decided stop, 0 for none
  seen_at        REAL    NOT NULL,
  UNIQUE (host, session_id, agent_id)
);

CREATE TABLE stops (
  id           INTEGER PRIMARY KEY,
  agent        INTEGER NOT NULL,
  turn         INTEGER NOT NULL,
  begun_at     REAL    NOT NULL,
  ended_at     REAL,
  pid          INTEGER NOT NULL,              -- who asks the gates
  token        BLOB    NOT NULL,              -- proves that a decision belongs to this row
  digest       BLOB    NOT NULL,              -- of the event
  event        TEXT    NOT NULL,              -- JSON, bounded
  outcome      TEXT    NOT NULL,              -- 'asking' until decided
  verdict      TEXT    NOT NULL DEFAULT '',
  prompt       TEXT    NOT NULL DEFAULT '',
  reason       TEXT    NOT NULL DEFAULT '',
  why          TEXT    NOT NULL DEFAULT '',
  count        INTEGER NOT NULL DEFAULT 0,
  max_blocks   INTEGER NOT NULL DEFAULT 0,
  limit_source TEXT    NOT NULL DEFAULT '',
  extend       INTEGER NOT NULL DEFAULT 0,
  repeat_key   TEXT    NOT NULL DEFAULT '',
  warnings     TEXT    NOT NULL DEFAULT '[]', -- JSON
  repeated     INTEGER NOT NULL DEFAULT 0     -- how often its answer was given again
);
CREATE INDEX stops_by_time ON stops (begun_at);
CREATE INDEX stops_by_agent ON stops (agent, id);
CREATE INDEX stops_asking ON stops (agent) WHERE outcome = 'asking';

CREATE TABLE reports (
  stop     INTEGER NOT NULL,
  position INTEGER NOT NULL,
  gate     TEXT    NOT NULL,
  status   TEXT    NOT NULL,
  said     TEXT    NOT NULL,                  -- prompt, halt reason, problem or note
  reason   TEXT    NOT NULL,                  -- a block's reason, a problem's kind
  extend   INTEGER NOT NULL,
  seconds  REAL    NOT NULL,
  output   TEXT    NOT NULL,
  matched  TEXT    NOT NULL,
  observed INTEGER NOT NULL,
  warning  TEXT    NOT NULL,
  PRIMARY KEY (stop, position)
) WITHOUT ROWID;
