"""A program that speaks as `claude -p --output-format stream-json` does; started, never imported.

What the prompt contains says what it does. It remembers conversations in $FAKE_STATE.
"""

import json
import os
import signal
import subprocess
import sys
import time


def write(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def out(entry):
    write(json.dumps(entry))


def find(option, session, state):
    """Refuse what the real program refuses."""
    if option == "--resume" and not os.path.exists(state):
        error = f"No conversation found with session ID: {session}"
        out({"type": "result", "is_error": True, "errors": [error], "session_id": "another"})
        sys.exit(1)
    if option == "--session-id" and os.path.exists(state):
        sys.exit(f"Error: Session ID {session} is already in use.")


def remember(prompt, state):
    if "early" in prompt:
        time.sleep(60)
    with open(state, "a", encoding="utf-8") as file:
        file.write(json.dumps(prompt) + "\n")
    with open(state, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def misbehave(prompt):
    if "deaf" in prompt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "garbage" in prompt:
        write("not json\n[1, 2]\n" + "x" * 100_000 + "\n\x00\xff")
    if "huge" in prompt:
        write("y" * 9_000_000)
    if "only" in prompt:
        sys.exit(0)


def work(prompt, session):
    out({"type": "system", "subtype": "init", "session_id": session, "model": "fake-1"})
    if "child" in prompt:
        child = subprocess.Popen(["sleep", "60"])
        message = {"content": [{"type": "text", "text": str(child.pid)}]}
        out({"type": "assistant", "message": message, "session_id": session})
    if "slow" in prompt or "deaf" in prompt:
        time.sleep(60)
    if "crash" in prompt:
        sys.exit("something \x1b[31mterrible\x1b[0m happened")


def main():
    args = sys.argv[1:]
    option = "--resume" if "--resume" in args else "--session-id"
    session = args[args.index(option) + 1]
    prompt = sys.stdin.read()
    state = os.path.join(os.environ["FAKE_STATE"], session)
    find(option, session, state)
    history = remember(prompt, state)
    misbehave(prompt)
    work(prompt, session)
    answer = {
        "prompts": len(history),
        "last": history[-1][:20],
        "length": len(prompt),
        "supervised": os.environ.get("NOTYET_SUPERVISED"),
        "group": os.getpgid(0) == os.getpid(),
    }
    text = "" if "empty" in prompt else json.dumps(answer)
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": "m1", "content": [{"type": "text", "text": text}], "usage": usage}
    out({"type": "assistant", "message": message, "session_id": session})
    out({"type": "result", "result": text, "session_id": session, "usage": usage, "num_turns": 1})
    if "linger" in prompt:
        time.sleep(60)


main()
