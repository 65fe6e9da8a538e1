"""`Remote`: a workspace on another machine, written `ssh://[user@]host[:port]/path`."""

from __future__ import annotations

from notyet.core.record import Record
from notyet.light import LOCAL, SCHEME, is_remote

__all__ = ("LOCAL", "SCHEME", "Remote", "is_remote", "remote_from")

_MOST_PORT = 65_535
_EXAMPLE = "write it like ssh://dev@box.example/srv/app"


class Remote(Record, kw_only=True):
    """A folder on a machine that is reached over SSH; `host` may be a name in `~/.ssh/config`."""

    host: str
    path: str  # from the root on, without a slash at its end
    user: str = ""
    port: int = 0  # 0: as the configuration of ssh says

    @property
    def destination(self) -> str:
        """Who and where, as ssh takes it."""
        return f"{self.user}@{self.host}" if self.user else self.host

    @property
    def machine(self) -> str:
        """The workspace without its path: what has to be connected to."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"{SCHEME}{user}{host}{port}"

    @property
    def url(self) -> str:
        """The workspace as text, in the one form that trust goes by.

        It can be printed, pasted and stored, whatever bytes the path is made of.
        """
        return self.machine + _encoded(self.path)

    def at(self, path: str) -> Remote:
        """Return another folder, or a file, on the same machine."""
        return Remote(host=self.host, path=path, user=self.user, port=self.port)


def remote_from(text: str) -> Remote:
    """Read a workspace. Raises ValueError that says what is wrong, and what to write."""
    if not is_remote(text):
        raise ValueError(f"a workspace begins with {SCHEME}; {_EXAMPLE}")
    authority, slash, path = text.removeprefix(SCHEME).partition("/")
    user, at, place = authority.rpartition("@")
    if ":" in user:
        raise ValueError("a workspace must not contain a password; use a key or an SSH agent")
    if at and not _is_word(user):
        raise ValueError(f"the user of a workspace is a name, not {user!r}; {_EXAMPLE}")
    host, port = _host_and_port(place)
    if not slash:
        raise ValueError(f"a workspace names a folder, from the root on; {_EXAMPLE}")
    if path.startswith("~"):  # a folder that is really called so is written %7E
        home = path.partition("/")[0]
        start = f"/home/{home[1:] or 'you'}"
        raise ValueError(f"the path of a workspace begins at the root: write {start}, not {home}")
    return Remote(host=host, path=_path(path), user=user, port=port)


def _host_and_port(place: str) -> tuple[str, int]:
    bracket, closed, rest = place.removeprefix("[").partition("]")
    if place.startswith("["):  # an IPv6 address
        host, colon, number = (bracket, *rest.partition(":")[1:]) if closed else ("", "", "")
        if closed and rest and not rest.startswith(":"):
            host = ""
    else:
        host, colon, number = place.partition(":")
    if not _is_word(host):
        raise ValueError(f"a workspace names a host, not {place!r}; {_EXAMPLE}")
    if not colon:
        return host, 0
    port = int(number) if number.isascii() and number.isdecimal() else 0
    if not 0 < port <= _MOST_PORT:
        raise ValueError(f"the port of a workspace is a number up to {_MOST_PORT}, not {number!r}")
    return host, port


def _is_word(text: str) -> bool:
    """Return True if ssh takes a text as one name, and for nothing else."""
    if not text or text.startswith("-"):
        return False
    return text.isprintable() and not any(c.isspace() or c in "/\\'\"`$;&|<>()*?!@" for c in text)


def _path(text: str) -> str:
    from posixpath import normpath
    from urllib.parse import unquote

    decoded = unquote(text, errors="surrogateescape")
    path = "/" + "/".join(part for part in decoded.split("/") if part)
    if "\0" in path:
        raise ValueError("the path of a workspace cannot contain a NUL character")
    return normpath(path)


def _encoded(path: str) -> str:
    """Write what would be lost or misread in a text as %20 and the like."""
    text = path.replace("%", "%25").replace(" ", "%20")
    if text.startswith("/~"):
        text = text.replace("~", "%7E", 1)
    return text if text.isprintable() else "".join(map(_sign, text))


def _sign(sign: str) -> str:
    if sign.isprintable():
        return sign
    return "".join(f"%{byte:02X}" for byte in sign.encode("utf-8", "surrogateescape"))
