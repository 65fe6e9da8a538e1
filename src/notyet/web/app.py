"""Serve the screens: each as HTML and as JSON, with one way of going wrong."""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from anyio import to_thread
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from notyet.core.record import Record
from notyet.core.text import bounded, visible
from notyet.errors import LedgerError
from notyet.ledger.past_stops import PastStop
from notyet.status.report import StatusReport
from notyet.status.stop_words import json_of
from notyet.web import fleet, gates, now, session, setup, stop, stops, task, tasks
from notyet.web.access import Guard, TokenDoor
from notyet.web.forms import DONE, Doing, notice_of
from notyet.web.layout import document, section
from notyet.web.live import MEDIA_TYPE
from notyet.web.proxy import ProxyDoor
from notyet.web.site import Drawing, NotShownError, Query, Screen

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from notyet.web.access import Names
    from notyet.web.live import Watcher
    from notyet.web.site import Site

STATIC = os.path.join(os.path.dirname(__file__), "static")
_MAX_COMPLAINT = 400
SCREENS: tuple[Screen, ...] = (
    now.SCREEN,
    stops.SCREEN,
    stop.SCREEN,
    session.SCREEN,
    gates.SCREEN,
    tasks.SCREEN,
    task.SCREEN,
    fleet.SCREEN,
    setup.SCREEN,
)


def build(site: Site, names: Names, watcher: Watcher) -> ASGIApp:
    """Return the page of a site that answers to these names."""
    routes: list[Route | Mount] = [
        Mount("/static", StaticFiles(directory=STATIC)),
        Route("/events", partial(_events, watcher)),
    ]
    doing = Doing()
    for screen in SCREENS:
        routes.append(Route(screen.as_json, partial(_json, site, screen)))
        routes.append(Route(screen.path, partial(_html, site, watcher, screen)))
        if screen.act is not None:
            act = partial(_act, site, screen, doing)
            routes.append(Route(screen.path, act, methods=["POST"]))
    handlers = {404: partial(_nowhere, site), Exception: partial(_fault, site)}
    # Around all of Starlette, so that its own answers get the strict headers too.
    door = TokenDoor(site, names) if site.proxy is None else ProxyDoor(site.proxy, names)
    return Guard(Starlette(routes=routes, exception_handlers=handlers), door)


def _page(site: Site, drawing: Drawing, query: Query, trouble: str = "") -> str:
    listed = [screen for screen in SCREENS if screen.is_listed(site)]
    return encodable(str(document(listed, drawing, query, trouble)))


async def _html(site: Site, watcher: Watcher, screen: Screen, request: Request) -> Response:
    query = _query(site, request)
    status, trouble = 200, site.loss()
    try:
        drawing = screen.draw(await to_thread.run_sync(screen.load, site, query), query)
    except (NotShownError, LedgerError) as error:
        status, drawing = _unshown(error)
        if isinstance(error, LedgerError):
            watcher.tell_later()
            drawing = replace(drawing, live=("main",))
        if _is_open(request):
            status, trouble = 200, f"{drawing.title}: {error}"
    drawing = replace(drawing, body=[notice_of(query), drawing.body])
    return HTMLResponse(_page(site, drawing, query, trouble), status)


async def _act(site: Site, screen: Screen, doing: Doing, request: Request) -> Response:
    query = _query(site, request)
    try:
        return await doing(site, screen, query, request)
    except (NotShownError, LedgerError) as error:
        status, drawing = _unshown(error)
        return HTMLResponse(_page(site, drawing, query), status)


def _unshown(error: NotShownError | LedgerError) -> tuple[int, Drawing]:
    status, title = _wrong(error)
    return status, Drawing(title, section(title, str(error)))


async def _json(site: Site, screen: Screen, request: Request) -> Response:
    try:
        data = await to_thread.run_sync(screen.load, site, _query(site, request))
    except (NotShownError, LedgerError) as error:
        status, title = _wrong(error)
        return JSONResponse({"error": title, "detail": str(error)}, status)
    return JSONResponse(jsonable(screen.plain(data) if screen.plain else data))


async def _events(watcher: Watcher, request: Request) -> Response:
    if request.method == "HEAD":
        return Response(media_type=MEDIA_TYPE)
    unbuffered = {"X-Accel-Buffering": "no"}  # by nginx, before the page
    return StreamingResponse(watcher.stream(), media_type=MEDIA_TYPE, headers=unbuffered)


async def _nowhere(site: Site, request: Request, _error: Exception) -> Response:
    title = "There is no such page"
    drawing = Drawing(title, section(title, "The screens are linked above."))
    return HTMLResponse(_page(site, drawing, _query(site, request)), 404)


async def _fault(site: Site, request: Request, error: Exception) -> Response:
    """Answer in words where a screen fails unexpectedly, and tell the terminal why."""
    line = f"{request.url.path}: {type(error).__name__}: {error}"
    complain(f"notyet page: {bounded(visible(line), _MAX_COMPLAINT)}")
    title = "This screen has a fault"
    words = "The terminal that runs notyet page says which. The other screens are linked above."
    if request.url.path.endswith(".json"):
        return JSONResponse({"error": title, "detail": words}, 500)
    drawing = Drawing(title, section(title, words))
    status, trouble = (200, f"{title}: {words}") if _is_open(request) else (500, "")
    return HTMLResponse(_page(site, drawing, _query(site, request), trouble), status)


def _is_open(request: Request) -> bool:
    """Return True for a request of an open page.

    It keeps what it shows, and says above what is wrong; htmx drops answers with other codes.
    """
    return "hx-request" in request.headers


def complain(line: str) -> None:
    """Write a line for the person who started the page, if the terminal is still there."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _query(site: Site, request: Request) -> Query:
    path = {name: str(value) for name, value in request.path_params.items()}
    values = {**request.query_params, **path}
    notice = site.notices.take(values.pop(DONE, ""))
    user = request.scope.get("user", "")
    token = "" if site.read_only else site.form_token_of(user)
    is_shared = site.proxy is not None
    return Query(quote(request.url.path), values, token, notice, site.name, user, is_shared)


def _wrong(error: NotShownError | LedgerError) -> tuple[int, str]:
    """Return the status and title of a screen that cannot be shown."""
    if isinstance(error, NotShownError):
        return error.status, error.title
    return 503, "The ledger cannot be used"


def jsonable(value: Any) -> Any:
    """Return a value with the records and data classes in it as plain ones."""
    if isinstance(value, PastStop):
        return jsonable(json_of(value))
    if isinstance(value, StatusReport):
        return jsonable(value.plain())
    if isinstance(value, Record):
        return {name: jsonable(getattr(value, name)) for name in value._fields}
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: jsonable(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return {str(name): jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def encodable(text: str) -> str:
    """Return a text without lone surrogates, which the names of files may have."""
    return text.encode("utf-8", "replace").decode()
