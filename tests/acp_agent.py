"""A scripted agent that speaks ACP, versions 1 and 2. What a prompt says is what it does.

Each word in capitals is an order: ASK (for permission), SLOW, CRASH, HANG, HUGE, SILENT, FAIL,
REFUSE, EDIT=path, STEPS (a tool call between words), ODD (answers with another id), NOISE, NOUSAGE,
STOP=reason, WAIT=seconds, BARE (an answer without a reason), LIST (one that is no object), NULL
(one with an empty error beside it), DEAF (closes its stdout). Of version 2 are QUIET (it does not
say that it works), TWICE (it says twice that it is idle), AGAIN (it goes on by itself) and BEHIND
(something ends in the background).
Its options are --no-load, --sign-in (sessions need an API key), --slow-first (the first prompt) and
--stays (for two seconds after its client has left).
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


def update(session, what, /, **fields):
    params = {"sessionId": session, "update": {"sessionUpdate": what, **fields}}
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


def obey(session, word):  # noqa: C901  # a table of orders
    """Do what a word orders; return how the turn ends if that decides it."""
    name, _, value = word.partition("=")
    if name == "CRASH":
        os._exit(7)
    elif name == "ASK":
        say(session, f"permission={json.dumps(ask(session))} ")
    elif name == "HUGE":
        say(session, "H" * 20_000_000)
    elif name == "NOISE":
        sys.stderr.write("noise\n" * 200_000)
    elif name == "STEPS":
        say(session, "first words", "m1")
        update(session, "tool_call", toolCallId="t1", title="Run tests", kind="execute")
        update(session, "tool_call_update", toolCallId="t1", status="completed")
    elif name == "EDIT":
        with open(value, "a", encoding="utf-8") as file:
            file.write("edited\n")
    elif name == "STOP":
        return value
    elif name == "WAIT":
        time.sleep(float(value))
    elif name == "DEAF":
        os.close(1)
        time.sleep(600)
    elif name in {"SLOW", "HANG"}:
        for _ in range(100 if name == "SLOW" else 100_000):
            time.sleep(0.05)
            if is_cancelled(session):
                return "cancelled"
    return ""


def work(number, params):  # noqa: C901  # likewise
    session = params["sessionId"]
    text = "\n".join(block.get("text", "") for block in params["prompt"])
    heard.setdefault(session, []).append(text)
    words, is_new = text.split(), state["version"] != 1
    if "REFUSE" in words:
        send({"id": number, "error": {"code": -32602, "message": "no more prompts"}})
        return
    if is_new:
        send({"id": number, "result": {"messageId": f"u{len(heard[session])}"}})
        if "QUIET" not in words:
            update(session, "state_update", state="running")
    if "--slow-first" in sys.argv and len(heard[session]) == 1:
        words.append("HANG")
    stop = next(filter(None, (obey(session, word) for word in words)), "end_turn")
    if "FAIL" in words:
        send({"id": number, "error": {"code": -32603, "message": "the model failed"}})
        return
    if "SILENT" not in words:
        say(session, f"prompts={len(heard[session])}", "m2")
    usage = {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12}
    more = {} if "NOUSAGE" in words else {"usage": usage}
    if is_new:
        if "BEHIND" in words:
            more["background"] = [{"id": "b1"}]
            update(session, "state_update", state="idle", stopReason=stop, **more)
            time.sleep(1)
            more["background"] = []
        for _ in range(1 + ("TWICE" in words)):
            update(session, "state_update", state="idle", stopReason=stop, **more)
        if "AGAIN" in words:
            time.sleep(1)
            update(session, "state_update", state="running")
            time.sleep(1)
            update(session, "state_update", state="idle", stopReason=stop, **more)
    else:
        number = "another-id" if "ODD" in words else number
        result = {} if "BARE" in words else ["done"] if "LIST" in words else {"stopReason": stop}
        result = {**result, **more} if isinstance(result, dict) else result
        send({"id": number, "result": result, **({"error": None} if "NULL" in words else {})})


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
        result = {
            "protocolVersion": state["version"],
            "agentInfo": info,
            "agentCapabilities": {"loadSession": "--no-load" not in sys.argv},
            "authMethods": [{"id": "scripted-api-key"}],
            "env": dict(os.environ),
        }
        send({"id": number, "result": result})
    elif method == "authenticate":
        state["signed_in"] = message["params"]["methodId"]
        send({"id": number, "result": {}})
    elif "--sign-in" in sys.argv and "signed_in" not in state:
        send({"id": number, "error": {"code": -32000, "message": "Authentication required"}})
    elif method in {"session/new", "session/load", "session/resume", "session/fork"}:
        open_session(number, method, message["params"])
    elif method == "_lose":
        time.sleep(600)
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
        sys.stdout.write(f'{{ "weird" :  "\\u00e9", "jsonrpc":"2.0","id":{number},"result":1}}\n')
        sys.stdout.flush()
    elif method == "_garbage":
        sys.stdout.write("this is not JSON\n")
        sys.stdout.flush()
    elif method is None and number in answers:
        arrived, found = answers[number]
        found.append(message.get("result"))
        arrived.set()

if "--stays" in sys.argv:
    time.sleep(2)
