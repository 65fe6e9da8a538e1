"""A scripted agent that speaks ACP, versions 1 and 2. What a prompt says is what it does.

Each word of a prompt in capitals is an order: ASK (for permission), SLOW, CRASH, HANG, HUGE, SILENT,
FAIL, REFUSE, EDIT=path, ODD (answers with another id), STEPS (a tool call, and words after it).
"""

import json
import os
import sys
import threading
import time

lock = threading.Lock()
answers = {}  # of the client, by id
cancelled = set()
state = {"version": 1, "number": 0}
heard = {}  # prompts, by session


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def update(session, kind, **fields):
    params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
    send({"method": "session/update", "params": params})


def say(session, text, message=None):
    fields = {"messageId": message} if message else {}
    update(session, "agent_message_chunk", content={"type": "text", "text": text}, **fields)


def next_number():
    with lock:
        state["number"] += 1
        return state["number"]


def ask(session):
    number, arrived = f"ask-{next_number()}", threading.Event()
    answers[number] = (arrived, [])
    call = {"toolCallId": "c1", "title": "write"}
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    params = {"sessionId": session, "toolCall": call, "options": options}
    send({"id": number, "method": "session/request_permission", "params": params})
    arrived.wait(30)
    found = answers[number][1]
    return found[0] if found else None


def is_cancelled(session):
    with lock:
        if session in cancelled:
            cancelled.remove(session)
            return True
    return False


def work(number, params):
    session = params["sessionId"]
    text = "\n".join(block.get("text", "") for block in params["prompt"])
    heard.setdefault(session, []).append(text)
    words, stop = text.split(), "end_turn"
    is_new = state["version"] != 1
    if "REFUSE" in words:
        send({"id": number, "error": {"code": -32602, "message": "no more prompts"}})
        return
    if is_new:
        send({"id": number, "result": {"messageId": f"u{len(heard[session])}"}})
        update(session, "state_update", state="running")
    for word in words:
        if word == "CRASH":
            os._exit(7)
        if word == "ASK":
            say(session, f"permission={json.dumps(ask(session))} ")
        if word == "HUGE":
            say(session, "H" * 20_000_000)
        if word == "STEPS":
            say(session, "first words", "m1")
            update(session, "tool_call", toolCallId="t1", title="Run tests", kind="execute")
            update(session, "tool_call_update", toolCallId="t1", status="completed")
        if word.startswith("EDIT="):
            with open(word[5:], "a", encoding="utf-8") as file:
                file.write("edited\n")
        if word in {"SLOW", "HANG"}:
            for _ in range(100 if word == "SLOW" else 100_000):
                time.sleep(0.05)
                if is_cancelled(session):
                    stop = "cancelled"
                    break
    if "FAIL" in words:
        send({"id": number, "error": {"code": -32603, "message": "the model failed"}})
        return
    if "SILENT" not in words:
        say(session, f"prompts={len(heard[session])}", "m2")
    if is_new:
        update(session, "state_update", state="idle", stopReason=stop)
        return
    if "ODD" in words:
        number = "another-id"
    usage = {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12}
    send({"id": number, "result": {"stopReason": stop, "usage": usage}})


def open_session(number, method, params):
    session = f"s{next_number()}-{os.getpid()}"
    if method in {"session/load", "session/resume"}:
        session = params["sessionId"]
        send({"id": number, "result": None if method == "session/load" else {}})
        return
    send({"id": number, "result": {"sessionId": session}})


for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        state["version"] = message["params"]["protocolVersion"]
        info = {"name": "scripted", "version": "1"}
        result = {"protocolVersion": state["version"], "agentInfo": info, "env": dict(os.environ)}
        send({"id": number, "result": result})
    elif method in {"session/new", "session/load", "session/resume", "session/fork"}:
        open_session(number, method, message["params"])
    elif method == "session/prompt":
        threading.Thread(target=work, args=(number, message["params"]), daemon=True).start()
    elif method == "session/cancel":
        with lock:
            cancelled.add(message["params"]["sessionId"])
    elif method == "$/cancel_request":
        send({"method": "_saw_cancel", "params": message["params"]})
    elif method == "_heard":
        send({"id": number, "result": heard.get(message["params"]["sessionId"], [])})
    elif method == "_odd":
        sys.stdout.write('{ "weird" :  "\\u00e9", "jsonrpc":"2.0","id":%s,"result":1}\n' % number)
        sys.stdout.flush()
    elif method == "_garbage":
        sys.stdout.write("this is not JSON\n")
        sys.stdout.flush()
    elif method is None and number in answers:
        arrived, found = answers[number]
        found.append(message.get("result"))
        arrived.set()
