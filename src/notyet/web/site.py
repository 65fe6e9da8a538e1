"""What a page shows, and how its screens read it."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from notyet.ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from htpy import Node

_PATIENCE = 2.0  # seconds that a screen waits for a locked ledger


class NotShownError(Exception):
    """A screen that cannot be shown as its address asks; its text says why."""

    status, title = 400, "That address means nothing here"


class NotFoundError(NotShownError):
    """There is no such stop, session or task."""

    status, title = 404, "Not found"


@dataclass
class Site:
    """One ledger, seen from one folder."""

    path: str  # of the ledger
    cwd: str = field(default_factory=os.getcwd)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    read_only: bool = False
    # The token in the address is exchanged for the cookie's; forms carry a third one.
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.path, patience=_PATIENCE, repair=False)


@dataclass(frozen=True)
class Query:
    """What an address asks for: its path, the values in the path, and those after the `?`."""

    path: str
    values: Mapping[str, str] = field(default_factory=dict)
    form_token: str = ""  # that forms carry; empty: nothing may be done here

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

    @property
    def as_json(self) -> str:
        """The path of its JSON."""
        return self.json_path or f"{self.path}.json"
