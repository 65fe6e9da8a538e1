-- Version 4: supervised agents.
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

CREATE TABLE intents (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,    -- never given twice: what it asks for is keyed by it
  task   TEXT NOT NULL,
  what   TEXT NOT NULL,                        -- 'steer', 'kill', 'reset', 'interrupt', 'say'
  text   TEXT NOT NULL,
  at     REAL NOT NULL,
  state  TEXT NOT NULL,                        -- 'pending', then 'done' or 'refused'
  answer TEXT NOT NULL DEFAULT ''
);
CREATE INDEX intents_by_task ON intents (task);
CREATE INDEX intents_pending ON intents (task) WHERE state = 'pending';

CREATE TABLE outbox (
  key          TEXT    PRIMARY KEY,            -- of the task and the delivery's generation
  task         TEXT    NOT NULL,
  parent       TEXT    NOT NULL,               -- the parent's task, '' for none
  result       TEXT    NOT NULL,               -- JSON, frozen
  status       TEXT    NOT NULL,               -- 'pending', 'leased', then 'delivered', 'suspended', 'dismissed'
  owner        INTEGER NOT NULL,
  told         INTEGER NOT NULL DEFAULT 0,     -- the observers were told
  attempts     INTEGER NOT NULL DEFAULT 0,
  next_at      REAL    NOT NULL,
  error        TEXT    NOT NULL DEFAULT '',
  created_at   REAL    NOT NULL,
  delivered_at REAL
) WITHOUT ROWID;
CREATE INDEX outbox_open ON outbox (owner, next_at) WHERE status IN ('pending', 'leased');
CREATE INDEX outbox_by_parent ON outbox (parent) WHERE status IN ('pending', 'leased');
CREATE INDEX outbox_by_task ON outbox (task)
