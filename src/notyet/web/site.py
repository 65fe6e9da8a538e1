"""What a page shows, and how its screens read it."""

from __future__ import annotations

import hmac
import os
import secrets
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from notyet.ledger.ledger import Ledger
from notyet.web.counts import Counts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from htpy import Node

    from notyet.web.proxy import Proxy

_PATIENCE = 2.0  # seconds that a screen waits for a locked ledger
_MOST_NOTICES = 100


class NotShownError(Exception):
    """A screen that cannot be shown as its address asks; its text says why."""

    status, title = 400, "That address means nothing here"


class NotFoundError(NotShownError):
    """There is no such stop, session or task."""

    status, title = 404, "Not found"


class RefusedError(NotShownError):
    """A form that is not the page's own, or that may not be sent here."""

    status, title = 403, "Nothing was done"


class NotSentError(NotShownError):
    """A form with values that cannot be meant."""

    title = "Nothing was done"


@dataclass(frozen=True)
class Notice:
    """What came of a form, to be shown once; `fields` are what was sent, to correct it."""

    text: str
    is_done: bool = True
    warnings: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


class Notices:
    """Notices until they are shown, each under a name that only its reader knows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Notice] = {}

    def keep(self, notice: Notice) -> str:
        """Keep a notice; return its name."""
        name = secrets.token_urlsafe(9)
        with self._lock:
            self._kept[name] = notice
            while len(self._kept) > _MOST_NOTICES:
                del self._kept[next(iter(self._kept))]
        return name

    def take(self, name: str) -> Notice | None:
        """Return a notice, and forget it."""
        with self._lock:
            return self._kept.pop(name, None)


@dataclass
class Site:
    """One ledger, seen from one folder."""

    path: str  # of the ledger
    cwd: str = field(default_factory=os.getcwd)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    read_only: bool = False
    proxy: Proxy | None = None  # in front of it, for a team; None: it is for one person
    # The token in the address is exchanged for the cookie's; forms carry a third one.
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    token_once: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    notices: Notices = field(default_factory=Notices)
    counts: Counts = field(default_factory=Counts)
    # By its name an open page tells this process from another one that got its port.
    name: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.path, patience=_PATIENCE, repair=False)
        self._had_ledger = False

    def form_token_of(self, user: str) -> str:
        """Return what the forms of a user carry; those of the one person have no name."""
        if not user:
            return self.form_token
        return hmac.digest(self.form_token.encode(), user.encode(), "sha256").hex()

    def loss(self) -> str:
        """Return what to say of a ledger that was there and is gone; screens show nothing then."""
        if not self.ledger.connection.is_file:
            return ""
        is_there = os.path.exists(self.path)
        self._had_ledger |= is_there
        if is_there or not self._had_ledger:
            return ""
        return f"The ledger {self.path} was deleted or moved; the next stop starts a new one."


@dataclass(frozen=True)
class Query:
    """What an address asks for: its path, the values in the path, and those after the `?`."""

    path: str
    values: Mapping[str, str] = field(default_factory=dict)
    form_token: str = ""  # that forms carry; empty: nothing may be done here
    notice: Notice | None = None  # what came of the form that was sent just now
    site: str = ""  # the name of the site that runs; empty: nothing is live
    user: str = ""  # whom the proxy has signed in
    is_shared: bool = False  # people of other machines see it

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")


@dataclass(frozen=True)
class Drawing:
    """A drawn screen; the parts with the ids `live` are drawn anew when something happens."""

    title: str
    body: Node
    live: tuple[str, ...] = ()


@dataclass(frozen=True)
class Screen:
    """One screen: `load` runs in a thread and may wait; what it returns is also the JSON."""

    path: str
    load: Callable[[Site, Query], Any]
    draw: Callable[[Any, Query], Drawing]
    name: str = ""  # in the navigation
    json_path: str = ""
    # Does what a form of the screen asks for, in a thread; may wait, and raise NotShownError.
    act: Callable[[Site, Query, Mapping[str, str]], Notice] | None = None
    plain: Callable[[Any], Any] | None = None  # makes the JSON, if it is not the data as it is
    is_listed: Callable[[Site], bool] = lambda _site: True  # in the navigation of this site

    @property
    def as_json(self) -> str:
        """The path of its JSON."""
        return self.json_path or f"{self.path}.json"
