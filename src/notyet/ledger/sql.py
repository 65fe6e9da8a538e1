"""The ledger's statements. Values are always bound; the names of columns are our own."""

from __future__ import annotations

from notyet.ledger.rows import HISTORY_COLUMNS, REPORT_COLUMNS, STOP_COLUMNS


def _marks(columns: tuple[str, ...]) -> str:
    return ", ".join("?" * len(columns))


def _settings(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{name} = ?" for name in columns)


FIND_AGENT = (
    f"SELECT id, last_stop, {', '.join(HISTORY_COLUMNS)} FROM agents"
    " WHERE host = ? AND session_id = ? AND agent_id = ?"
)
AGENT_OF_STOP = (
    f"SELECT agents.id, last_stop, {', '.join('agents.' + name for name in HISTORY_COLUMNS)}"
    " FROM stops JOIN agents ON agents.id = stops.agent WHERE stops.id = ? AND token = ?"
    " AND (outcome = 'asking' OR (outcome = 'skipped' AND why = 'lost'))"
)
NEW_AGENT = (
    f"INSERT INTO agents (last_stop, host, session_id, agent_id, seen_at,"
    f" {', '.join(HISTORY_COLUMNS)}) VALUES (0, ?, ?, ?, ?, {_marks(HISTORY_COLUMNS)})"
)
SEE_AGENT = f"UPDATE agents SET seen_at = ?, {_settings(HISTORY_COLUMNS)} WHERE id = ?"
COUNT = f"UPDATE agents SET last_stop = ?, seen_at = ?, {_settings(HISTORY_COLUMNS)} WHERE id = ?"
ASKER = "token, pid, pid_start, begun_at"  # what `is_lost` wants to know
NEW_STOP = (
    "INSERT INTO stops (agent, turn, begun_at, pid, pid_start, token, digest, event, place,"
    " outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'asking')"
)
DECIDE = f"UPDATE stops SET ended_at = ?, {_settings(STOP_COLUMNS)} WHERE id = ?"
NEW_REPORT = f"INSERT INTO reports ({', '.join(REPORT_COLUMNS)}) VALUES ({_marks(REPORT_COLUMNS)})"
READ_STOP = f"SELECT {ASKER}, {', '.join(STOP_COLUMNS)} FROM stops WHERE id = ?"
READ_REPORTS = f"SELECT {', '.join(REPORT_COLUMNS)} FROM reports WHERE stop = ? ORDER BY position"
ASKING = f"SELECT id, digest, {ASKER} FROM stops WHERE agent = ? AND outcome = 'asking'"
ANSWER_AGAIN = (
    "UPDATE stops SET repeated = repeated + 1"
    " WHERE id = ? AND digest = ? AND ended_at > ? AND repeated < ?"
)
GIVE_UP = (
    "UPDATE stops SET outcome = 'skipped', verdict = 'allow', why = 'cancelled', ended_at = ?"
    " WHERE id = ? AND token = ? AND outcome = 'asking'"
)
SKIP = (
    "INSERT INTO stops (agent, turn, begun_at, ended_at, pid, token, digest, event, place, why,"
    " warnings, outcome, verdict) VALUES (ifnull((SELECT id FROM agents WHERE host = ?"
    " AND session_id = ? AND agent_id = ?), 0), 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'skipped', 'allow')"
)
OVERRIDE = (
    "UPDATE stops SET outcome = 'overridden' WHERE id = ? AND outcome = 'blocked'"
    " AND NOT EXISTS (SELECT 1 FROM stops AS later WHERE later.agent = ? AND later.id > ?)"
)
OLD_ASKING = f"SELECT id, {ASKER} FROM stops WHERE outcome = 'asking' AND begun_at < ?"
# Looked up for each stop: among the agents of a large ledger, those at work are few.
NOT_AT_WORK = (
    "NOT EXISTS (SELECT 1 FROM agents WHERE agents.id = stops.agent AND last_stop = stops.id"
    " AND blocked AND seen_at >= ?)"
)
OLD_STOPS = (
    "SELECT id FROM stops INDEXED BY stops_by_time WHERE begun_at < ? AND outcome != 'asking'"
    f" AND id <= (SELECT max(id) FROM stops) - ? AND {NOT_AT_WORK} LIMIT ?"
)
OLD_AGENTS = (
    "DELETE FROM agents WHERE id IN (SELECT id FROM agents INDEXED BY agents_by_time"
    " WHERE seen_at < ? AND (session_blocks = 0 OR seen_at < ?) AND NOT EXISTS"
    " (SELECT 1 FROM stops WHERE stops.agent = agents.id) LIMIT ?)"
)
ACT = "INSERT INTO acts (at, what, place, detail) VALUES (?, ?, ?, ?)"
