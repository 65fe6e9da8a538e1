-- The ledger. Later versions add a numbered step in migrations.py and leave this file as it is.
-- PostgreSQL takes it too, with other types (tests/unit/ledger/test_portable_sql.py).
-- No semicolon may stand in a comment or a value.

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
CREATE INDEX agents_by_time ON agents (seen_at);
CREATE INDEX agents_by_session ON agents (session_id);

CREATE TABLE stops (
  id           INTEGER PRIMARY KEY,
  agent        INTEGER NOT NULL,
  turn         INTEGER NOT NULL,
  begun_at     REAL    NOT NULL,
  ended_at     REAL,
  place        TEXT    NOT NULL DEFAULT '',   -- the agent's folder
  pid          INTEGER NOT NULL,              -- the process that runs the gates
  pid_start    TEXT    NOT NULL DEFAULT '',   -- tells it from a later process with the same number
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
-- Each index of stops ends with their number, the order of `notyet log`.
CREATE INDEX stops_by_time ON stops (begun_at);
CREATE INDEX stops_by_agent ON stops (agent, id);
CREATE INDEX stops_asking ON stops (agent) WHERE outcome = 'asking';
CREATE INDEX stops_by_place ON stops (place, outcome);
CREATE INDEX stops_by_outcome ON stops (outcome);

CREATE TABLE reports (
  stop       INTEGER NOT NULL,
  position   INTEGER NOT NULL,
  gate       TEXT    NOT NULL,
  status     TEXT    NOT NULL,
  said       TEXT    NOT NULL,                -- prompt, halt reason, problem or note
  reason     TEXT    NOT NULL,                -- a block's reason, a problem's kind
  extend     INTEGER NOT NULL,
  seconds    REAL    NOT NULL,
  output     TEXT    NOT NULL,
  matched    TEXT    NOT NULL,
  observed   INTEGER NOT NULL,
  warning    TEXT    NOT NULL,
  exit       TEXT    NOT NULL DEFAULT '',     -- how a command ended
  log        TEXT    NOT NULL DEFAULT '',     -- the file with its whole output
  tell_user  TEXT    NOT NULL DEFAULT '',
  hidden     INTEGER NOT NULL DEFAULT 0,
  held       INTEGER NOT NULL DEFAULT 0,      -- a problem that counts as a block
  workspace  TEXT    NOT NULL DEFAULT '',     -- the machine it ran on, '' for this one
  definition TEXT    NOT NULL DEFAULT '',     -- a digest of what the gate runs
  asked_when TEXT    NOT NULL DEFAULT '',     -- 'always' or 'changed'
  PRIMARY KEY (stop, position)
) WITHOUT ROWID;
CREATE INDEX reports_by_gate ON reports (gate, stop);

CREATE TABLE acts (                           -- what people did
  id     INTEGER PRIMARY KEY,
  at     REAL NOT NULL,
  what   TEXT NOT NULL,                       -- 'trust', 'revoke', 'off', 'on'
  place  TEXT NOT NULL,                       -- the file or folder, '' for everywhere
  detail TEXT NOT NULL
);

CREATE TABLE passes (                         -- the files on which a gate passed
  definition TEXT    NOT NULL,                -- a digest of what the gate runs
  tree       TEXT    NOT NULL,                -- a fingerprint of the files
  at         REAL    NOT NULL,
  stop       INTEGER NOT NULL DEFAULT 0,      -- 0 for a check outside of a stop
  PRIMARY KEY (definition, tree)
) WITHOUT ROWID;
CREATE INDEX passes_by_time ON passes (at);

CREATE TABLE starts (                         -- the files that an agent started with
  host       TEXT NOT NULL,
  session_id TEXT NOT NULL,
  agent_id   TEXT NOT NULL,                   -- '' for the main agent
  scope      TEXT NOT NULL,                   -- which files these are
  tree       TEXT NOT NULL,                   -- their fingerprint, '' for unknown
  at         REAL NOT NULL,
  PRIMARY KEY (host, session_id, agent_id, scope)
) WITHOUT ROWID;
CREATE INDEX starts_by_time ON starts (at);

-- Supervised agents.
CREATE TABLE owners (
  id          INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice: a silent owner may come back
  pid         INTEGER NOT NULL,
  pid_start   TEXT    NOT NULL,                -- tells its process from a later one
  boot        TEXT    NOT NULL,                -- of the system it runs on, '' where that is not said
  space       TEXT    NOT NULL,                -- whose process ids it has: a container has its own
  program     TEXT    NOT NULL,                -- only its like can go on with its tasks
  lease_until REAL    NOT NULL
);

CREATE TABLE tasks (
  id         TEXT    PRIMARY KEY,
  parent     TEXT    NOT NULL,                 -- a task, '' for none
  about      TEXT    NOT NULL,                 -- JSON of the Task
  owner      INTEGER NOT NULL,                 -- whose process drives it
  run        TEXT    NOT NULL,                 -- the current one
  generation INTEGER NOT NULL,
  ref        TEXT    NOT NULL,                 -- JSON, how to reopen its session
  session_id TEXT    NOT NULL,
  user_turn  INTEGER NOT NULL DEFAULT 1,       -- grows with the messages of a user
  steers     INTEGER NOT NULL DEFAULT 0,       -- by gates
  steered_at REAL    NOT NULL DEFAULT 0,       -- by hand, the last time
  rejected   TEXT    NOT NULL DEFAULT '',      -- the last answer with words of a run that was continued
  created_at REAL    NOT NULL,
  ended_at   REAL,
  ended_by   TEXT    NOT NULL DEFAULT ''       -- 'kill', 'reset', 'interrupt', where a person ended it
) WITHOUT ROWID;
CREATE INDEX tasks_by_owner ON tasks (owner) WHERE ended_at IS NULL;
CREATE INDEX tasks_by_parent ON tasks (parent, ended_at);
CREATE INDEX tasks_by_time ON tasks (created_at);
CREATE INDEX tasks_by_session ON tasks (session_id);

CREATE TABLE runs (
  id          TEXT    PRIMARY KEY,
  task        TEXT    NOT NULL,
  generation  INTEGER NOT NULL,
  state       TEXT    NOT NULL,
  source      TEXT    NOT NULL,                -- who asked for it
  key         TEXT    NOT NULL,                -- of its prompt
  prompt      TEXT    NOT NULL,
  sent        TEXT    NOT NULL,                -- 'reserved', 'dispatched', 'accepted'
  started_at  REAL    NOT NULL,
  finished_at REAL,
  ended_at    REAL,
  ending      TEXT,
  turn        TEXT,                            -- JSON, once it has ended
  UNIQUE (task, generation)
) WITHOUT ROWID;

CREATE TABLE steers (
  key         TEXT    PRIMARY KEY,
  task        TEXT    NOT NULL,
  run         TEXT    NOT NULL,                -- the run that it continues
  source      TEXT    NOT NULL,
  prompt      TEXT    NOT NULL,
  phase       TEXT    NOT NULL,                -- 'reserved', 'dispatched', then 'accepted', 'failed', 'abandoned'
  stop        INTEGER NOT NULL DEFAULT 0,      -- the stop that asked for it, where a gate did
  error       TEXT    NOT NULL DEFAULT '',
  reserved_at REAL    NOT NULL
) WITHOUT ROWID;
CREATE INDEX steers_by_task ON steers (task);
CREATE UNIQUE INDEX steers_in_flight ON steers (task) WHERE phase IN ('reserved', 'dispatched');

CREATE TABLE messages (
  id    INTEGER PRIMARY KEY,
  task  TEXT NOT NULL,
  kind  TEXT NOT NULL,                         -- 'user' or 'machine'
  key   TEXT NOT NULL UNIQUE,                  -- the same message is kept once
  text  TEXT NOT NULL,
  state TEXT NOT NULL,                         -- 'queued', 'taken', then 'sent', 'unsent', 'cleared'
  steer TEXT NOT NULL DEFAULT '',              -- which takes it along
  at    REAL NOT NULL
);
CREATE INDEX messages_by_task ON messages (task);
CREATE INDEX messages_waiting ON messages (task) WHERE state IN ('queued', 'taken');

CREATE TABLE outbox (
  key          TEXT    PRIMARY KEY,            -- of the task and the delivery's generation
  task         TEXT    NOT NULL,
  parent       TEXT    NOT NULL,               -- the parent's task, '' for none
  result       TEXT    NOT NULL,               -- JSON, frozen
  status       TEXT    NOT NULL,               -- 'pending', 'leased', then 'delivered', 'suspended', 'dismissed'
  owner        INTEGER NOT NULL,
  told         INTEGER NOT NULL DEFAULT 0,     -- how far the observers were (task_rows.py)
  attempts     INTEGER NOT NULL DEFAULT 0,
  next_at      REAL    NOT NULL,
  error        TEXT    NOT NULL DEFAULT '',
  created_at   REAL    NOT NULL,
  delivered_at REAL
) WITHOUT ROWID;
CREATE INDEX outbox_open ON outbox (owner, next_at) WHERE status IN ('pending', 'leased');
CREATE INDEX outbox_by_parent ON outbox (parent) WHERE status IN ('pending', 'leased');
CREATE INDEX outbox_by_task ON outbox (task);
