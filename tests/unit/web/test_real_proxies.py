"""The page behind real proxies, configured as the documentation says."""

import base64
import http.client
import os
import re
import shutil
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from hook_runs import ENTRY
from notyet import Ledger
from notyet.core.task import Task
from notyet.ledger.leases import Leases
from notyet.ledger.tasks import Tasks
from notyet.web import server
from supervised import first_run
from support import decide, rows, stop, wait_for

DOCS = Path(__file__).parents[3] / "docs" / "how-to" / "page.md"
NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/log; {user}
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  {server}
}}
"""
USERS = ("alice", "carol")  # carol can sign in, and is not on the page's list


def documented(language):
    (block,) = re.findall(rf"```{language}\n(.*?)```", DOCS.read_text(), re.DOTALL)
    return block


def free_port():
    with closing(server.listen(0)) as free:
        return free.getsockname()[1]


def nginx(folder, own, behind):
    """Return the command of an nginx with the documented server, without TLS."""
    (folder / "users").write_text("".join(f"{name}:{{PLAIN}}secret\n" for name in USERS))
    block = re.sub(r" *ssl_certificate.*\n", "", documented("nginx"))
    block = block.replace("listen 443 ssl;", f"listen 127.0.0.1:{own};").replace(
        "8700", str(behind)
    )
    block = block.replace("/etc/nginx/agents.htpasswd", f"{folder}/users")
    user = "user root;" if os.getuid() == 0 else ""
    (folder / "conf").write_text(NGINX.format(folder=folder, server=block, user=user))
    return ["nginx", "-c", f"{folder}/conf", "-p", str(folder), "-e", f"{folder}/log"]


def caddy(folder, own, behind):
    """Return the command of a Caddy with the documented site, without TLS."""
    hashing = ["caddy", "hash-password", "--plaintext", "secret"]
    digest = subprocess.run(hashing, capture_output=True, text=True, check=True).stdout.strip()
    block = documented("caddy").replace("8700", str(behind))
    block = block.replace("agents.example.com", f"http://127.0.0.1:{own}")
    lines = "\n".join(f"{name} {digest}" for name in USERS)
    block = block.replace("alice HASH", lines)
    (folder / "Caddyfile").write_text(f"{{\nadmin off\nauto_https off\n}}\n{block}")
    return ["caddy", "run", "--config", f"{folder}/Caddyfile", "--adapter", "caddyfile"]


@contextmanager
def running(command, **more):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


class Proxied:
    """A page behind a proxy, as a browser reaches it."""

    def __init__(self, port, ledger):
        self.port, self.ledger, self.origin = port, ledger, f"http://127.0.0.1:{port}"

    @contextmanager
    def asked(self, method, path, user="alice", body=None, **headers):
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            if user:
                known = base64.b64encode(f"{user}:secret".encode()).decode()
                headers["Authorization"] = f"Basic {known}"
            headers = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, headers)
            yield connection.getresponse()

    def get(self, path, user="alice", **headers):
        with self.asked("GET", path, user, **headers) as answer:
            return answer.status, answer.read().decode()

    def is_up(self):
        try:
            return self.get("/")[0] == 200
        except OSError:
            return False


@pytest.fixture(params=[nginx, caddy], ids=["nginx", "caddy"])
def proxied(request, tmp_path):
    name = request.param.__name__
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    ledger = Ledger(tmp_path / "ledger.db")
    decide(ledger, stop())
    own, behind = free_port(), free_port()
    page = [
        sys.executable,
        ENTRY,
        "page",
        "--ledger",
        str(tmp_path / "ledger.db"),
        "--behind-proxy",
    ]
    page += ["--port", str(behind), "--origin", f"http://127.0.0.1:{own}", "--user", "alice"]
    command = request.param(tmp_path, own, behind)
    with running([*page, "--allow-actions"]), running(command, env={**os.environ}):
        found = Proxied(own, ledger)
        wait_for(found.is_up)
        yield found
    ledger.close()


@pytest.mark.file_only("the page is another process")
def test_a_proxy_signs_people_in_and_names_them(proxied):
    assert proxied.get("/", user="")[0] == 401
    status, text = proxied.get("/", user="carol")
    assert status == 403
    assert text.startswith("carol is not on this page's list of users")
    status, text = proxied.get("/")
    assert status == 200
    assert ">alice</span>" in text
    # What a browser sends does not count.
    assert proxied.get("/", user="carol", X_Forwarded_User="alice")[0] == 403
    assert ">alice</span>" in proxied.get("/", X_Forwarded_User="mallory")[1]
    assert proxied.get("/", user="", X_Forwarded_User="alice")[0] == 401

    with proxied.asked("GET", "/events") as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")

        def event():
            for line in iter(stream.readline, b""):
                if line.startswith(b"event:"):
                    return line.split()[1].decode()
            return None

        assert [event(), event()] == ["hello", "changed"]
        decide(proxied.ledger, stop(session_id="s2"))
        assert event() == "changed"

    owner = Leases(proxied.ledger.connection).enrol(1000.0)
    task = Task(id="t1", prompt="do it", scope="agent")
    limits = {"max_depth": 9, "max_children": 9}
    Tasks(proxied.ledger).start(task, first_run("t1"), owner, {"agent": "a"}, "s9", **limits)
    token = re.search(r'name="token" value="(\w+)"', proxied.get("/tasks/t1")[1])[1]
    body = urlencode({"action": "say", "text": "Hello", "token": token})
    kind = {"Content_Type": "application/x-www-form-urlencoded"}
    for origin in ({}, {"Origin": "https://evil.example"}):
        with proxied.asked("POST", "/tasks/t1", "alice", body, **kind, **origin) as answer:
            assert answer.status == 403
    with proxied.asked("POST", "/tasks/t1", "alice", body, **kind, Origin=proxied.origin) as answer:
        assert answer.status == 303
    assert rows(proxied.ledger, "SELECT what, detail FROM acts") == [("say", "alice")]
