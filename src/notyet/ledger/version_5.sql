-- Version 5: workspaces on other machines.
ALTER TABLE reports ADD COLUMN workspace TEXT NOT NULL DEFAULT '';  -- where it ran, '' for here
