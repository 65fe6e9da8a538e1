-- Version 3: who holds, and who asks.
ALTER TABLE reports ADD COLUMN held INTEGER NOT NULL DEFAULT 0;     -- a problem that counts as a block
ALTER TABLE stops ADD COLUMN pid_start TEXT NOT NULL DEFAULT '';    -- tells its process from a later one
