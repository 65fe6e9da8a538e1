-- Version 2: command gates, and what people did.
ALTER TABLE reports ADD COLUMN exit TEXT NOT NULL DEFAULT '';       -- how a command ended
ALTER TABLE reports ADD COLUMN log TEXT NOT NULL DEFAULT '';        -- the file with its whole output
ALTER TABLE reports ADD COLUMN tell_user TEXT NOT NULL DEFAULT '';
ALTER TABLE reports ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;

CREATE TABLE acts (
  id     INTEGER PRIMARY KEY,
  at     REAL NOT NULL,
  what   TEXT NOT NULL,                       -- 'trust', 'revoke', 'off', 'on'
  place  TEXT NOT NULL,                       -- the file or folder, '' for everywhere
  detail TEXT NOT NULL
)
