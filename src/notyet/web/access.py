"""Who may see the page: the person who started it, in a browser that has its address.

Behind a proxy it is otherwise: proxy.py.

The token in the address is exchanged for a cookie and disappears from it. Names other than ours in
`Host` (DNS rebinding) and other pages (`Origin`, `Sec-Fetch-Site`) are refused. A form carries a
token of its own.
"""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from notyet.web.site import Site

TOKEN = "token"  # noqa: S105  # its name in the address and in forms
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    # Not "no-referrer": browsers would send forms of ours with `Origin: null`.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STRANGER = "Open the address that `notyet page` printed: this page is for its user only.\n"
_ENDED = "This address is of a page that has ended. Start one with: notyet page\n"
_OTHER_HOST = (
    "This page answers to {} only; open the address that was printed.\n"
    "Through a tunnel, use the same port on both sides.\n"
)
OTHER_PAGE = "Another page asked for this; type or paste the address instead.\n"
OTHER_METHOD = "This page knows GET, HEAD and POST only.\n"
READ_METHODS = ("GET", "HEAD")
METHODS = (*READ_METHODS, "POST")
_HTTP_PORT = 80


@dataclass(frozen=True)
class Names:
    """The names that a page answers to, in `Host` and `Origin`."""

    hosts: tuple[str, ...]  # IPv6 addresses in brackets
    port: int
    any_address: bool = False  # it listens on every address of this machine

    def has(self, host: str) -> bool:
        """Return True for one of the names, with the port as browsers write it."""
        name, colon, port = host.lower().rpartition(":")
        if not colon or port.endswith("]"):
            name, port = host.lower(), str(_HTTP_PORT)
        if port != str(self.port):
            return False
        # A name in the DNS may lead anywhere; an address leads to itself.
        return name in self.hosts or (self.any_address and _is_address(name))

    @property
    def origin(self) -> str:
        """The address of the page, without a path."""
        return f"http://{self.hosts[0]}:{self.port}"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


class Door(Protocol):
    """Decides who may see the page."""

    def refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that may not go on; None if it may."""


class Guard:
    """Lets only the requests through that a door lets, and adds strict headers to each answer."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        answer = self._door.refusal(scope)
        await (answer or self._app)(scope, receive, send_strictly)


class TokenDoor:
    """Lets requests of the person through who has the page's address."""

    def __init__(self, site: Site, names: Names) -> None:
        self._site = site
        self._names = names
        self._cookie = f"notyet_{names.port}"  # cookies are shared by all ports of a host

    def refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that may not go on; None if it may."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._names.has(host):
            return PlainTextResponse(_OTHER_HOST.format(self._names.origin), 421)
        if scope["method"] not in METHODS:
            return PlainTextResponse(OTHER_METHOD, 405, {"Allow": ", ".join(METHODS)})
        is_read = scope["method"] in READ_METHODS
        if not is_ours(headers, f"http://{host.lower()}", is_read=is_read):
            return PlainTextResponse(OTHER_PAGE, 403)
        named = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in named if name == TOKEN]
        if tokens and is_read:
            if not self._is_valid(tokens[0]):
                return PlainTextResponse(_ENDED, 403)
            return self._welcome(scope["path"], [pair for pair in named if pair[0] != TOKEN])
        cookies = cookie_parser(headers.get("cookie", ""))
        if not same(cookies.get(self._cookie, ""), self._site.cookie):
            return PlainTextResponse(_STRANGER, 403)
        return None

    def _is_valid(self, token: str) -> bool:
        """Return True for the token that was printed, and the first time for the other one."""
        if same(token, self._site.token):
            return True
        if not self._site.token_once or not same(token, self._site.token_once):
            return False
        self._site.token_once = ""
        return True

    def _welcome(self, path: str, named: list[tuple[str, str]]) -> Response:
        """Return the cookie, and lead to the same address without the token."""
        here = "/" + quote(path.lstrip("/"))  # two slashes would lead to another host
        answer = RedirectResponse(f"{here}?{urlencode(named)}" if named else here, 303)
        answer.set_cookie(self._cookie, self._site.cookie, httponly=True, samesite="strict")
        return answer


def is_ours(headers: Headers, own: str, *, is_read: bool) -> bool:
    """Return True if a person asks by hand, or a page of our `own` origin.

    A link elsewhere may lead here.
    """
    origin = headers.get("origin")
    if origin is None and not is_read:
        return False
    if origin is not None and origin.lower() != own:
        return False
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    return is_read and headers.get("sec-fetch-dest") == "document"


def same(given: str, secret: str) -> bool:
    """Compare in a time that does not tell how much is right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
