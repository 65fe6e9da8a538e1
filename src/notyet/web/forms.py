"""Forms that do something: how they are drawn, read, carried out and answered.

A form is answered by a redirect, so that a reload sends nothing again. The address that it leads to
has only the name of a notice, which is kept here and shown once: no other page can make one up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import htpy as h
from anyio import CapacityLimiter, to_thread
from starlette.responses import RedirectResponse

from notyet.web.access import TOKEN, same
from notyet.web.layout import address, one_line
from notyet.web.site import NotSentError, RefusedError

if TYPE_CHECKING:
    from htpy import Element, Node
    from starlette.requests import Request
    from starlette.responses import Response

    from notyet.web.site import Query, Screen, Site

DONE = "done"  # the name of a notice in the address
MOST_TEXT = 50_000  # characters of a message
_MOST_BYTES = 12 * MOST_TEXT  # a character has up to four bytes, each of which may be %XX
_MOST_FIELDS = 20
_AT_ONCE = 8  # forms that are carried out; reading needs threads too
_READ_ONLY = (
    "This page only shows: it was started with --read-only, or --behind-proxy without"
    " --allow-actions."
)
_NOT_OURS = "The form is of a page that has ended. Open this screen again, and repeat it."
_TOO_LONG = f"It is too long: at most {MOST_TEXT:,} characters can be sent."
_NO_FORM = "That is not a form of this page."
_KIND = "application/x-www-form-urlencoded"


class Doing:
    """Carries out forms, some at a time."""

    def __init__(self) -> None:
        self._limiter: CapacityLimiter | None = None  # made in the loop that uses it

    async def __call__(
        self, site: Site, screen: Screen, query: Query, request: Request
    ) -> Response:
        """Do what a form asks for, and lead back to its screen. Raises NotShownError."""
        if site.read_only:
            raise RefusedError(_READ_ONLY)
        fields = await _fields(request)
        if not same(fields.pop(TOKEN, ""), site.form_token_of(query.user)):
            raise RefusedError(_NOT_OURS)
        assert screen.act is not None
        self._limiter = self._limiter or CapacityLimiter(_AT_ONCE)
        notice = await to_thread.run_sync(screen.act, site, query, fields, limiter=self._limiter)
        return RedirectResponse(address(query.path, {DONE: site.notices.keep(notice)}), 303)


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form, without ever reading more than one can have."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _KIND:
        raise NotSentError(_NO_FORM)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise NotSentError(_TOO_LONG)
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise NotSentError(_NO_FORM) from None
    return dict(pairs)


def form(query: Query, action: str, *body: Node, **fields: str) -> Element:
    """Return a form that is sent to its own screen with this `action`."""
    hidden = {TOKEN: query.form_token, "action": action, **fields}
    return h.form(method="post", action=query.path)[
        (h.input(type="hidden", name=name, value=value) for name, value in hidden.items()), body
    ]


def notice_of(query: Query) -> Element | None:
    """Return what came of the form that was sent just now; it gets the focus, and is read out."""
    notice = query.notice
    if notice is None:
        return None
    kind = "ok" if notice.is_done else "bad"
    return h.div(f"#done.notice.{kind}", role="status", tabindex="-1", autofocus=True)[
        h.p[one_line(notice.text)], (h.p(".warn")[one_line(text)] for text in notice.warnings)
    ]
