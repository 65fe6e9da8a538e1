"""A client of `codex app-server`: requests and notifications as lines of JSON on its pipes."""

import json
import subprocess
import threading
import time


class AppServer:
    """One server process; use it in a `with`, which ends it and waits for it."""

    def __init__(self, argv, environ, folder, log):
        self.log = log
        with open(log, "ab") as stderr:
            self.process = subprocess.Popen(
                [*argv, "app-server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environ,
                cwd=folder,
            )
        self.notes = []  # (method, params) of all that the server told us, in order
        self._answers = {}
        self._asked = 0
        self._ended = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        try:
            self.ask("initialize", clientInfo={"name": "tests", "title": "tests", "version": "1"})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self._reader.join(20)
            self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self._news:
                if "method" in message:
                    self.notes.append((message["method"], message["params"]))
                else:
                    self._answers[message["id"]] = message
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def ask(self, method, **params):
        """Send a request; return its result."""
        self._asked += 1
        number = self._asked
        line = json.dumps({"id": number, "method": method, "params": params}) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        with self._news:
            self._news.wait_for(lambda: number in self._answers or self._ended, 60)
        answer = self._answers.get(number, {})
        assert "result" in answer, (method, answer, self.log.read_text())
        return answer["result"]

    def wait_for(self, found, seconds=60):
        """Wait until a notification is there that `found(method, params)`; return its params."""
        until = time.monotonic() + seconds
        with self._news:
            while time.monotonic() < until and not self._ended:
                for method, params in self.notes:
                    if found(method, params):
                        return params
                self._news.wait(until - time.monotonic())
        raise AssertionError([method for method, _ in self.notes])

    def hooks(self):
        """Return the hooks that Codex finds for the folder it runs in, and its warnings."""
        (found,) = self.ask("hooks/list")["data"]
        assert not found["errors"]
        return found["hooks"], found["warnings"]

    def new_thread(self, **config):
        """Start a thread; return its id."""
        return self.ask("thread/start", config=config)["thread"]["id"]

    def begin(self, thread, prompt):
        """Start a turn; return its id."""
        words = [{"type": "text", "text": prompt}]
        return self.ask("turn/start", threadId=thread, input=words)["turn"]["id"]

    def ended(self, turn):
        """Wait for the end of a turn; return what the server says of it."""
        return self.wait_for(
            lambda method, params: method == "turn/completed" and params["turn"]["id"] == turn
        )["turn"]

    def hook_runs(self, *events):
        """Return the hook runs that have ended, of the events named: (event, status, entries)."""
        runs = [params["run"] for method, params in self.notes if method == "hook/completed"]
        return [
            (run["eventName"], run["status"], [(e["kind"], e["text"]) for e in run["entries"]])
            for run in runs
            if not events or run["eventName"] in events
        ]
