"""A page behind a proxy: whom it lets in, and what it records of them."""

import html
import ipaddress
import re
import socket
from contextlib import closing
from urllib.parse import urlencode

import pytest

from notyet.cli.main import main
from notyet.core.task import Task
from notyet.ledger.leases import Leases
from notyet.ledger.tasks import Tasks
from notyet.web import server
from notyet.web.proxy import Proxy, Users, origin_of
from supervised import first_run
from support import decide, rows, stop

ORIGIN = "https://agents.example.com"
ALICE = {"Cookie": None, "X-Forwarded-User": "alice"}


@pytest.fixture
def team(serve):
    """Serve a page behind a proxy, by default for alice and bob."""

    def team(*names, file="", allow_actions=False, path=None, **fields):
        users = Users(names or (() if file else ("alice", "bob")), file)
        more = {"path": path} if path else {}
        page = serve(proxy=Proxy(ORIGIN, users, **fields), read_only=not allow_actions, **more)
        decide(page.ledger, stop())
        return page

    return team


def raw(port, *lines, source="127.0.0.1"):
    """Send these lines as they are; return the status and the text of the answer."""
    place = ("127.0.0.1", port)
    with socket.create_connection(place, timeout=30, source_address=(source, 0)) as connection:
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1"))
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    head, _, text = answer.partition("\r\n\r\n")
    return int(head.split()[1]), text


GET = ("GET / HTTP/1.1", "Host: agents.example.com")


def test_the_users_of_the_list_see_the_page_and_their_name(team):
    page = team()
    for user in ("alice", "bob"):
        answer = page.get("/", **ALICE | {"X-Forwarded-User": user}, Host="agents.example.com")
        assert answer.status == 200
        assert f">{user}</span>" in answer.text
        assert "Set-Cookie" not in answer.headers
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    for path in ("/now.json", "/stops/1", "/static/page.css"):
        assert page.get(path, **ALICE).status == 200


@pytest.mark.parametrize(
    "user", ["mallory", "Alice", "alice,bob", "alice bob", "alic", "alice\xe9"]
)
def test_a_user_who_is_not_on_the_list_sees_nothing(team, user):
    page = team()
    for path in ("/", "/now.json", "/events", "/static/page.css", "/nowhere", "/?token=x"):
        answer = page.get(path, **ALICE | {"X-Forwarded-User": user.encode("utf-8")})
        assert answer.status == 403
        assert answer.text == (
            f"{user} is not on this page's list of users: ask the person who runs it (--user).\n"
        )
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_a_request_must_name_one_user(team):
    port = team().port
    assert raw(port, *GET)[0] == 401
    assert raw(port, *GET, "X-Forwarded-User:")[0] == 401
    assert raw(port, *GET, "X-Forwarded-User:   ")[0] == 401
    for other in ("mallory", "alice", ""):
        for pair in (("alice", other), (other, "alice")):
            status, text = raw(port, *GET, *(f"x-forwarded-USER: {name}" for name in pair))
            assert status == 400
            assert text.startswith("X-Forwarded-User came more than once")
    # Other spellings of the name are other headers, which the proxy may not replace.
    assert raw(port, *GET, "X_Forwarded_User: alice")[0] == 401
    assert raw(port, *GET, "X-Forwarded-User : alice")[0] == 400
    assert raw(port, *GET, "X-Forwarded-Email: alice")[0] == 401
    status, text = raw(port, *GET, "X-Other: a\nX-Forwarded-User: alice", "X-Forwarded-User: eve")
    assert status == 400
    assert raw(port, *GET, "X-Forwarded-User: eve\r\n X: alice")[0] in {400, 403}
    assert raw(port, *GET, "X-Forwarded-User: alice\0")[0] == 400
    assert raw(port, *GET, "X-Forwarded-User: alice")[0] == 200


def test_neither_a_token_nor_a_cookie_opens_it(team):
    page = team()
    for path in (f"/?token={page.site.token}", f"/?token={page.site.token_once}", "/"):
        answer = page.get(path)  # with the cookie
        assert answer.status == 401
        assert "Set-Cookie" not in answer.headers


def test_the_header_counts_from_the_address_of_the_proxy_only(team):
    page = team(addresses=(ipaddress.ip_network("127.0.0.2"), ipaddress.ip_network("10.0.0.0/8")))
    sent = (*GET, "X-Forwarded-User: alice")
    assert raw(page.port, *sent, source="127.0.0.2")[0] == 200
    for forged in (
        "X-Forwarded-For: 127.0.0.2",
        "X-Real-IP: 127.0.0.2",
        "Forwarded: for=127.0.0.2",
    ):
        status, text = raw(page.port, *sent, forged)
        assert status == 403
        assert (
            text
            == "Only its proxy may ask this page, and 127.0.0.1 is not one: name it with --proxy.\n"
        )


def test_addresses_of_a_proxy():
    proxy = Proxy(ORIGIN, Users())
    for address in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
        assert proxy.is_peer(address)
    for address in ("10.0.0.1", "::2", "::ffff:10.0.0.1", "", "localhost", "fe80::1%eth0"):
        assert not proxy.is_peer(address)


def test_another_header_can_name_the_user(team):
    page = team("alice@example.com", header="X-Forwarded-Email")
    assert raw(page.port, *GET, "X-Forwarded-Email: alice@example.com")[0] == 200
    assert raw(page.port, *GET, "X-Forwarded-User: alice@example.com")[0] == 401


def test_a_file_of_users_counts_at_once(team, tmp_path):
    file = tmp_path / "users"
    file.write_text("# who may see it\n\n  alice  \nJosé\n")
    page = team(file=str(file))

    def status(user):
        return page.get("/", **ALICE | {"X-Forwarded-User": user.encode()}).status

    assert [status(user) for user in ("alice", "José", "bob", "#")] == [200, 200, 403, 403]
    file.write_text("bob\n")
    assert [status(user) for user in ("alice", "bob")] == [403, 200]
    file.write_text("*\n")
    assert status("whoever") == 200
    file.unlink()
    assert status("bob") == 503


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_pages_and_names_may_not_ask(team, method):
    page = team(allow_actions=True)
    user = "X-Forwarded-User: alice"
    own = ("agents.example.com", "AGENTS.example.com:443", f"127.0.0.1:{page.port}")
    passed = 200 if method == "GET" else 405  # the screen has no forms
    for host in own:
        sent = (f"{method} / HTTP/1.1", f"Host: {host}", user, f"Origin: {ORIGIN}")
        assert raw(page.port, *sent)[0] == passed, host
    for host in ("evil.example", "agents.example.com:8443", "agents.example.com.evil.example", ""):
        sent = (f"{method} / HTTP/1.1", f"Host: {host}", user, f"Origin: {ORIGIN}")
        assert raw(page.port, *sent)[0] == 421, host
    first = (f"{method} / HTTP/1.1", "Host: agents.example.com", user)
    wrong = ("null", "https://evil.example", "http://agents.example.com", f"{ORIGIN}:8443", "")
    for origin in (*wrong, f"http://127.0.0.1:{page.port}"):
        assert raw(page.port, *first, f"Origin: {origin}")[0] == 403, origin
    assert raw(page.port, *first)[0] == (200 if method == "GET" else 403)
    assert raw(page.port, *first, f"Origin: {ORIGIN}", "Sec-Fetch-Site: cross-site")[0] == 403
    assert raw(page.port, "PUT / HTTP/1.1", *first[1:])[0] == 405


def test_what_is_of_the_machine_is_not_there(team):
    page = team()
    for path in ("/setup", "/setup.json", "/setup?look=1"):
        assert page.get(path, **ALICE).status == 404
    shown = page.get("/stops/1?replay=1", **ALICE)
    assert shown.status == 200
    assert "/setup" not in shown.text
    assert "today" not in shown.text
    assert "replay" not in page.get("/stops/1.json?replay=1", **ALICE).json


# What people do.


def enter(page):
    owner = Leases(page.ledger.connection).enrol(1000.0)
    limits = {"max_depth": 9, "max_children": 9}
    known = Task(id="t1", prompt="do it", scope="agent")
    Tasks(page.ledger).start(known, first_run("t1"), owner, {"agent": "tests"}, "s9", **limits)


def send(page, user, fields, **headers):
    sent = {"Origin": ORIGIN, "Host": "agents.example.com", "X-Forwarded-User": user, **headers}
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return page.ask("POST", "/tasks/t1", urlencode(fields).encode(), **sent, **kind)


def test_nothing_can_be_done_unless_that_is_allowed(team):
    page = team()
    enter(page)
    assert "<form" not in page.get("/tasks/t1", **ALICE).text
    token = page.site.form_token_of("alice")
    answer = send(page, "alice", {"action": "kill", "token": token})
    assert answer.status == 403
    assert "--allow-actions" in answer.text
    assert rows(page.ledger, "SELECT state FROM runs") == [("running",)]
    assert rows(page.ledger, "SELECT count(*) FROM acts") == [(0,)]


def test_who_did_what_is_recorded_and_shown(team):
    page = team(allow_actions=True)
    enter(page)
    shown = page.get("/tasks/t1", **ALICE).text
    token = re.search(r'name="token" value="(\w+)"', shown)[1]
    assert send(page, "alice", {"action": "say", "text": "Hello", "token": token}).status == 303
    # A form of another user, of the process, or without a token.
    for other in (token, page.site.form_token, page.site.token, ""):
        assert send(page, "bob", {"action": "kill", "token": other}).status == 403
    token = page.site.form_token_of("bob")
    for origin in (None, "null", "https://evil.example", f"http://127.0.0.1:{page.port}"):
        answer = send(page, "bob", {"action": "kill", "token": token}, Origin=origin)
        assert answer.status == 403
    assert rows(page.ledger, "SELECT what, place, detail FROM acts") == [
        ("say", "task t1", "alice")
    ]
    assert send(page, "bob", {"action": "kill", "token": token}).status == 303
    shown = html.unescape(re.sub("<[^>]+>", "", page.get("/tasks/t1", **ALICE).text))
    assert re.search(r"done heresay by alice \d+ s ago, kill by bob \d+ s ago", shown)
    acts = page.get("/tasks/t1.json", **ALICE).json["acts"]
    assert [(act["what"], act["who"]) for act in acts] == [("say", "alice"), ("kill", "bob")]


# The command.


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("https://Agents.Example.com/", "https://agents.example.com"),
        ("https://a:443", "https://a"),
        ("http://a:8080", "http://a:8080"),
        ("https://[::1]:8443", "https://[::1]:8443"),
    ],
)
def test_an_origin_is_as_browsers_write_it(given, known):
    assert origin_of(given) == known


ENOUGH = ("--origin", ORIGIN, "--user", "alice", "--port", "8700")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (ENOUGH[:4], "--behind-proxy needs --port: the proxy must know it"),
        (ENOUGH[2:], "--behind-proxy needs --origin"),
        ((*ENOUGH[:2], *ENOUGH[4:]), "--behind-proxy needs --user or --users"),
        ((*ENOUGH, "--origin", "agents.example.com"), "--origin takes https://HOST"),
        ((*ENOUGH, "--origin", "https://a/notyet"), "--origin takes https://HOST"),
        ((*ENOUGH, "--origin", "https://a@b"), "--origin takes https://HOST"),
        ((*ENOUGH, "--origin", "https://a:b"), "--origin takes https://HOST"),
        ((*ENOUGH, "--origin", "ftp://a"), "--origin takes https://HOST"),
        ((*ENOUGH, "--proxy", "proxy.example"), "it takes an IP address or a network"),
        ((*ENOUGH, "--user-header", "X User"), "--user-header takes the name of a header"),
        ((*ENOUGH, "--users", "missing"), "missing: No such file"),
        ((*ENOUGH[:2], *ENOUGH[4:], "--users", "/dev/null"), "/dev/null names no user"),
        ((*ENOUGH, "--read-only", "--allow-actions"), "leave out --allow-actions"),
        ((*ENOUGH, "--save", "x.html"), "--save writes a file"),
    ],
)
def test_options_that_cannot_be_meant(argv, words, capsys):
    argv = ["page", "--behind-proxy", *argv]
    if "--proxy" in argv:
        with pytest.raises(SystemExit, match="2"):
            main(argv)
    else:
        assert main(argv) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert words in said


@pytest.mark.parametrize("option", ["--origin", "--user", "--users", "--user-header", "--proxy"])
def test_options_of_a_proxy_need_one(option, capsys):
    assert main(["page", "--no-open", option, "127.0.0.1"]) == 2
    assert f"{option} is for --behind-proxy" in capsys.readouterr().err


def test_the_ledger_of_a_team_is_not_served_unencrypted(capsys):
    argv = ["page", "--no-open", "--ledger", "postgresql://db/x", "--listen", "192.0.2.1"]
    assert main(argv) == 2
    assert "put a proxy in front of it with --behind-proxy" in capsys.readouterr().err


def test_the_command_says_where_people_and_the_proxy_find_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("NOTYET_LEDGER", str(tmp_path / "ledger.db"))
    with closing(server.listen(0)) as free:
        port = free.getsockname()[1]
    served = []

    def run(page):
        served.append(page._site)
        page._listening.close()

    monkeypatch.setattr(server.Page, "run", run)
    assert main(["page", "--behind-proxy", *ENOUGH[:4], "--port", str(port)]) == 0
    assert capsys.readouterr() == (
        f"{ORIGIN} (the proxy reaches it at http://127.0.0.1:{port})\n",
        "",
    )
    assert served[0].read_only
    assert (
        main(["page", "--behind-proxy", *ENOUGH[:4], "--port", str(port), "--allow-actions"]) == 0
    )
    assert not served[1].read_only
