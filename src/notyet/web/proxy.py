"""Who may see a page that stands behind a reverse proxy: the users whom the proxy has signed in.

The proxy names the user in a header, which anybody could send: it counts only from the address of
the proxy, once, and for the users of a list. The names in `Host` and `Origin` are those of the
address that people open.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from notyet.core.text import visible
from notyet.web.access import METHODS, OTHER_METHOD, OTHER_PAGE, READ_METHODS, is_ours

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

    from starlette.responses import Response
    from starlette.types import Scope

    from notyet.web.access import Names

    Network = IPv4Network | IPv6Network

USER_HEADER = "X-Forwarded-User"
LOOPBACK: tuple[Network, ...] = (
    ipaddress.ip_network("127.0.0.0/8"),
    ipaddress.ip_network("::1/128"),
)
EVERYBODY = "*"
_PORTS = {"http": 80, "https": 443}
_STRANGER = "Only its proxy may ask this page, and {} is not one: name it with --proxy.\n"
_NOBODY = "The proxy names no user in {}: sign in at {}, or correct its configuration.\n"
_MANY = "{} came more than once: the proxy must replace what a browser sends.\n"
_UNLISTED = "{} is not on this page's list of users: ask the person who runs it (--user).\n"
_NO_LIST = "The page's list of users cannot be read: ask the person who runs it.\n"
_OTHER_HOST = "This page is {}: open it there.\n"


class Users:
    """The users who may see a page; a file of them is read at every request."""

    def __init__(self, names: tuple[str, ...] = (), file: str = "") -> None:
        self._names = frozenset(name.encode() for name in names)
        self._file = file

    def names(self) -> frozenset[bytes]:
        """Return the names. Raises OSError."""
        if not self._file:
            return self._names
        with open(self._file, "rb") as file:
            lines = [line.strip() for line in file]
        return self._names.union(line for line in lines if line and not line.startswith(b"#"))

    def has(self, user: bytes) -> bool:
        """Return True for a user of the list. Raises OSError."""
        names = self.names()
        return user in names or EVERYBODY.encode() in names


@dataclass(frozen=True)
class Proxy:
    """The proxy in front of a page, and whom it may let through."""

    origin: str  # the address that people open, as browsers write it
    users: Users
    header: str = USER_HEADER
    addresses: tuple[Network, ...] = LOOPBACK

    def is_peer(self, address: str) -> bool:
        """Return True for an address of the proxy."""
        try:
            peer = ipaddress.ip_address(address)
        except ValueError:
            return False
        known = getattr(peer, "ipv4_mapped", None) or peer  # of a socket for both
        return any(known in network for network in self.addresses)


def origin_of(text: str) -> str:
    """Return an address as browsers write it in `Origin`. Raises ValueError."""
    parts = urlsplit(text)
    rest = parts.path.strip("/") or parts.query or parts.fragment or parts.username
    if parts.scheme not in _PORTS or not parts.hostname or rest or "@" in text:
        raise ValueError(text)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    is_usual = parts.port in {None, _PORTS[parts.scheme]}
    return f"{parts.scheme}://{host}" + ("" if is_usual else f":{parts.port}")


class ProxyDoor:
    """Lets requests of listed users through that come from the proxy."""

    def __init__(self, proxy: Proxy, names: Names) -> None:
        self._proxy = proxy
        self._names = names
        scheme, _, host = proxy.origin.partition("://")
        self._hosts = {host, f"{host}:{_PORTS[scheme]}"}

    def refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that may not go on; None if it may."""
        proxy, headers = self._proxy, Headers(scope=scope)
        peer = scope["client"][0] if scope.get("client") else ""
        if not proxy.is_peer(peer):
            return PlainTextResponse(_STRANGER.format(visible(peer)), 403)
        given = headers.getlist(proxy.header)
        if len(given) > 1:
            return PlainTextResponse(_MANY.format(proxy.header), 400)
        if not given or not given[0]:
            return PlainTextResponse(_NOBODY.format(proxy.header, proxy.origin), 401)
        user = given[0].encode("latin-1")
        shown = visible(user.decode("utf-8", "replace"))
        try:
            is_listed = proxy.users.has(user)
        except OSError:
            return PlainTextResponse(_NO_LIST, 503)
        if not is_listed:
            return PlainTextResponse(_UNLISTED.format(shown), 403)
        host = headers.get("host", "").lower()
        if host not in self._hosts and not self._names.has(host):
            return PlainTextResponse(_OTHER_HOST.format(proxy.origin), 421)
        if scope["method"] not in METHODS:
            return PlainTextResponse(OTHER_METHOD, 405, {"Allow": ", ".join(METHODS)})
        if not is_ours(headers, proxy.origin, is_read=scope["method"] in READ_METHODS):
            return PlainTextResponse(OTHER_PAGE, 403)
        scope["user"] = shown
        return None
