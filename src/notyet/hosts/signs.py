"""How payloads tell their host, and which programs run agents; see `hosts/detect.py`.

Written by tools/host_index.py (`make docs`) from the modules of the hosts.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.hosts.detect import Sign

SIGNS: tuple[tuple[str, tuple[Sign, ...]], ...] = (
    (
        "codex",
        (
            (("turn_id", "", ()), ("scope", "!", ())),
            (
                ("hook_event_name", "=", ("SessionStart", "SessionEnd")),
                ("transcript_path", "~", ("/rollout-",)),
            ),
            (
                ("hook_event_name", "=", ("SessionStart", "SessionEnd")),
                ("model", "", ()),
                ("permission_mode", "", ()),
                ("source", "", ()),
                ("timestamp", "!", ()),
            ),
        ),
    ),
    (
        "copilot",
        (
            (("stopReason", "", ()), ("sessionId", "", ()), ("hook_event_name", "!", ())),
            (("stop_reason", "", ()), ("timestamp", "", ())),
            (("agentName", "", ()), ("sessionId", "", ()), ("hook_event_name", "!", ())),
            (("initialPrompt", "", ()), ("sessionId", "", ()), ("hook_event_name", "!", ())),
            (("initial_prompt", "", ()), ("timestamp", "", ())),
        ),
    ),
    (
        "cursor",
        ((("cursor_version", "", ()),), (("conversation_id", "", ()), ("generation_id", "", ()))),
    ),
    (
        "devin",
        (
            (
                ("prompt_id", "", ()),
                ("stop_hook_active", "", ()),
                ("transcript_path", "!", ()),
                ("cwd", "!", ()),
            ),
        ),
    ),
    (
        "droid",
        (
            (("transcript_path", "~", ("/.factory/sessions/",)),),
            (("tool_execution_count", "", ()),),
            (("task_name", "", ()),),
        ),
    ),
    (
        "gemini",
        (
            (("hook_event_name", "=", ("AfterAgent", "AfterTool", "BeforeTool")),),
            (
                ("hook_event_name", "=", ("SessionStart", "SessionEnd")),
                ("timestamp", "", ()),
                ("transcript_path", "~", ("/chats/session-",)),
            ),
        ),
    ),
    ("goose", ((("event", "", ()), ("hook_event_name", "!", ())),)),
    ("hermes", ((("hook_event_name", "=", ("pre_verify",)),),)),
    ("kimi", ((("client_type", "=", ("kimi_code_cli",)),),)),
    ("opencode", ((("host", "=", ("opencode",)),),)),
    ("openhands", ((("event_type", "", ()), ("working_dir", "", ()), ("metadata", "", ())),)),
    ("pi", ((("host", "=", ("pi",)),),)),
    (
        "qwen",
        (
            (("crons", "", ()),),
            (("context_limit", "", ()),),
            (("timestamp", "", ()), ("prompt_id", "", ())),
            (("transcript_path", "~", ("/.qwen/",)),),
        ),
    ),
    ("vibe", ((("hook_event_name", "=", ("post_agent",)),),)),
    (
        "vscode",
        (
            (("hookEventName", "", ()), ("sessionId", "", ())),
            (
                ("hook_event_name", "=", ("Stop", "SubagentStop")),
                ("timestamp", "", ()),
                ("stop_hook_active", "", ()),
                ("prompt_id", "!", ()),
                ("crons", "!", ()),
                ("stop_reason", "!", ()),
                ("last_assistant_message", "!", ()),
            ),
        ),
    ),
    ("mux", ((("transcript_path", "~", ("/.mux/sessions/", "/.xum/sessions/")),),)),
    ("notyet", ((("scope", "", ()), ("session_id", "", ())),)),
    ("antigravity", ((("conversationId", "", ()), ("workspacePaths", "", ())),)),
    ("auggie", ((("agent_stop_cause", "", ()),),)),
    ("junie", ((("project_path", "", ()),),)),
    ("letta", ((("event_type", "", ()), ("working_directory", "", ())),)),
    ("windsurf", ((("agent_action_name", "", ()),),)),
    (
        "kiro",
        ((("hook_event_name", "", ()), ("session_id", "!", ()), ("conversation_id", "!", ())),),
    ),
)
PROGRAMS = frozenset(
    [
        "amp",
        "auggie",
        "claude",
        "cline",
        "code",
        "codex",
        "copilot",
        "crush",
        "cursor-agent",
        "devin",
        "droid",
        "gemini",
        "goose",
        "hermes",
        "kimi",
        "letta",
        "mux",
        "neovate",
        "opencode",
        "openhands",
        "pi",
        "qwen",
        "vibe",
        "xum",
    ]
)
