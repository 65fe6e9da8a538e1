"""The examples of Mux's plan for stop hooks, as they stand there: settings, input and scripts."""

# Chapter "Configuration".
SETTINGS = """\
{
  "hooks": {
    "Stop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "$MUX_PROJECT_DIR/.mux/hooks/stop-check.sh",
            "timeout": 30
          }
        ]
      }
    ],
    "SubagentStop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "/path/to/subagent-stop-hook.py"
          }
        ]
      }
    ]
  }
}
"""
# Chapter "Hook Input".
INPUT = {
    "session_id": "workspace-abc123",
    "transcript_path": "/home/user/.mux/sessions/workspace-abc123/chat.jsonl",
    "cwd": "/path/to/project",
    "permission_mode": "default",
    "hook_event_name": "Stop",
    "stop_hook_active": False,
}
# Chapter "Exit Code 2".
BLOCKING_ERROR = """\
#!/bin/bash
echo "Error: Tests not run. Please run make test before stopping" >&2
exit 2
"""
# The scripts of the chapters "Forcing Agent to Continue" and "Use Cases", as they stand there.
FORCING = """\
#!/usr/bin/env bash
# .mux/stop

# Don't stop if tests haven't been run
if [[ "$MUX_STOP_HOOK_ACTIVE" == "true" ]]; then
  # Already continuing from a stop hook - don't loop
  exit 0
fi

# Check if tests were run in this session
if ! grep -q '"tool_name":"bash".*"script":".*test' "$MUX_TRANSCRIPT_PATH" 2>/dev/null; then
  echo "Please run tests before stopping" >&2
  exit 2
fi

exit 0
"""
TEST_VERIFICATION = """\
# .mux/stop
if ! grep -q 'test.*pass' "$MUX_TRANSCRIPT_PATH"; then
  echo "Run and verify tests pass before stopping" >&2
  exit 2
fi
"""
LINT_CHECK = """\
# .mux/stop
if make lint 2>&1 | grep -q 'error'; then
  echo "Fix lint errors before stopping" >&2
  exit 2
fi
"""
COMMIT_REMINDER = """\
# .mux/stop
if [[ -n "$(git status --porcelain)" ]]; then
  echo "You have uncommitted changes. Please commit or stash." >&2
  exit 2
fi
"""
SUBAGENT_CHECK = """\
# .mux/subagent_stop
# Ensure subagent actually did something
if ! grep -q 'tool_name' "$MUX_TRANSCRIPT_PATH"; then
  echo "Subagent should use tools to complete the task" >&2
  exit 2
fi
"""
