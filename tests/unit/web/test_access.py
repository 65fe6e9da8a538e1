"""Who may see the page, and what every answer carries."""

import socket

import pytest

from notyet.web import access, app
from notyet.web.access import Names
from notyet.web.server import Page, listen
from notyet.web.site import Screen, Site
from support import wait_for

STRICT = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def raw(port, sent):
    """Send bytes as they are, and return all that comes back until the page hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


# The token and the cookie.


def test_the_token_becomes_a_cookie_and_leaves_the_address(page):
    answer = page.get(f"/?token={page.site.token}&host=claude&place=%2Fa%20b", Cookie=None)

    assert answer.status == 303
    assert answer.headers["Location"] == "/?host=claude&place=%2Fa+b"
    assert page.site.token not in str(answer.headers) + answer.text
    name, _, rest = answer.headers["Set-Cookie"].partition("=")
    value, *flags = rest.split("; ")
    assert sorted(flags) == ["HttpOnly", "Path=/", "SameSite=strict"]
    assert name == f"notyet_{page.port}"
    assert value not in {page.site.token, page.site.form_token}
    assert page.get("/", Cookie=f"other=1; {name}={value}").status == 200


def test_a_token_that_is_not_this_pages(serve):
    page, other = serve(), serve()

    for token in (other.site.token, "", "x", page.site.cookie, page.site.token[:-1], "%00%ff"):
        answer = page.get(f"/?token={token}")  # also with the right cookie
        assert answer.status == 403
        assert "Start one with: notyet page" in answer.text
        assert "Set-Cookie" not in answer.headers


def test_without_the_cookie_nothing_is_shown(serve):
    page, other = serve(), serve()
    wrong = (None, "", "=;=", f"notyet_{page.port}=", f"notyet_{page.port}={page.site.token}")

    for cookie in (*wrong, other.cookie, f"notyet_{page.port}={other.site.cookie}"):
        for path in ("/", "/now.json", "/static/page.css", "/nowhere"):
            answer = page.get(path, Cookie=cookie)
            assert (answer.status, answer.text) == (403, access._STRANGER)


def test_two_pages_keep_their_cookies_apart(serve):
    page, other = serve(), serve()
    both = f"{page.cookie}; {other.cookie}"  # a browser sends them to every port

    assert page.get("/", Cookie=both).status == other.get("/", Cookie=both).status == 200


def test_secrets_are_compared_in_constant_time(page, monkeypatch):
    compared = []
    monkeypatch.setattr(access.hmac, "compare_digest", lambda *both: compared.append(both) or False)

    assert page.get(f"/?token={page.site.token}").status == 403
    assert page.get("/").status == 403
    assert [secret for _, secret in compared] == [
        page.site.token.encode(),
        page.site.token_once.encode(),
        page.site.cookie.encode(),
    ]


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("//evil.example/", "/evil.example/"),
        ("///evil.example", "/evil.example"),
        ("/%2Fevil.example", "/evil.example"),
        ("/\\evil.example", "/%5Cevil.example"),
        ("/%5Cevil.example", "/%5Cevil.example"),
        ("http://evil.example/", "/http%3A//evil.example/"),
        ("/a%0D%0ASet-Cookie:%20x=1", "/a%0D%0ASet-Cookie%3A%20x%3D1"),
        ("/stops/1", "/stops/1"),
    ],
)
def test_the_way_without_the_token_stays_on_this_page(page, path, leads_to):
    answer = page.get(f"{path}?token={page.site.token}", Host=f"127.0.0.1:{page.port}")

    assert answer.status == 303
    assert answer.headers["Location"] == leads_to
    assert answer.headers.get_all("Set-Cookie") == [
        f"notyet_{page.port}={page.site.cookie}; HttpOnly; Path=/; SameSite=strict"
    ]


# Host, Origin, Sec-Fetch-Site, methods.


def test_names_in_host(page):
    ours = (f"127.0.0.1:{page.port}", f"LOCALHOST:{page.port}")
    others = ("127.0.0.1", "localhost", "127.0.0.1:1", f"evil.example:{page.port}", "", "::1")
    others += (f"[::1]:{page.port}", f"127.0.0.1.evil.example:{page.port}", f"10.0.0.1:{page.port}")

    assert [page.get("/", Host=host).status for host in ours] == [200] * len(ours)
    for host in others:
        answer = page.get(f"/?token={page.site.token}", Host=host)
        assert answer.status == 421
        assert f"answers to http://127.0.0.1:{page.port} only" in answer.text
        assert "Set-Cookie" not in answer.headers


def test_names_of_other_addresses():
    assert Names(("127.0.0.1",), 80).has("127.0.0.1")
    assert Names(("[::1]",), 80).has("[::1]")
    assert Names(("[::1]",), 8700).has("[::1]:8700")
    assert not Names(("[::1]",), 8700).has("[::1]")
    every = Names(("127.0.0.1", "box"), 8700, any_address=True)
    for host in ("10.1.2.3:8700", "[fe80::1]:8700", "box:8700", "BOX:8700"):
        assert every.has(host)
    for host in ("evil.example:8700", "10.1.2.3", "10.1.2.3:8701", "10.1.2.3.evil.example:8700"):
        assert not every.has(host)


def test_a_request_without_host(page):
    sent = f"GET / HTTP/1.0\r\nCookie: {page.cookie}\r\n\r\n".encode()

    assert raw(page.port, sent).startswith("HTTP/1.1 421 ")
    assert raw(page.port, sent.replace(b"1.0", b"1.1")).startswith("HTTP/1.1 400 ")
    named = sent.replace(b"\r\n", f"\r\nHost: 127.0.0.1:{page.port}\r\n".encode(), 1)
    assert raw(page.port, named).startswith("HTTP/1.1 200 ")


def test_other_pages_may_not_ask(page):
    port = page.port
    for origin in ("null", "http://evil.example", f"https://127.0.0.1:{port}", "http://127.0.0.1"):
        assert page.get("/", Origin=origin).status == 403
        assert page.post("/", {}, Origin=origin).status == 403
    assert page.post("/", {}, Origin=None).status == 403
    assert page.post("/", {}, Origin=f"http://localhost:{port}").status == 403  # it is not its Host
    assert page.get("/", Origin=page.origin).status == 200

    for site in ("cross-site", "same-site"):  # the second is another port of this machine
        for dest in ("script", "iframe", "empty", None):
            assert page.get("/", Sec_Fetch_Site=site, Sec_Fetch_Dest=dest).status == 403
        assert page.get("/", Sec_Fetch_Site=site, Sec_Fetch_Dest="document").status == 200  # a link
        answer = page.post("/", {}, Sec_Fetch_Site=site, Sec_Fetch_Dest="document")
        assert (answer.status, answer.text) == (403, access.OTHER_PAGE)
    for site in ("none", "same-origin"):
        assert page.get("/", Sec_Fetch_Site=site).status == 200


def test_methods(page):
    shown = page.get("/")
    head = page.ask("HEAD", "/")
    assert (head.status, head.text) == (200, "")
    assert head.headers["Content-Length"] == shown.headers["Content-Length"]

    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"):
        answer = page.ask(method, "/", Origin=page.origin)
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD, POST")
    assert page.post("/", {}).status == 405
    assert page.post("/static/page.css", {}).status == 405


# What every answer carries, and what is not there.


def test_every_answer_is_strict(page, monkeypatch, capfd):
    def broken(_site, _query):
        raise ZeroDivisionError("<b>\x1b[31mno\nnumber")

    monkeypatch.setattr(app, "SCREENS", (*app.SCREENS, Screen("/broken", broken, None)))
    page = page.again()
    answers = [
        page.get("/"),
        page.get("/now.json"),
        page.get("/static/page.css"),
        page.get("/static/vendor/htmx.min.js"),
        page.get("/nowhere"),
        page.get("/static/nowhere"),
        page.get("/", Cookie=None),
        page.get("/", Host="evil.example"),
        page.get(f"/?token={page.site.token}"),
        page.ask("PUT", "/"),
        page.post("/", {}),
        page.get("/broken"),
        page.get("/broken.json"),
    ]

    assert [answer.status for answer in answers] == [
        *([200] * 4),
        *(404, 404, 403, 421, 303, 405, 405, 500, 500),
    ]
    for answer in answers:
        assert {name: answer.headers[name] for name in STRICT} == STRICT
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "Server" not in answer.headers
        assert "Access-Control-Allow-Origin" not in answer.headers
    assert "Traceback" not in answers[-2].text + answers[-1].text
    assert "ZeroDivisionError" not in answers[-2].text + answers[-1].text
    assert "This screen has a fault" in answers[-2].text
    assert answers[-1].json["error"] == "This screen has a fault"
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        r"notyet page: /broken: ZeroDivisionError: <b>\x1b[31mno\nnumber",
        r"notyet page: /broken.json: ZeroDivisionError: <b>\x1b[31mno\nnumber",
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/vendor/../../app.py",
        "/static/%2fetc/passwd",
        "/static//etc/passwd",
        "/static/..%5capp.py",
        "/static/%00",
        "/static/",
        "/static/vendor",
        "/static/" + "a" * 5000,
        "/docs",
        "/openapi.json",
        "/metrics",
    ],
)
def test_only_what_is_there_is_served(page, path):
    answer = page.get(path)

    assert answer.status == 404
    assert "There is no such page" in answer.text


def test_no_sockets_and_no_headers_of_proxies(page, capfd):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    forwarded = {"X_Forwarded_Host": "evil.example", "X_Forwarded_Proto": "https"}

    assert page.get("/", **upgrade, Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==").status == 200
    assert page.get("/", **forwarded, X_Forwarded_For="10.0.0.1").status == 200
    answer = page.get("/", **forwarded, Host="evil.example")
    assert answer.status == 421
    assert "Server" not in answer.headers
    assert capfd.readouterr() == ("", "")  # and no line for each request, which has the token


def test_the_server_takes_up_nothing_that_happens_to_be_installed(tmp_path):
    with listen(0) as listening:
        config = Page(Site(str(tmp_path / "ledger.db")), listening)._server.config

    assert (config.http, config.ws, config.loop, config.lifespan) == (
        "h11",
        "none",
        "asyncio",
        "off",
    )
    assert [config.proxy_headers, config.server_header, config.access_log] == [False] * 3
    assert config.log_config is None


# Requests that are too large or too slow.


def test_requests_that_are_too_large(page):
    host = f"Host: 127.0.0.1:{page.port}\r\n"
    for begun in (f"GET / HTTP/1.1\r\n{host}X-Long: ", "GET /"):
        assert raw(page.port, begun.encode() + b"a" * 20_000).startswith("HTTP/1.1 400 ")
    assert page.get("/?" + "&span=7d" * 1_500).status == 200
    with socket.create_connection(("127.0.0.1", page.port), timeout=30) as connection:
        head = f"POST / HTTP/1.1\r\n{host}Cookie: {page.cookie}\r\n"
        head += f"Origin: {page.origin}\r\nContent-Length: 1000000000000\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 405 ")  # without the rest
    assert page.get("/").status == 200


def test_slow_requests_hinder_no_other_and_not_the_end(page):
    slow = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(50)]
    for number, connection in enumerate(slow):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a"[: number % 24])

    assert page.get("/").status == 200
    page.end()
    wait_for(lambda: not page.thread.is_alive())
    for connection in slow:
        connection.close()


def test_the_token_that_a_browser_is_started_with_serves_once(page):
    once = page.site.token_once
    assert page.get(f"/?token={once}", Cookie=None).status == 303
    assert page.get(f"/?token={once}", Cookie=None).status == 403
    assert page.get("/?token=", Cookie=None).status == 403
    assert page.get(f"/?token={page.site.token}", Cookie=None).status == 303
