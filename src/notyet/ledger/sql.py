"""The ledger's statements. Values are always bound; the names of columns are our own."""

from __future__ import annotations

from notyet.ledger.rows import HISTORY_COLUMNS, REPORT_COLUMNS, STOP_COLUMNS


def _marks(columns: tuple[str, ...]) -> str:
    return ", ".join("?" * len(columns))


def _settings(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{name} = ?" for name in columns)


FIND_AGENT = (
    f"SELECT id, last_stop, seen_at, {', '.join(HISTORY_COLUMNS)} FROM agents"
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
ASKING = f"SELECT id, digest, {ASKER} FROM stops WHERE agent = ? AND outcome = 'asking'"
ANSWER_AGAIN = (
    "UPDATE stops SET repeated = repeated + 1"
    " WHERE id = ? AND digest = ? AND ended_at > ? AND repeated < ?"
)
OVERRIDE = (
    "UPDATE stops SET outcome = 'overridden' WHERE id = ? AND outcome = 'blocked'"
    " AND NOT EXISTS (SELECT 1 FROM stops AS later WHERE later.agent = ? AND later.id > ?)"
)
