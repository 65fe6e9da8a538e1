"""Who may see the page: the person who started it, in a browser on this machine.

The token in the address is exchanged for a cookie and disappears from it. Names other than ours in
`Host` (DNS rebinding) and other pages in `Origin` are refused. A form carries a token of its own.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

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
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STRANGER = "Open the address that `notyet page` printed: this page is for its user only.\n"
_ENDED = "This address is of a page that has ended. Start one with: notyet page\n"
_OTHER_HOST = "This page does not answer to that name; open the address that was printed.\n"
_OTHER_ORIGIN = "Another page asked for this; open the address that was printed.\n"
_READ_METHODS = ("GET", "HEAD")


class Guard:
    """Lets only requests of the page's own user through, and adds strict headers to each answer."""

    def __init__(self, app: ASGIApp, site: Site, hosts: frozenset[str], port: int) -> None:
        self._app = app
        self._site = site
        self._hosts = hosts  # as browsers send them, with the port
        self._cookie = f"notyet_{port}"  # cookies are shared by all ports of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        answer = self._refusal(scope)
        await (answer or self._app)(scope, receive, send_strictly)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that may not go on; None if it may."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host.lower() not in self._hosts:
            return PlainTextResponse(_OTHER_HOST, 421)
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return PlainTextResponse(_OTHER_ORIGIN, 403)
        is_read = scope["method"] in _READ_METHODS
        if not is_read and origin is None:
            return PlainTextResponse(_OTHER_ORIGIN, 403)
        named = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in named if name == TOKEN]
        if tokens and is_read:
            if not same(tokens[0], self._site.token):
                return PlainTextResponse(_ENDED, 403)
            rest = urlencode([pair for pair in named if pair[0] != TOKEN])
            answer = RedirectResponse(f"{scope['path']}?{rest}" if rest else scope["path"], 303)
            answer.set_cookie(self._cookie, self._site.cookie, httponly=True, samesite="strict")
            return answer
        cookies = cookie_parser(headers.get("cookie", ""))
        if not same(cookies.get(self._cookie, ""), self._site.cookie):
            return PlainTextResponse(_STRANGER, 403)
        return None


def same(given: str, secret: str) -> bool:
    """Compare in a time that does not tell how much is right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
