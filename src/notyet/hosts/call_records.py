"""The records by which hosts write down the calls of tools, one reader for each host.

A reader gets a record that has the shape of its host's, of which the rest may be anything.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from notyet.hosts.tool_call import COMMANDS, MOST_PATHS
from notyet.hosts.transcript import joined, table_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet.hosts.tool_call import Calls


def reader_of(entry: dict[str, Any]) -> Callable[[Calls, int, dict[str, Any]], None] | None:
    """Return what reads a record, by its shape; None if no host writes such."""
    kind = entry.get("type")
    if kind in {"session_meta", "turn_context", "response_item", "event_msg"}:
        return _read_codex
    if kind in {"assistant", "user", "tool_result", "system"} and "uuid" in entry:
        return _read_qwen if "parts" in table_in(entry.get("message")) else _claude_or_none(kind)
    if kind in {"session_start", "message"} and ("message" in entry or "cwd" in entry):
        return _read_droid
    if "$set" in entry or (kind in {"gemini", "user"} and "timestamp" in entry):
        return _read_gemini
    if "projectHash" in entry:
        return _read_gemini
    if isinstance(kind, str) and "." in kind and isinstance(entry.get("data"), dict):
        return _read_copilot
    return None


_LATEST = 2.0**53  # milliseconds, and what JSON calls Infinity is later


def _claude_or_none(kind: object) -> Callable[[Calls, int, dict[str, Any]], None] | None:
    return _read_claude if kind in {"assistant", "user"} else None


def _seconds(stamp: object) -> float | None:
    """Return a time as seconds since 1970, from a text or from milliseconds."""
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
        return stamp / 1000 if abs(stamp) < _LATEST else None
    try:
        moment = datetime.fromisoformat(stamp) if isinstance(stamp, str) else None
    except ValueError:
        return None
    return moment.timestamp() if moment and moment.tzinfo else None


def _blocks(entry: dict[str, Any]) -> list[dict[str, Any]]:
    content = table_in(entry.get("message")).get("content")
    return [table_in(block) for block in content] if isinstance(content, list) else []


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# Claude Code: a call in a message of the assistant, its result in one of the user. A command that
# failed is an error; the structured result says whether it went to the background.


def _read_claude(calls: Calls, number: int, entry: dict[str, Any]) -> None:
    blocks, stamp = _blocks(entry), _seconds(entry.get("timestamp"))
    if entry["type"] == "assistant":
        for block in blocks:
            if block.get("type") == "tool_use":
                given, folder = block.get("input"), entry.get("cwd")
                calls.begin(number, block.get("id"), block.get("name"), given, folder, time=stamp)
        return
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        key, about = block.get("tool_use_id"), entry.get("toolUseResult")
        error = block.get("is_error")
        # Old versions leave `is_error` out; then only a structured result says that it ran.
        succeeded = not error if isinstance(error, bool) else None
        if error is None and isinstance(about, dict) and len(results) == 1:
            succeeded = True
        details = table_in(about)
        if details.get("interrupted") is True or details.get("returnCodeInterpretation"):
            succeeded = None
        if details.get("backgroundTaskId"):
            calls.change(key, background=True)
        text = joined(block.get("content"))
        calls.end(number, key, succeeded=succeeded, output=text, time=stamp)


# Codex: calls and their outputs are items of the model's conversation. What the program itself
# knows of a command or a patch stands in events; old versions have only the output's head.

_EXITED = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_RUNNING = "Process running with session ID"


def _read_codex(calls: Calls, number: int, entry: dict[str, Any]) -> None:
    payload = table_in(entry.get("payload"))
    kind, stamp = payload.get("type"), _seconds(entry.get("timestamp"))
    key = payload.get("call_id")
    if entry["type"] in {"session_meta", "turn_context"}:
        folder = payload.get("cwd")
        calls.folder = folder if isinstance(folder, str) else calls.folder
    elif kind == "function_call":
        given = _parsed(payload.get("arguments"))
        calls.begin(number, key, payload.get("name"), given, calls.folder, time=stamp)
    elif kind == "custom_tool_call":
        given = {"input": payload.get("input")}
        calls.begin(number, key, payload.get("name"), given, calls.folder, time=stamp)
    elif kind == "local_shell_call":
        action = table_in(payload.get("action"))
        given = {"command": action.get("command"), "workdir": action.get("working_directory")}
        calls.begin(number, key, "local_shell", given, calls.folder, time=stamp)
    elif kind in {"function_call_output", "custom_tool_call_output"}:
        _end_codex(calls, number, key, payload.get("output"), stamp)
    else:
        item = table_in(payload.get("item")) if kind == "item_completed" else payload
        ended = _CODEX_EVENTS.get(str(item.get("type")))
        if ended:
            ended(calls, number, item, stamp)


def _end_codex_command(
    calls: Calls, number: int, item: dict[str, Any], stamp: float | None
) -> None:
    key = item.get("call_id", item.get("id"))
    code = item.get("exit_code")
    succeeded = code == 0 if _is_number(code) else None
    folder = item.get("cwd")
    if isinstance(folder, str) and folder:
        calls.change(key, folder=unquote(folder.removeprefix("file://")))
    output = item.get("aggregated_output")
    calls.change(key, background=False)
    calls.end(number, key, succeeded=succeeded, output=output, time=stamp, is_certain=True)


def _end_codex_patch(calls: Calls, number: int, item: dict[str, Any], stamp: float | None) -> None:
    key = item.get("call_id", item.get("id"))
    is_done = item.get("success") is True or item.get("status") == "completed"
    calls.end(number, key, succeeded=is_done, time=stamp, is_certain=True)
    names = tuple(name for name in table_in(item.get("changes")) if isinstance(name, str))
    calls.change(key, kind="edit", paths=names[:MOST_PATHS])


_CODEX_EVENTS = {  # the newer name of each, and the older one
    "CommandExecution": _end_codex_command,
    "exec_command_end": _end_codex_command,
    "FileChange": _end_codex_patch,
    "patch_apply_end": _end_codex_patch,
}


def _end_codex(calls: Calls, number: int, key: object, output: object, stamp: float | None) -> None:
    """Read the exit code from the head of an output, which the program writes before the text."""
    text = output if isinstance(output, str) else joined(output)
    table = table_in(_parsed(text)) or table_in(output)
    code = table_in(table.get("metadata")).get("exit_code")
    if _is_number(code):
        calls.end(number, key, succeeded=code == 0, output=table.get("output"), time=stamp)
        return
    head, found, rest = text.partition("\nOutput:\n")
    exited = _EXITED.search(head) if found else None
    if found and _RUNNING in head:
        calls.change(key, background=True)
    succeeded = int(exited[1]) == 0 if exited else None
    if found or not text.startswith("apply_patch verification failed"):
        calls.end(number, key, succeeded=succeeded, output=rest or text, time=stamp)
    else:
        calls.end(number, key, succeeded=False, output=text, time=stamp)


def _parsed(text: object) -> object:
    if not isinstance(text, str) or text[:1] != "{":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# Gemini CLI: a message is written again with its calls once they have ended. The status of a
# command that ran is "success" even if it failed; the text then has a line with the exit code.

_FAILED = re.compile(r"^(?:Exit Code: (?!0$).*|Signal: (?!\(none\)$|0$).*)$", re.MULTILINE)
_ZERO = re.compile(r"^Exit Code: 0$", re.MULTILINE)
_ENDED = "\nProcess Group PGID: "
_IN_BACKGROUND = "Command moved to background"


def _read_gemini(calls: Calls, number: int, entry: dict[str, Any]) -> None:
    messages = table_in(entry.get("$set")).get("messages")
    for message in map(table_in, messages if isinstance(messages, list) else [entry]):
        begun = calls.first_seen(str(message.get("id")), number)
        made = message.get("toolCalls")
        for call in map(table_in, made if isinstance(made, list) else ()):
            given, stamp = call.get("args"), _seconds(message.get("timestamp"))
            calls.begin(begun, call.get("id"), call.get("name"), given, time=stamp)
            _end_gemini(calls, number, call)


def _end_gemini(calls: Calls, number: int, call: dict[str, Any]) -> None:
    status, text = call.get("status"), _response_in(call.get("result"))
    if status not in {"success", "error", "cancelled"}:
        return
    succeeded: bool | None = status == "success"
    if succeeded and call.get("name") in COMMANDS:
        succeeded = _gemini_exit(text)
        if _IN_BACKGROUND in text[:200]:
            calls.change(call.get("id"), background=True)
    stamp = _seconds(call.get("timestamp"))
    calls.end(number, call.get("id"), succeeded=succeeded, output=text, time=stamp)


def _gemini_exit(text: str) -> bool | None:
    """Return whether a command succeeded: what follows its output says so."""
    if _FAILED.search(text):
        return False
    is_whole = "Output: " in text[:200] and _ENDED in text[-200:]
    return True if is_whole or _ZERO.search(text[-500:]) else None


def _response_in(parts: object) -> str:
    for part in map(table_in, parts if isinstance(parts, list) else ()):
        response = table_in(table_in(part.get("functionResponse")).get("response"))
        for key in ("output", "error"):
            if isinstance(response.get(key), str):
                return str(response[key])
    return ""


# Qwen Code: calls and results are parts of messages; the result says the exit code as a number,
# and in older versions as a line after the output.


def _read_qwen(calls: Calls, number: int, entry: dict[str, Any]) -> None:
    parts = table_in(entry.get("message")).get("parts")
    about, stamp = table_in(entry.get("toolCallResult")), _seconds(entry.get("timestamp"))
    for part in map(table_in, parts if isinstance(parts, list) else ()):
        call, response = table_in(part.get("functionCall")), part.get("functionResponse")
        if call and entry["type"] == "assistant":
            given, folder = call.get("args"), entry.get("cwd")
            calls.begin(number, call.get("id"), call.get("name"), given, folder, time=stamp)
        elif response and entry["type"] == "tool_result":
            key, name = table_in(response).get("id"), table_in(response).get("name")
            text, shown = _response_in([part]), table_in(about.get("resultDisplay"))
            succeeded = {"success": True, "error": False}.get(str(about.get("status")))
            if succeeded and name in COMMANDS:
                code = shown.get("exitCode")
                succeeded = code == 0 if _is_number(code) else _last_exit(text)
            calls.end(number, key, succeeded=succeeded, output=text, time=stamp)


def _last_exit(text: str) -> bool | None:
    """Return whether the last line with an exit code says 0; what the command said is before it."""
    _, found, rest = text.rpartition("\nExit Code: ")
    return rest.partition("\n")[0].strip() == "0" if found else None


# GitHub Copilot CLI: events of the program.


def _read_copilot(calls: Calls, number: int, entry: dict[str, Any]) -> None:
    data, stamp = table_in(entry.get("data")), _seconds(entry.get("timestamp"))
    key = data.get("toolCallId")
    if entry["type"] == "session.start":
        folder = table_in(data.get("context")).get("cwd")
        calls.folder = folder if isinstance(folder, str) else ""
    elif entry["type"] == "tool.execution_start":
        given = data.get("arguments")
        calls.begin(number, key, data.get("toolName"), given, calls.folder, time=stamp)
    elif entry["type"] == "tool.execution_complete":
        code = table_in(data.get("shellExecution")).get("exitCode")
        is_done = data.get("success") is True
        text = joined(table_in(data.get("result")).get("content"))
        known = is_done if not is_done or "fileEdits" in data else None
        succeeded = is_done and code == 0 if _is_number(code) else known
        calls.end(number, key, succeeded=succeeded, output=text, time=stamp)


# Factory Droid: messages as of Claude Code; the last line of a command's result has its exit code.

_DROID_EXIT = re.compile(r"\[Process exited with code (-?\d+)\]\s*\Z")


def _read_droid(calls: Calls, number: int, entry: dict[str, Any]) -> None:
    if entry["type"] == "session_start":
        folder = entry.get("cwd")
        calls.folder = folder if isinstance(folder, str) else ""
        return
    role, stamp = table_in(entry.get("message")).get("role"), _seconds(entry.get("timestamp"))
    for block in _blocks(entry):
        if role == "assistant" and block.get("type") == "tool_use":
            given = block.get("input")
            calls.begin(number, block.get("id"), block.get("name"), given, calls.folder, time=stamp)
        elif role == "user" and block.get("type") == "tool_result":
            text, error = joined(block.get("content")), block.get("is_error")
            exited = _DROID_EXIT.search(text[-200:])
            succeeded = not error if isinstance(error, bool) else None
            key = block.get("tool_use_id")
            if calls.is_command(key) and succeeded:
                succeeded = exited[1] == "0" if exited else None
            calls.end(number, key, succeeded=succeeded, output=text, time=stamp)


# OpenCode: a part of a message, with the call and what became of it.


def read_opencode(calls: Calls, number: int, data: object) -> None:
    part = table_in(_parsed(data) if isinstance(data, str) else None)
    state = table_in(part.get("state"))
    if part.get("type") != "tool":
        return
    key, name = part.get("callID"), part.get("tool")
    times = table_in(state.get("time"))
    stamp = _seconds(times.get("start"))
    calls.begin(number, key, name, state.get("input"), calls.folder, time=stamp)
    status = state.get("status")
    if status in {"completed", "error"}:
        code = table_in(state.get("metadata")).get("exit")
        succeeded: bool | None = status == "completed"
        if succeeded and name in COMMANDS:
            succeeded = code == 0 if _is_number(code) else None
        stamp = _seconds(times.get("end"))
        calls.end(number, key, succeeded=succeeded, output=state.get("output"), time=stamp)
