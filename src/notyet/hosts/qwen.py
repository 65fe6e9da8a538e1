"""Qwen Code, measured on 0.24.4 and 0.15.10 with a scripted model (docs/how-to/qwen.md).

`continue: false` keeps its agents going and `stopReason` replaces the reason: neither is written.
"""

from __future__ import annotations

from notyet.hosts.host import ClaudeLike, CommandLine, FolderTrust, Plugin

HOST = ClaudeLike(
    name="qwen",
    title="Qwen Code",
    program="qwen",
    proof="proven",
    tested="0.24.4",
    tested_on="2026-11-16",
    signs=("crons", "context_limit", "timestamp prompt_id", "transcript_path~/.qwen/"),
    flag_is_reliable=False,  # 0.15.10 always says true; later versions name the turn
    project_variable="QWEN_PROJECT_DIR",
    version_variable="QWEN_CODE_STARTUP_VERSION",
    cap=8,  # it counts the block that it overrides: seven are honoured
    cap_variable="QWEN_CODE_STOP_HOOK_BLOCK_CAP",
    halt={},
    settings={"user": ".qwen/settings.json", "project": ".qwen/settings.json"},
    plugin=Plugin(
        folder="extensions/notyet",
        key="",
        switches="extensions/extension-enablement.json",
        is_on_by_itself=True,
        remove="run: qwen extensions uninstall notyet",
    ),
    home_variable="QWEN_HOME",
    folder_trust=FolderTrust(
        file=".qwen/trustedFolders.json",
        values=("TRUST_FOLDER",),
        parents=("TRUST_PARENT",),
        refused=("DO_NOT_TRUST",),
        switch=(".qwen/settings.json", "security", "folderTrust", "enabled"),
        is_on=False,
        how="start qwen in this folder, type /trust and trust it",
    ),
    switches={"disableAllHooks": True},
    timeout=60.0,
    timeout_unit=0.001,
    seconds_below=1000,
    inside=("QWEN_CODE",),
    command_line=CommandLine(
        start="{args} -o stream-json --session-id {id}",
        resume="{args} -o stream-json --resume {id}",
        output="qwen-stream",
        install="npm install -g @qwen-code/qwen-code",
        unknown=("No saved session found",),
        taken="already in use",
    ),
)
