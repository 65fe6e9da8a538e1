"""Devin CLI, mostly by what others cite of its docs, never run here (docs/how-to/devin.md).

Its payloads name neither the folder nor the last message. It has no event for subagents.
"""

from __future__ import annotations

from notyet.hosts.host import ClaudeLike

HOST = ClaudeLike(
    name="devin",
    title="Devin CLI",
    program="devin",
    proof="source",
    derived_from="repositories of others that cite docs.devin.ai, read in November 2026",
    holds={"agent": "yes", "subagent": "no"},
    signs=("prompt_id stop_hook_active !transcript_path !cwd",),
    stops={"Stop": "agent"},
    starts={},
    failures=(),
    project_variable="DEVIN_PROJECT_DIR",
    halt={},  # it documents no other answer than a block
    context={},
    note="",
    settings={"user": ".config/devin/config.json", "project": ".devin/config.json"},
    looks_above=True,
    timeout=30.0,  # not documented
    runs_files_of=("claude",),
)
